"""Queries over answers and their scores."""

from __future__ import annotations
