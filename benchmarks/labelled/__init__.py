"""Scorers over labelled rows: reading, replies that are kept, figures, and the page. See ``benchmarks/quality.py``."""

from __future__ import annotations
