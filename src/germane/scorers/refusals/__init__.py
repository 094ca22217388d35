"""Rules that recognize refusals and other noncommittal answers."""

from __future__ import annotations
