"""Attaching scores to spans: to the original span while it waits, otherwise through a carrier span."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, detach, get_current, set_value
from opentelemetry.context import attach as attach_context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT, current_connection
from germane.tracer.privacy import REDACTED_ROUTES, Privacy
from germane.tracer.provider import carrier_tracer
from germane.tracer.score_processor import SpanKey, score_processors, set_orphan_handler
from germane.tracer.text import clean, encode

if TYPE_CHECKING:
    from opentelemetry._logs import Logger

    from germane.exchange import Exchange
    from germane.score import Score


Attachment = Literal["original", "carrier", "none"]
"""The span to which scores were attached. ``none`` if there was no value, or no exported span."""
MAX_METRIC_LABELS: Final = 20
"""Maximum number of distinct score labels per scorer in the metrics of one process."""
_labels: dict[str, set[str]] = {}


def attach_scores(exchange: Exchange, scores: Sequence[Score]) -> Attachment:
    """Attach all scores of an exchange to its span together, and emit an event and metrics for each.

    Store the scores first: the attached ones are copies. Scores without a value release a waiting span at once. No
    carrier is exported for them alone, nor for a span that was never exported.
    """
    key = int(exchange.trace_id, 16), int(exchange.span_id, 16)
    scores = [_screened(score, shows_explanation=_shows_explanations(exchange)) for score in scores]
    shown = score_attributes([score for score in scores if score.state != "skipped"])
    attachment: Attachment = "none"
    if _attach_to_waiting_span(key, shown):
        attachment = "original" if shown else "none"
    elif exchange.traced and any(score.state == "scored" for score in scores) and export_carrier(key, shown):
        attachment = "carrier"
    for score in scores:
        _emit_telemetry(exchange, key, score)
    return attachment


def _shows_explanations(exchange: Exchange) -> bool:
    """Return whether explanations may be exported, because they may quote question and answer."""
    connection = current_connection()
    shows = connection is None or Privacy(connection).shows_output
    return shows and exchange.route not in REDACTED_ROUTES


def _screened(score: Score, *, shows_explanation: bool) -> Score:
    text = score.explanation
    explanation = clean(text, SPAN_TEXT_LIMIT) if text is not None and shows_explanation else None
    return score if explanation == text else dataclasses.replace(score, explanation=explanation)


def _attach_to_waiting_span(key: SpanKey, shown: Mapping[str, Any]) -> bool:
    outcomes = [processor.attach(key, shown) for processor in score_processors()]
    return any(outcome != "gone" for outcome in outcomes)


def export_carrier(key: SpanKey, shown: Mapping[str, Any]) -> bool:
    """Export a new root span with the scores and one link to their span. Return False if tracing is disabled."""
    carriers = carrier_tracer()
    if carriers is None or not all(key):
        return False
    attributes = {
        conventions.SPAN_KIND: conventions.EVALUATOR,
        conventions.OPERATION_NAME: conventions.EVALUATION_OPERATION,
        **shown,
    }
    links = [Link(_span_context(key))]
    span = carriers.start_span(conventions.EVALUATION_OPERATION, Context(), attributes=attributes, links=links)
    span.add_event(conventions.EVALUATION_EVENT, _event_attributes(shown))
    span.end()
    return True


def _event_attributes(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first score under the attribute names of the GenAI evaluation event."""
    prefix = conventions.EVALUATION.format(0)
    names = {
        "name": conventions.EVALUATION_NAME,
        "score": conventions.EVALUATION_SCORE_VALUE,
        "label": conventions.EVALUATION_SCORE_LABEL,
        "explanation": conventions.EVALUATION_EXPLANATION,
    }
    return {ours: shown[prefix + theirs] for theirs, ours in names.items() if prefix + theirs in shown}


def score_attributes(scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as span attributes: indexed ones for people, and one flat number per scorer for queries."""
    shown: dict[str, Any] = {}
    for number, score in enumerate(scores):
        prefix = conventions.EVALUATION.format(number)
        fields = {
            "name": score.scorer,
            "score": score.value,
            "label": score.label if score.reason is None else str(score.reason),
            "explanation": score.explanation,
            "annotator_kind": "LLM" if score.judge else "CODE",
            "identifier": f"germane@{version('germane')}",
            "metadata": encode(_provenance(score)),
        }
        shown.update({prefix + name: value for name, value in fields.items() if value is not None})
        if score.value is not None:
            shown[conventions.SCORE_ATTRIBUTE + score.scorer] = score.value
    return shown


def _provenance(score: Score) -> dict[str, Any]:
    known = {"fingerprint": score.fingerprint, "judge": score.judge, "embedder": score.embedder}
    counts = {name: score.details[name] for name in ("requested", "usable") if name in score.details}
    return {name: value for name, value in {**known, **counts}.items() if value is not None}


def _emit_telemetry(exchange: Exchange, key: SpanKey, score: Score) -> None:
    from germane.tracer.telemetry.counters import (  # importing the metrics and logs APIs takes time
        event_logger,
        instruments,
    )

    here = set_span_in_context(NonRecordingSpan(_span_context(key)), Context())
    labels = {conventions.EVALUATION_NAME: score.scorer, conventions.WORKFLOW_NAME: exchange.route}
    measured = instruments()
    for direction, tokens in (("input", score.input_tokens), ("output", score.output_tokens)):
        if tokens:
            measured.tokens.add(tokens, {**labels, conventions.TOKEN_TYPE: direction}, context=here)
    if score.cost:
        measured.cost.add(score.cost, labels, context=here)
    if score.state == "skipped":  # its requests count, even if the budget ended before the score
        return
    if score.latency is not None:
        measured.duration.record(score.latency, labels, context=here)
    if score.value is not None:
        if score.label is not None and _is_label_exported(score.scorer, score.label):
            labels = {**labels, conventions.EVALUATION_SCORE_LABEL: score.label}
        # OpenTelemetry's histograms take no negative amounts, and drop them with a warning.
        measured.score.record(max(0.0, score.value), labels, context=here)
    logger = event_logger()
    if logger is not None:
        _emit_event(logger, here, score)


def _is_label_exported(scorer: str, label: str) -> bool:
    """Return whether a label may be exported. Each creates a permanent series, and custom scorers may use free text."""
    known = _labels.setdefault(scorer, set())
    if len(known) < MAX_METRIC_LABELS:
        known.add(label)
    return label in known


def _emit_event(logger: Logger, here: Context, score: Score) -> None:
    fields = {
        conventions.EVALUATION_NAME: score.scorer,
        conventions.EVALUATION_SCORE_VALUE: score.value,
        conventions.EVALUATION_SCORE_LABEL: score.label,
        conventions.EVALUATION_EXPLANATION: score.explanation,
        conventions.ERROR_TYPE: None if score.reason is None else str(score.reason),
    }
    attributes = {name: value for name, value in fields.items() if value is not None}
    logger.emit(timestamp=time.time_ns(), context=here, event_name=conventions.EVALUATION_EVENT, attributes=attributes)


def _span_context(key: SpanKey) -> SpanContext:
    return SpanContext(*key, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


@contextmanager
def suppress_tracing() -> Iterator[None]:
    """Exclude everything inside from the user's traces and from capture, such as the judge's own calls."""
    here = get_current()
    for name in (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation", "suppress_language_model_instrumentation"):
        here = set_value(name, True, here)  # noqa: FBT003 - the value of a key
    token = attach_context(here)
    try:
        yield
    finally:
        detach(token)


set_orphan_handler(export_carrier)
