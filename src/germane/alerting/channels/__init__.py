"""Channels that deliver alerts. Each channel type has its own module."""

from __future__ import annotations
