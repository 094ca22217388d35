"""Budget and rate limits of judge requests within one process."""

from __future__ import annotations
