"""Models that run in this process or beside it, without a server."""

from __future__ import annotations
