"""Building blocks that all scorers share."""

from __future__ import annotations
