"""Sinks, which write scores and labels to the tools in which teams look at their traces."""

from __future__ import annotations

__all__: list[str] = []
