"""Estimators: weighted means with intervals, control variates and comparisons."""

from __future__ import annotations
