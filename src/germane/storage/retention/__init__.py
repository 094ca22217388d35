"""Retention: expiry, erasure, integrity checks and disk usage."""

from __future__ import annotations
