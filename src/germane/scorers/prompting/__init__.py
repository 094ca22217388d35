"""Prompt templates and their inputs, and parsers for replies."""

from __future__ import annotations
