"""Prompt templates, their inputs, and the parsing of replies."""

from __future__ import annotations
