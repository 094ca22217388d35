"""Made-up streams of scores, and what is made of them. See ``benchmarks/alarms.py``."""

from __future__ import annotations
