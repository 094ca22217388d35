"""Prompt templates, and what scorers do with the replies."""

from __future__ import annotations
