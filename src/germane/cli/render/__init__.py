"""Read models as text and JSON."""

from __future__ import annotations
