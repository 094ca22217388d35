"""Rescoring of stored answers in partitions, each of which is done exactly once."""

from __future__ import annotations
