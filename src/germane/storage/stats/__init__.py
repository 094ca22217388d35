"""Estimators: weighted means with intervals, control variates, comparisons."""

from __future__ import annotations
