"""Conversion of a finished trace to its exchange, with the privacy settings and limits applied."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from germane.errors import error_location
from germane.exchange import Exchange, Redact, sampling_key_for
from germane.receiver.spans import convert_items, has_remote_parent, split_requests
from germane.recognizers import (
    NAME_LENGTH,
    RECOGNIZED,
    WITHOUT_EXCHANGE,
    LogData,
    Recognized,
    Recognizer,
    SpanData,
    SpanReading,
    Unreadable,
    UnreadableReason,
    create_exchange,
    outline_spans,
    recognize_all,
)
from germane.score import UnscoredReason
from germane.settings import Settings
from germane.storage import ReceivedTrace, SampleLimiter, TraceOutcome, TrafficThinner, UncapturedTrace, WatchKey
from germane.trace_outline import UnreadableTrace

MAX_SERVICES: Final = 200
MAX_ROUTES: Final = 200
"""Maximum number of routes per service. Further ones are called ``other``, because names of spans may contain ids."""
MAX_SCOPES: Final = 100
OTHER: Final = "other"
_MISSING_SPANS: Final = frozenset(
    {
        UnreadableReason.MODEL_NOT_TRACED,
        UnreadableReason.NO_QUESTION,
        UnreadableReason.NO_ANSWER,
        UnreadableReason.INCOMPLETE,
    }
)
"""Reasons of traces that may become readable with spans that arrive later."""
_MAX_AGE: Final = 366 * 86_400.0
_logger = logging.getLogger("germane.receiver")


class ExchangeBuilder:
    """Turns the spans of a finished trace into an exchange.

    Args:
        settings: The settings of the process.
        redact: Called with each text before it is stored. If it raises an exception, the text is dropped.
        custom: Recognizers that are tried before the built-in ones. If one raises an exception, the others are tried.
    """

    def __init__(self, settings: Settings, *, redact: Redact | None, custom: Sequence[Recognizer] = ()) -> None:
        self._settings = settings
        self._redact = redact
        self._recognizers = [partial(self._read_safely, recognizer) for recognizer in custom]
        self._thinner = TrafficThinner(settings.max_exchanges_per_minute)
        self._routes: dict[str, set[str]] = {}
        self._scopes: set[str] = set()
        self._samples = SampleLimiter()
        self._logged: set[str] = set()

    def build(self, trace: ReceivedTrace) -> TraceOutcome:
        """Return a trace's exchange, or the outcome to count if there is none. Never raises.

        The exchange's id is derived from the trace and its root span, so that a trace never yields two exchanges.
        """
        try:
            outcomes = self._request_outcomes(trace)
        except Exception as error:  # noqa: BLE001 - a trace that cannot be read must not block all others
            self._log_once("a trace cannot be read", error)
            return self._failed_outcome(trace)
        if not outcomes:
            return TraceOutcome(trace, None)
        has_exchange = any(isinstance(outcome.result, Exchange) for outcome in outcomes)
        awaits_spans = any(outcome.counted and _awaits_spans(trace, outcome.counted.outcome) for outcome in outcomes)
        return replace(outcomes[0], others=tuple(outcomes[1:]), is_postponed=awaits_spans and not has_exchange)

    def _request_outcomes(self, trace: ReceivedTrace) -> list[TraceOutcome]:
        """Return the outcome of each request in a trace. Spans that were finished before are not read again."""
        spans, logs = convert_items(trace.items)
        is_reopened = bool(trace.finished_keys)
        requests = split_requests(spans, logs, trace.finished_spans) if is_reopened else [(spans, logs)]
        return [
            self._outcome(trace, spans, logs, found)
            for spans, logs in requests
            if spans
            for found in recognize_all(spans, logs, recognizers=self._recognizers)
        ]

    def _failed_outcome(self, trace: ReceivedTrace) -> TraceOutcome:
        """Return the outcome of a trace whose conversion raised an exception."""
        first, now = trace.items[0], datetime.now(UTC)
        service, route, scope = self._bounded_names(first.service, OTHER, first.scope)
        counted = WatchKey.at(int(now.timestamp()) * 10**9, service, scope, UnreadableReason.RECOGNITION_FAILED.value)
        return TraceOutcome(trace, UncapturedTrace(service, route, now, UnscoredReason.UNREADABLE), counted)

    def _outcome(
        self, trace: ReceivedTrace, spans: list[SpanData], logs: list[LogData], found: Recognized | Unreadable
    ) -> TraceOutcome:
        services = {item.key: item.service for item in trace.items}
        if isinstance(found, Recognized) and not trace.dropped:
            # In a trace of several services, the exchange belongs to the one that was asked, not to its caller.
            service, outcome = services[found.sources["question"][0].span_id], RECOGNIZED
        else:
            service = next((services[key] for key in found.root_span_ids if key in services), trace.items[0].service)
            reason = UnreadableReason.TOO_LARGE if isinstance(found, Recognized) else found.reason
            outcome = reason.value
        service, route, scope = self._bounded_names(service, found.route, found.scope)
        started_at = plausible_time(found.start, trace.received_at)
        counted = WatchKey.at(int(started_at.timestamp()) * 10**9, service, scope, outcome)
        if outcome in WITHOUT_EXCHANGE:
            return TraceOutcome(trace, None, counted)
        if not isinstance(found, Recognized) or trace.dropped:
            uncaptured = UncapturedTrace(service, route, started_at, UnscoredReason.UNREADABLE)
            sample = self._sample(trace, counted, started_at, spans, logs)
            fix = found.fix if isinstance(found, Unreadable) else UnreadableReason.TOO_LARGE.fix
            return TraceOutcome(trace, uncaptured, counted, fix=fix, sample=sample)
        key, probability = sampling_key_for(trace.trace_id), self._thinner.next_probability()
        if key > probability:
            limited = UncapturedTrace(service, route, started_at, UnscoredReason.EXCHANGE_LIMIT)
            return TraceOutcome(trace, limited, counted)
        root = next(span for span in spans if span.span_id == found.root_span_ids[0])
        exchange = create_exchange(
            found,
            root,
            screen=self._screen,
            service=service,
            route=route,
            started_at=started_at,
            sampling_key=key,
            capture_probability=probability,
        )
        root_item = next(item for item in trace.items if item.key == root.span_id)
        ended = found.start / 1e9 + exchange.duration
        return TraceOutcome(trace, exchange, counted, is_called=has_remote_parent(root_item), ended=ended)

    def _sample(
        self,
        trace: ReceivedTrace,
        counted: WatchKey,
        started_at: datetime,
        spans: Sequence[SpanData],
        logs: Sequence[LogData],
    ) -> UnreadableTrace | None:
        """Return the outline of an unreadable trace, or None if the trace is not sampled."""
        _, service, scope, reason = counted
        if not spans or self._settings.capture == "none" or _awaits_spans(trace, reason):
            return None
        if not self._samples.admit(service, scope, reason):
            return None
        outlines, omitted = outline_spans(spans, logs)
        return UnreadableTrace(
            trace_id=trace.trace_id,
            service=service,
            scope=scope,
            reason=reason,
            started_at=started_at,
            spans=outlines,
            spans_omitted=omitted + trace.dropped,
        )

    def _screen(self, _: str, text: str) -> str | None:
        """Return the redacted and truncated text, or None if it must not be stored or redaction failed."""
        if self._settings.capture == "none":
            return None
        if self._redact is not None:
            try:
                redacted: object = self._redact(text)
            except Exception as error:  # noqa: BLE001 - the user's function; a text that was not redacted is not stored
                self._log_once("redaction failed, so texts are not stored", error)
                return None
            if not isinstance(redacted, str):
                self._log_once("redaction failed, so texts are not stored", TypeError())
                return None
            text = redacted
        return text[: self._settings.max_text_length]

    def _bounded_names(self, service: str, route: str, scope: str) -> tuple[str, str, str]:
        """Return the names under which an exchange is stored and counted. Names beyond the limits become ``other``."""
        if scope not in self._scopes and len(self._scopes) >= MAX_SCOPES:
            scope = OTHER
        self._scopes.add(scope)
        if service not in self._routes and len(self._routes) >= MAX_SERVICES:
            service = OTHER
        known, route = self._routes.setdefault(service, set()), str(route)[:NAME_LENGTH].strip() or OTHER
        if route not in known and len(known) >= MAX_ROUTES:
            return service, OTHER, scope
        known.add(route)
        return service, route, scope

    def _read_safely(self, recognizer: Recognizer, span: SpanData) -> SpanReading | None:
        try:
            return recognizer(span)
        except Exception as error:  # noqa: BLE001 - a function of the user
            self._log_once("a registered recognizer failed", error)
            return None

    def _log_once(self, problem: str, error: BaseException) -> None:
        """Log a problem once, with the location of the error. The error message may quote texts, so it is omitted."""
        if problem not in self._logged:
            self._logged.add(problem)
            _logger.warning("%s: %s", problem, error_location(error))


def _awaits_spans(trace: ReceivedTrace, outcome: str) -> bool:
    """Return whether a trace with this outcome may become readable when more spans arrive."""
    return not trace.is_final and not trace.dropped and outcome in _MISSING_SPANS


def plausible_time(nanoseconds: int, received_at: float = math.inf) -> datetime:
    """Return the time of a span.

    A span cannot have started after it was received, so the clock of a sender that is ahead is limited to that time. An
    implausible time in the past, such as 0, is replaced by it, too.
    """
    latest, started = min(datetime.now(UTC).timestamp(), received_at), nanoseconds / 1e9
    return datetime.fromtimestamp(started if latest - _MAX_AGE < started < latest else latest, UTC)
