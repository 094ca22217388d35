"""Evaluation of data sets with the same scorers that run in production."""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
