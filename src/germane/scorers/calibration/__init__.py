"""Calibration of cosine scorers: the similarity of unrelated texts, and labels on the calibrated scale."""

from __future__ import annotations
