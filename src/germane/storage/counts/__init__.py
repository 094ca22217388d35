"""Exchange counts by outcome."""

from __future__ import annotations
