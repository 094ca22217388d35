"""The background thread that recognizes the exchanges in finished traces and stores them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from germane import sanitize
from germane.errors import ContentRefused, StorageError, error_location
from germane.exchange import Exchange
from germane.receiver.exchanges import ExchangeBuilder
from germane.receiver.staging import StagingWriter
from germane.receiver.threads import BackgroundThread
from germane.recognizers import RECOGNIZED, WITHOUT_EXCHANGE, UnreadableReason
from germane.score import UnscoredReason
from germane.storage import TraceOutcome, TrackingStore, UncapturedTrace, new_worker_id

POLL_INTERVAL: Final = 0.5
"""Seconds between two searches for finished traces, if the last one found few."""
MAX_TRACES: Final = 200
"""Maximum number of traces that are claimed at once."""
MAX_CLAIMED_SIZE: Final = 32 * 2**20
"""Maximum size in bytes of the traces that are claimed at once, unless a single one is larger."""
CLAIM_LEASE: Final = timedelta(seconds=60)
REMEMBERED: Final = timedelta(hours=1)
"""Time for which finished traces are remembered."""
MEASURE_INTERVAL: Final = 1.0
"""Seconds between two measurements of the staging area."""
EXPIRY_INTERVAL: Final = 30.0
"""Seconds between two deletions of remembered traces."""
_MAX_LINES: Final = 20
_logger = logging.getLogger("germane.receiver")


@dataclass(slots=True)
class TraceCounts:
    """Counts of finished traces by outcome: seen = recognized + limited + ignored + unreadable."""

    seen: int = 0
    recognized: int = 0
    """Stored as an exchange."""
    limited: int = 0
    """Recognized, but above ``max_exchanges_per_minute``."""
    ignored: int = 0
    """Without anything to score: evaluations, traces of decorated handlers, and traces without a language model."""
    unreadable: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Counts by service, instrumentation scope and reason."""
    fixes: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """What to do about them. It depends on the instrumentation, which the scope does not always name."""

    def add(self, outcome: TraceOutcome) -> None:
        """Count a trace whose outcome is stored."""
        self.seen += 1
        _, service, scope, result = outcome.counted or (0, "", "", UnreadableReason.NOT_AN_EXCHANGE.value)
        if result == RECOGNIZED:
            self.recognized += isinstance(outcome.result, Exchange)
            self.limited += not isinstance(outcome.result, Exchange)
        elif result in WITHOUT_EXCHANGE:
            self.ignored += 1
        else:
            self.unreadable[service, scope, result] += 1
            self.fixes[service, scope, result] = outcome.fix or UnreadableReason(result).fix

    def describe(self) -> list[str]:
        """Return the counts as lines of text without control characters."""
        unreadable = sum(self.unreadable.values())
        parts = [f"{self.recognized:,} recognized"]
        parts += [f"{self.limited:,} above max_exchanges_per_minute"] if self.limited else []
        parts += [f"{self.ignored:,} without an exchange"] if self.ignored else []
        parts += [f"{unreadable:,} unreadable"] if unreadable else []
        lines = [f"{self.seen:,} {'trace' if self.seen == 1 else 'traces'}: {', '.join(parts)}"]
        for (service, scope, reason), count in self.unreadable.most_common(_MAX_LINES):
            source = f"{sanitize.line(service, 60)}, {sanitize.line(scope or 'no scope', 80)}"
            fix = self.fixes[service, scope, reason]
            lines.append(f"  {count:,} unreadable ({reason}) of {source}: {sanitize.line(fix, 300)}")
        return lines


class TraceFinisher(BackgroundThread):
    """Claims finished traces and stores their exchanges, in a background thread.

    Args:
        store: The tracking store.
        builder: Builds the exchanges.
        staging: Periodically measures the size of the staged data.
        scorers: Names of the scorers for which traces without an exchange are counted.
        max_span_delay: Seconds for which the spans of exchanges wait for their scores before they are forwarded.
    """

    def __init__(
        self,
        store: TrackingStore,
        builder: ExchangeBuilder,
        staging: StagingWriter,
        scorers: Sequence[str] = (),
        *,
        max_span_delay: float = 0.0,
    ) -> None:
        super().__init__("germane-traces")
        self._store = store
        self._builder = builder
        self._staging = staging
        self._scorers = tuple(scorers)
        self._max_span_delay = max_span_delay
        self.counts = TraceCounts()
        self.postponed = 0
        """Number of times that a trace was postponed, because spans with its question or answer may be missing."""
        self._owner = new_worker_id()
        self._built: list[TraceOutcome] = []
        """Outcomes of claimed traces that are not stored yet, because the database has failed."""
        self._has_failed = False
        self._expires_at = self._measures_at = 0.0

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                finished = self._finish_traces()
                if time.monotonic() >= self._measures_at:
                    self._measures_at = time.monotonic() + MEASURE_INTERVAL
                    self._staging.measure()
                if time.monotonic() >= self._expires_at:
                    self._expires_at = time.monotonic() + EXPIRY_INTERVAL
                    while self._store.received.expire(age=REMEMBERED) and not self.stopping.is_set():
                        pass
            except Exception as error:  # noqa: BLE001 - if the thread ended, traces would never be finished
                finished = 0
                if not self._has_failed:
                    self._has_failed = True
                    problem = str(error) if isinstance(error, StorageError) else error_location(error)
                    _logger.warning("%s; traces are finished later", problem)
            else:
                self._has_failed = False
            if finished < MAX_TRACES:
                self.stopping.wait(POLL_INTERVAL)

    def _finish_traces(self) -> int:
        """Process the traces that are complete, and return their number."""
        if not self._built:
            options = self._staging.options
            claimed = self._store.received.claim(
                self._owner, options=options, limit=MAX_TRACES, max_size=MAX_CLAIMED_SIZE, lease=CLAIM_LEASE
            )
            self._built = [self._builder.build(trace) for trace in claimed]
        outcomes = self._built
        try:
            self._complete(outcomes)
        except ContentRefused:
            self._store.exchanges.check_accepts_rows()  # otherwise, the traces wait
            # A row that the database rejects must not block the others.
            for outcome in outcomes:
                try:
                    self._complete([outcome])
                except ContentRefused as error:
                    _logger.warning("trace %s is dropped: %s", outcome.trace.trace_id, error)
                    first, *others = [uncaptured(part) for part in outcome.parts]
                    self._complete([replace(first, others=tuple(others))])
        self._built = []
        return len(outcomes)

    def _complete(self, outcomes: Sequence[TraceOutcome]) -> None:
        from germane.tracer import count_watched

        if outcomes:
            self.postponed += sum(outcome.is_postponed for outcome in outcomes)
            options, delay = self._staging.options, self._max_span_delay
            completed = self._store.received.complete(
                self._owner, outcomes, self._scorers, options=options, max_span_delay=delay
            )
            for outcome in completed:
                for part in outcome.parts:
                    self.counts.add(part)
                    if part.counted is not None:
                        _, _, scope, result = part.counted
                        count_watched(scope, None if result == RECOGNIZED else result, 1)


def uncaptured(outcome: TraceOutcome) -> TraceOutcome:
    """Return the outcome of a trace whose exchange the database rejects."""
    result, counted = outcome.result, outcome.counted
    if result is not None:
        result = UncapturedTrace(result.service, result.route, result.started_at, UnscoredReason.UNREADABLE)
    if counted is not None:
        counted = counted._replace(outcome=UnreadableReason.TOO_LARGE.value)
    return TraceOutcome(outcome.trace, result, counted)
