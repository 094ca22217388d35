"""Writing captured exchanges: the writer thread, rate limit and drop counts."""

from __future__ import annotations
