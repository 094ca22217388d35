"""Exports and imports exchanges."""

from __future__ import annotations
