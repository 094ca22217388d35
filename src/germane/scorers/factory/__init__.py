"""Construction of scorers from settings."""

from __future__ import annotations
