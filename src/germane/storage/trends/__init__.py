"""Trends: rollups, buckets, markers and comparisons."""

from __future__ import annotations
