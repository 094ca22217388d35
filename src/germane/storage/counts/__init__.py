"""Counts of exchanges by outcome."""

from __future__ import annotations
