"""In-memory alerts and detector inputs of a backtest. They replace the parts of the store that an evaluation writes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from germane.alert import Alert, AlertEvent, Notification, Silence
from germane.alerting.detector import is_sampled, sampling_rate
from germane.storage import AlertTransaction, DetectorScore, DetectorScoreQuery, DetectorState, TrackingStore

DAY: Final = timedelta(days=1)
MIN_DAYS: Final = 1 / 24
"""Rates per day are estimated from at least this length of time."""
OVERSAMPLING: Final = 2.0
"""Scores that are loaded, relative to those that a detector samples: traffic varies between days."""
Stream = tuple[str, str, str]
"""Service, scorer and fingerprint."""


class HistoricalInputs:
    """Past scores in order of arrival, loaded one day at a time, and the states of detectors.

    Args:
        store: Where the scores are.
        streams: Streams to load.
        since: Earlier scores are skipped.
        until: Later scores are skipped.
        clock: Current time of the backtest.
        attributes: Whether to load the attributes of exchanges.
        baseline_rate: Sampling rate of a stream's existing baselines, or 0.
    """

    def __init__(
        self,
        store: TrackingStore,
        streams: Collection[Stream],
        *,
        since: datetime,
        until: datetime,
        clock: Callable[[], datetime],
        attributes: bool,
        baseline_rate: Callable[[Stream], float] = lambda _: 0.0,
    ) -> None:
        self._detectors = store.detectors
        self._clock = clock
        self._loaded_until = since
        self._until = until
        self._attributes = attributes
        self._scores: list[DetectorScore] = []
        self._states: dict[tuple[str, str, str], DetectorState] = {}
        days = max((until - since) / DAY, MIN_DAYS)
        self._rates = {}
        for stream in sorted(streams):
            count = self._detectors.count_past_scores(_query(stream, since, until))
            rate = min(1.0, OVERSAMPLING * sampling_rate(count / days))
            self._rates[stream] = max(baseline_rate(stream), rate)

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:  # noqa: ARG002 - fixed at construction
        """Return up to ``limit`` scores that have arrived and have not been processed."""
        now = self._clock()
        while self._loaded_until <= now and self._loaded_until < self._until:
            self._load_day()
        arrived = bisect_right(self._scores, now, key=lambda score: score.arrived_at)
        return self._scores[: min(arrived, limit)]

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:  # noqa: ARG002 - all in memory
        """Return the states of all detectors."""
        return list(self._states.values())

    def apply(self, step: AlertTransaction) -> None:
        """Store detector states and remove processed scores."""
        for state in step.detector_states:
            if isinstance(state, DetectorState):
                names = (state.rule, state.service, state.scorer)
                self._states[names] = replace(state, row_version=state.row_version + 1)
        if step.processed_score_ids:
            processed = set(step.processed_score_ids)
            self._scores = [score for score in self._scores if score.id not in processed]

    def _load_day(self) -> None:
        since, until = self._loaded_until, min(self._loaded_until + DAY, self._until)
        scores = []
        for stream, rate in self._rates.items():
            scores += self._detectors.list_past_scores(
                _query(stream, since, until),
                lambda exchange_id, rate=rate: is_sampled(exchange_id, rate),  # type: ignore[misc]  # bound per stream
                attributes=self._attributes,
            )
        self._scores += sorted(scores, key=lambda score: (score.arrived_at, score.id))
        self._loaded_until = until


class HistoricalAlerts:
    """Alerts, events and notifications of a backtest.

    Args:
        inputs: Receives the detector states and processed scores of each evaluation.
    """

    def __init__(self, inputs: HistoricalInputs) -> None:
        self._inputs = inputs
        self.alerts: dict[str, Alert] = {}
        """By id, in the order in which they began, in their latest state."""
        self.fired: dict[str, Alert] = {}
        """By id, as they were when they fired."""
        self.events: list[AlertEvent] = []
        self.notifications: list[Notification] = []

    def list_open(self) -> list[Alert]:
        """Return the open alerts."""
        return [alert for alert in self.alerts.values() if alert.is_open]

    def list_silences(self) -> list[Silence]:
        """Return no silences: a backtest does not repeat what people did."""
        return []

    def commit(self, step: AlertTransaction) -> bool:
        """Apply an evaluation."""
        self._inputs.apply(step)
        self.alerts |= {change.alert.id: change.alert for change in step.changes}
        for change in step.changes:
            if change.event is not None:
                self.events.append(change.event)
                if change.event.type == "fired":
                    self.fired[change.alert.id] = change.alert
        self.notifications += step.notifications
        return True


def _query(stream: Stream, since: datetime, until: datetime) -> DetectorScoreQuery:
    service, scorer, fingerprint = stream
    return DetectorScoreQuery(service=service, scorer=scorer, fingerprint=fingerprint, since=since, until=until)
