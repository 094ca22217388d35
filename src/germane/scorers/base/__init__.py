"""Building blocks shared by all scorers."""

from __future__ import annotations
