"""Synthetic score streams and their evaluation. See ``benchmarks/alerts.py``."""

from __future__ import annotations
