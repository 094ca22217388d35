"""The write path of captured exchanges: writer thread, exchange limit and drop counts."""

from __future__ import annotations
