"""Sinks, which write scores and labels to the tools in which teams look at their traces."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
