"""Queries for answers and their scores."""

from __future__ import annotations
