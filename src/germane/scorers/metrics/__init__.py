"""Scorers, one module per metric."""

from __future__ import annotations
