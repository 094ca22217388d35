"""Capture of exchanges inside the application, and attachment of their scores to spans.

Apart from the testing tools, no other package imports OpenTelemetry at runtime.
"""

from __future__ import annotations

from germane.tracer.annotation import feedback, mark, record_exchange, record_score
from germane.tracer.attachment import attach_scores, suppress_tracing
from germane.tracer.connection import BacklogState, TelemetryState
from germane.tracer.current import CurrentExchange, add_contexts, current_exchange, set_attribute, set_question
from germane.tracer.decorators import observe, observed_routes, retrieval
from germane.tracer.exporters import expose_registry
from germane.tracer.guard import strict
from germane.tracer.lifecycle import connect, disconnect, flush
from germane.tracer.score_processor import ScoreSpanProcessor, exchanges_with_waiting_spans
from germane.tracer.selectors import Call, is_async
from germane.tracer.telemetry import (
    are_gauges_exported,
    count_forwarded,
    count_outcomes,
    count_received,
    count_watched,
)
from germane.tracer.watching import watch

__all__ = [
    "BacklogState",
    "Call",
    "CurrentExchange",
    "ScoreSpanProcessor",
    "TelemetryState",
    "add_contexts",
    "are_gauges_exported",
    "attach_scores",
    "connect",
    "count_forwarded",
    "count_outcomes",
    "count_received",
    "count_watched",
    "current_exchange",
    "disconnect",
    "exchanges_with_waiting_spans",
    "expose_registry",
    "feedback",
    "flush",
    "is_async",
    "mark",
    "observe",
    "observed_routes",
    "record_exchange",
    "record_score",
    "retrieval",
    "set_attribute",
    "set_question",
    "strict",
    "suppress_tracing",
    "watch",
]
