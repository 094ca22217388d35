"""Sampling: which exchanges are scored, and with what probability."""

from __future__ import annotations
