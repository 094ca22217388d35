"""Evaluation of scorers on labeled rows: input, cached replies, figures and report. See ``benchmarks/quality.py``."""

from __future__ import annotations
