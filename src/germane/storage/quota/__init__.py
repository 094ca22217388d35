"""Budget and rate limits shared by all processes."""

from __future__ import annotations
