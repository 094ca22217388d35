"""Runs inside the user's application: captures exchanges, and brings their scores to the spans they belong to.

OpenTelemetry lives here and nowhere else.
"""

from __future__ import annotations

from germane.tracer.annotation import feedback, mark, record
from germane.tracer.attachment import attach, suppressed
from germane.tracer.current import CurrentExchange, add_contexts, current_exchange, set_attribute
from germane.tracer.guard import strict
from germane.tracer.lifecycle import connect, disconnect, flush
from germane.tracer.observe import observe, retrieval, routes
from germane.tracer.prometheus import expose
from germane.tracer.provider import hold
from germane.tracer.selectors import Call, Selector
from germane.tracer.telemetry.gauges import count, is_measured
from germane.tracer.telemetry.meters import State, Waiting

__all__ = [
    "Call",
    "CurrentExchange",
    "Selector",
    "State",
    "Waiting",
    "add_contexts",
    "attach",
    "connect",
    "count",
    "current_exchange",
    "disconnect",
    "expose",
    "feedback",
    "flush",
    "hold",
    "is_measured",
    "mark",
    "observe",
    "record",
    "retrieval",
    "routes",
    "set_attribute",
    "strict",
    "suppressed",
]
