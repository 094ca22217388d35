"""Answer searches, and queries for scores and labels."""

from __future__ import annotations
