"""Text rendering of read models for the terminal and for reports."""

from __future__ import annotations
