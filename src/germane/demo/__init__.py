"""A small but real RAG application to monitor.

It answers questions from a product's documentation, and one of its routes breaks.
"""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
