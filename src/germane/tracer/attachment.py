"""Attachment of scores to spans: to the original span while it waits, otherwise through a carrier span."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, detach, get_current, set_value
from opentelemetry.context import attach as attach_context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from germane.exchange import FORWARDING
from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT, current_connection
from germane.tracer.guard import guarded
from germane.tracer.privacy import REDACTED_ROUTES, Privacy
from germane.tracer.provider import carrier_tracer
from germane.tracer.score_processor import SpanKey, score_processors, set_orphan_handler
from germane.tracer.telemetry import emit_score
from germane.tracer.text import clean, encode

if TYPE_CHECKING:
    from germane.exchange import Exchange
    from germane.score import Score


_NOT_ATTACHED = "exporting scores failed: {} (the scores are stored nevertheless)"
Attachment = Literal["original", "carrier", "none"]
"""The span to which scores were attached; ``none`` if no score has a value or no span is exported."""


def attach_scores(exchange: Exchange, scores: Sequence[Score]) -> Attachment:
    """Attach all scores of an exchange to its span in one step, and emit an event and metrics for each score.

    Store the scores before calling this function, because the attached scores are only copies. If no score has a value,
    a waiting span is released immediately. No carrier is exported if no score has a value or the span was never
    exported.
    """
    key = int(exchange.trace_id, 16), int(exchange.span_id, 16)
    connection = current_connection()
    shows_output = connection is None or Privacy(connection).shows_output
    shows_explanation = shows_output and exchange.route not in REDACTED_ROUTES  # it may quote question and answer
    exported = [_with_explanation(score, is_shown=shows_explanation) for score in scores]
    attributes = score_attributes([score for score in exported if score.state != "skipped"])
    outcomes = [processor.attach(key, attributes) for processor in score_processors()]
    is_attached = any(outcome != "gone" for outcome in outcomes)
    if not is_attached and connection is not None and exchange.span_holder == FORWARDING:
        forwarded = guarded("scores of a forwarded span", connection.attach_forwarded, exchange.id, attributes)
        is_attached = bool(forwarded)
    attachment: Attachment = "none"
    if is_attached:
        attachment = "original" if attributes else "none"
    elif exchange.traced and any(score.state == "scored" for score in exported):
        carried = guarded("carrier span", export_carrier, key, attributes, message=_NOT_ATTACHED)
        attachment = "carrier" if carried else "none"
    span_context = set_span_in_context(NonRecordingSpan(_span_context(key)), Context())
    for score in exported:
        emit = partial(emit_score, score, exchange=exchange, context=span_context)
        guarded("metrics and events", emit, message=_NOT_ATTACHED)
    return attachment


def _with_explanation(score: Score, *, is_shown: bool) -> Score:
    text = score.explanation
    explanation = clean(text, SPAN_TEXT_LIMIT) if text is not None and is_shown else None
    return score if explanation == text else dataclasses.replace(score, explanation=explanation)


def export_carrier(key: SpanKey, evaluation: Mapping[str, Any]) -> bool:
    """Export a new root span that carries scores and links to the scored span. Return False if tracing is disabled."""
    carriers = carrier_tracer()
    if carriers is None or not all(key):
        return False
    attributes = {
        conventions.SPAN_KIND: conventions.EVALUATOR,
        conventions.OPERATION_NAME: conventions.EVALUATION_OPERATION,
        **evaluation,
    }
    links = [Link(_span_context(key))]
    span = carriers.start_span(conventions.EVALUATION_OPERATION, Context(), attributes=attributes, links=links)
    prefix = conventions.EVALUATION.format(0)  # the first score, under the attribute names of the GenAI event
    names = {
        "name": conventions.EVALUATION_NAME,
        "score": conventions.EVALUATION_SCORE_VALUE,
        "label": conventions.EVALUATION_SCORE_LABEL,
        "explanation": conventions.EVALUATION_EXPLANATION,
    }
    event = {ours: evaluation[prefix + theirs] for theirs, ours in names.items() if prefix + theirs in evaluation}
    span.add_event(conventions.EVALUATION_EVENT, event)
    span.end()
    return True


def score_attributes(scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as span attributes: indexed attributes for display, and a number per scorer for queries."""
    attributes: dict[str, Any] = {}
    for number, score in enumerate(scores):
        prefix = conventions.EVALUATION.format(number)
        provenance = {
            "fingerprint": score.fingerprint,
            "judge": score.judge,
            "embedder": score.embedder,
            "requested": score.details.get("requested"),
            "usable": score.details.get("usable"),
        }
        fields = {
            "name": score.scorer,
            "score": score.value,
            "label": score.label if score.reason is None else str(score.reason),
            "explanation": score.explanation,
            "annotator_kind": "LLM" if score.judge else "CODE",
            "identifier": f"germane@{version('germane')}",
            "metadata": encode({name: value for name, value in provenance.items() if value is not None}),
        }
        attributes.update({prefix + name: value for name, value in fields.items() if value is not None})
        if score.value is not None:
            attributes[conventions.SCORE_ATTRIBUTE + score.scorer] = score.value
    return attributes


def _span_context(key: SpanKey) -> SpanContext:
    return SpanContext(*key, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


@contextmanager
def suppress_tracing() -> Iterator[None]:
    """Exclude calls in the block, such as judge requests, from the application's traces and from capture."""
    context = get_current()
    for name in (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation", "suppress_language_model_instrumentation"):
        context = set_value(name, True, context)  # noqa: FBT003 - the value of a key
    token = attach_context(context)
    try:
        yield
    finally:
        detach(token)


set_orphan_handler(export_carrier)
