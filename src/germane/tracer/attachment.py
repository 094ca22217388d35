"""Bringing scores to the spans they belong to: onto the span itself while it waits, else by a carrier."""

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
from germane.tracer.connection import SPAN_TEXT_LIMIT, current
from germane.tracer.privacy import QUIET_ROUTES, Privacy
from germane.tracer.provider import carrier_tracer, holders
from germane.tracer.text import clean, encode

if TYPE_CHECKING:
    from opentelemetry._logs import Logger

    from germane.exchange import Exchange
    from germane.score import Score

Key = tuple[int, int]
Place = Literal["original", "carrier", "none"]
"""Where the scores of an exchange went; ``none`` when there was no value to bring, or no span to bring it to."""
MOST_LABELS: Final = 20
"""Of one scorer, in the metrics of one process."""
_labels: dict[str, set[str]] = {}


def attach(exchange: Exchange, scores: Sequence[Score]) -> Place:
    """Bring all scores of one exchange to its span, together, and tell of each by an event and in the metrics.

    Save them first: what is attached is a copy. Scores without a value release a waiting span at once; when it has
    gone, no carrier is sent for them alone, nor for a span that was never exported.
    """
    key = int(exchange.trace_id, 16), int(exchange.span_id, 16)
    scores = [_screened(score, explains=_explains(exchange)) for score in scores]
    shown = score_attributes([score for score in scores if score.state != "skipped"])
    placed: Place = "none"
    if _attach_to_holders(key, shown):
        placed = "original" if shown else "none"
    elif exchange.traced and any(score.state == "scored" for score in scores) and carry(key, shown):
        placed = "carrier"
    for score in scores:
        _tell(exchange, key, score)
    return placed


def _explains(exchange: Exchange) -> bool:
    """Whether explanations may be shown: they may quote what was asked or answered."""
    connection = current()
    shows = connection is None or Privacy(connection).shows_output
    return shows and exchange.route not in QUIET_ROUTES


def _screened(score: Score, *, explains: bool) -> Score:
    text = score.explanation
    explanation = clean(text, SPAN_TEXT_LIMIT) if text is not None and explains else None
    return score if explanation == text else dataclasses.replace(score, explanation=explanation)


def _attach_to_holders(key: Key, shown: Mapping[str, Any]) -> bool:
    outcomes = [holder.attach(key, shown) for holder in holders()]
    return any(outcome != "gone" for outcome in outcomes)


def carry(key: Key, shown: Mapping[str, Any]) -> bool:
    """Send a new root span that carries scores, with one link to their span; False where there are no spans at all."""
    source = carrier_tracer()
    if source is None or not all(key):
        return False
    attributes = {
        conventions.SPAN_KIND: conventions.EVALUATOR,
        conventions.OPERATION_NAME: conventions.EVALUATION_OPERATION,
        **shown,
    }
    links = [Link(_span_context(key))]
    span = source.start_span(conventions.EVALUATION_OPERATION, Context(), attributes=attributes, links=links)
    span.add_event(conventions.EVALUATION_EVENT, _carried(shown))
    span.end()
    return True


def _carried(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first score of a carrier under the names of the GenAI event."""
    prefix = conventions.EVALUATION.format(0)
    names = {
        "name": conventions.EVALUATION_NAME,
        "score": conventions.EVALUATION_SCORE_VALUE,
        "label": conventions.EVALUATION_SCORE_LABEL,
        "explanation": conventions.EVALUATION_EXPLANATION,
    }
    return {ours: shown[prefix + theirs] for theirs, ours in names.items() if prefix + theirs in shown}


def score_attributes(scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores as span attributes: indexed ones for a reader, and one flat number per metric for a query."""
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
            shown[conventions.METRIC + score.scorer] = score.value
    return shown


def _provenance(score: Score) -> dict[str, Any]:
    known = {"fingerprint": score.fingerprint, "judge": score.judge, "embedder": score.embedder}
    counts = {name: score.details[name] for name in ("requested", "usable") if name in score.details}
    return {name: value for name, value in {**known, **counts}.items() if value is not None}


def _tell(exchange: Exchange, key: Key, score: Score) -> None:
    from germane.tracer.telemetry.counters import (  # the API of metrics and logs takes time to import
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
    if score.state == "skipped":  # also where a budget paid for a part of it
        return
    if score.latency is not None:
        measured.duration.record(score.latency, labels, context=here)
    if score.value is not None:
        if score.label is not None and _is_one_of_few(score.scorer, score.label):
            labels = {**labels, conventions.EVALUATION_SCORE_LABEL: score.label}
        # OpenTelemetry's histograms take no negative amounts, and drop them with a warning.
        measured.score.record(max(0.0, score.value), labels, context=here)
    logger = event_logger()
    if logger is not None:
        _emit_event(logger, here, score)


def _is_one_of_few(scorer: str, label: str) -> bool:
    """Whether a metric may bear a label: each is a series for good, and a scorer of others may write texts there."""
    known = _labels.setdefault(scorer, set())
    if len(known) < MOST_LABELS:
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


def _span_context(key: Key) -> SpanContext:
    return SpanContext(*key, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


@contextmanager
def suppressed() -> Iterator[None]:
    """Keep what happens inside out of the user's traces, and out of germane: the judge's own calls, for one."""
    here = get_current()
    for name in (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation", "suppress_language_model_instrumentation"):
        here = set_value(name, True, here)  # noqa: FBT003 - the value of a key
    token = attach_context(here)
    try:
        yield
    finally:
        detach(token)
