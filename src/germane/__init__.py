"""Tells you, minutes after it happens, that your production RAG has stopped answering the question."""

from __future__ import annotations

from germane.tracer import add_contexts, current_exchange, hold, observe, retrieval, set_attribute

__all__ = [
    "add_contexts",
    "current_exchange",
    "hold",
    "observe",
    "retrieval",
    "set_attribute",
]
