"""Periodic jobs: delivery of notifications, rollups, retention and queue metrics."""

from __future__ import annotations
