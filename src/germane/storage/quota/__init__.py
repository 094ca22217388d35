"""The budget and the rate limits, which all processes share."""

from __future__ import annotations
