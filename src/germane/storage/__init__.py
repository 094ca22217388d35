"""Storage of exchanges, scores and counts in SQLite or PostgreSQL. Only this package uses SQL."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
