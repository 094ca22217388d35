"""The write path for captured exchanges: writer thread, exchange limit and drop counts."""

from __future__ import annotations
