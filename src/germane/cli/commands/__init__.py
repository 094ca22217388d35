"""Subcommands of ``germane``, one per module."""

from __future__ import annotations
