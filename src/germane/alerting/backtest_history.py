"""In-memory scores, alerts and baselines for backtests, as they were at each evaluation time.

These classes replace the parts of the store that an evaluation writes to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from germane.alert import Alert, AlertEvent, Notification, Silence
from germane.alerting.detector.score_batch import is_sampled, sampling_rate
from germane.alerting.drop.scope import score_query
from germane.baseline import Baseline
from germane.storage import (
    AlertTransaction,
    BaselineKey,
    BaselineReason,
    BaselineVersion,
    DetectorScore,
    DetectorState,
    TrackingStore,
)

DAY: Final = timedelta(days=1)
MIN_DAYS: Final = 1 / 24
"""Minimum length, in days, of the period that daily rates are estimated from."""
OVERSAMPLING: Final = 2.0
"""Ratio of loaded scores to sampled scores. It is above 1, because traffic varies from day to day."""
Stream = tuple[str, str, str]
"""Service, scorer and fingerprint."""
SET_BY_PEOPLE: Final = ("accepted", "imported")
"""Reasons of baseline versions that were set by a person."""


class HistoricalInputs:
    """Detector states, and past scores in order of arrival. Scores are loaded one day at a time.

    Args:
        store: The store that contains the scores.
        streams: Streams to load.
        since: Scores that arrived earlier are skipped.
        until: Scores that arrived later are skipped.
        clock: Returns the backtest's current time.
        attributes: Whether to load the exchanges' attributes.
        baseline_rate: Returns the sampling rate of a stream's stored baselines, or 0 if there are none.
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
            count = self._detectors.count_past_scores(score_query(BaselineKey(*stream, ""), since, until))
            rate = min(1.0, OVERSAMPLING * sampling_rate(count / days))
            self._rates[stream] = max(baseline_rate(stream), rate)

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:  # noqa: ARG002 - fixed at construction
        """Return up to ``limit`` scores that have arrived but have not been processed yet."""
        now = self._clock()
        while self._loaded_until <= now and self._loaded_until < self._until:
            since, until = self._loaded_until, min(self._loaded_until + DAY, self._until)
            scores = []
            for stream, rate in self._rates.items():
                scores += self._detectors.list_past_scores(
                    score_query(BaselineKey(*stream, ""), since, until),
                    lambda exchange_id, rate=rate: is_sampled(exchange_id, rate),  # type: ignore[misc]  # bound per stream
                    attributes=self._attributes,
                )
            self._scores += sorted(scores, key=lambda score: (score.arrived_at, score.id))
            self._loaded_until = until
        arrived = bisect_right(self._scores, now, key=lambda score: score.arrived_at)
        return self._scores[: min(arrived, limit)]

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:  # noqa: ARG002 - all in memory
        """Return the states of all detectors."""
        return list(self._states.values())

    def apply(self, step: AlertTransaction) -> None:
        """Store the detector states from an evaluation, and remove processed scores."""
        for state in step.detector_states:
            if isinstance(state, DetectorState):
                names = (state.rule, state.service, state.scorer)
                self._states[names] = replace(state, row_version=state.row_version + 1)
        if step.processed_score_ids:
            processed = set(step.processed_score_ids)
            self._scores = [score for score in self._scores if score.id not in processed]


class HistoricalAlerts:
    """The alerts, events and notifications that a backtest produces.

    Args:
        inputs: Receives the detector states and processed scores from each evaluation.
    """

    def __init__(self, inputs: HistoricalInputs) -> None:
        self._inputs = inputs
        self.alerts: dict[str, Alert] = {}
        """Alerts in their latest state, by id, in order of their start times."""
        self.fired: dict[str, Alert] = {}
        """Alerts at the time they fired, by id."""
        self.events: list[AlertEvent] = []
        self.notifications: list[Notification] = []

    def list_open(self) -> list[Alert]:
        """Return the open alerts."""
        return [alert for alert in self.alerts.values() if alert.is_open]

    def list_silences(self) -> list[Silence]:
        """Return an empty list, because a backtest does not replay user actions."""
        return []

    def commit(self, step: AlertTransaction) -> bool:
        """Apply the result of an evaluation. Always returns True."""
        self._inputs.apply(step)
        self.alerts |= {change.alert.id: change.alert for change in step.changes}
        for change in step.changes:
            if change.event is not None:
                self.events.append(change.event)
                if change.event.type == "fired":
                    self.fired[change.alert.id] = change.alert
        self.notifications += step.notifications
        return True


class BaselineHistory:
    """Baselines as they were at each evaluation time.

    Starts with the baselines that were active at ``since``, and replays later changes by people. Baselines for new
    fingerprints and routes are learned during the backtest.

    Args:
        versions: All stored versions, including superseded ones.
        since: Start of the backtest.
        clock: Returns the backtest's current time.
    """

    def __init__(self, versions: Sequence[BaselineVersion], since: datetime, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._versions: dict[int, BaselineVersion] = {}
        self._upcoming: list[tuple[datetime, BaselineVersion]] = []
        self.learned_ids: set[int] = set()
        """Ids of the versions that the backtest has learned or is learning."""
        # Restore the versions as they were at `since`, newest last, and collect later changes.
        for version in versions:
            active_from = max(version.until, version.created_at)
            is_complete = version.baseline is not None
            if version.is_provisional and active_from > since:
                continue  # the backtest learns its own provisional baselines
            if version.created_at <= since:
                if is_complete and active_from <= since:
                    self._put(replace(version, status="active"))
                elif version.until > since and (is_complete or version.status == "learning"):
                    self._versions[version.id] = replace(version, status="learning", baseline=None)
                if is_complete and active_from > since:
                    self._upcoming.append((active_from, replace(version, status="active")))
            elif version.reason in SET_BY_PEOPLE:
                if is_complete and version.until <= version.created_at:
                    self._upcoming.append((version.created_at, replace(version, status="active")))
                else:  # a person restarted learning
                    self._upcoming.append((version.created_at, replace(version, status="learning", baseline=None)))
        self._upcoming.sort(key=lambda upcoming: upcoming[0])

    def list_versions(self, *, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:  # noqa: ARG002 - all in memory
        """Return the active and learning versions."""
        while self._upcoming and self._upcoming[0][0] <= self._clock():
            self._put(self._upcoming.pop(0)[1])
        return [version for version in self.list_all() if version.status != "superseded"]

    def list_all(self) -> list[BaselineVersion]:
        """Return all versions up to now, sorted by key and version number."""
        return sorted(self._versions.values(), key=lambda version: (version.key, version.number))

    def max_sampling_rate(self, names: tuple[str, str, str]) -> float:
        """Return the highest sampling rate of a stream's stored baselines, or 0 if there are none."""
        versions = [*self._versions.values(), *(version for _, version in self._upcoming)]
        rates = [
            version.baseline.sampling_rate for version in versions if version.baseline and version.key[:3] == names
        ]
        return max(rates, default=0.0)

    def begin_learning(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        *,
        since: datetime,
        until: datetime,
        holder: tuple[str, str] | None = None,  # noqa: ARG002 - one process
    ) -> BaselineVersion | None:
        """Start learning a baseline. Return None if one is already being learned."""
        versions = [version for version in self._versions.values() if version.key == key]
        if any(version.status == "learning" for version in versions):
            return None
        started = self._new_version(key, reason, since=since, until=until)
        self._versions[started.id] = started
        return started

    def extend_learning(self, version_id: int, until: datetime, *, holder: tuple[str, str] | None = None) -> bool:  # noqa: ARG002
        """Extend learning until a given time."""
        self._versions[version_id] = replace(self._versions[version_id], until=until)
        return True

    def cancel_learning(self, version_id: int, *, holder: tuple[str, str] | None = None) -> bool:  # noqa: ARG002
        """Cancel learning."""
        self._versions[version_id] = replace(self._versions[version_id], status="superseded")
        return True

    def activate_provisional(
        self,
        learning: BaselineVersion,
        found: Baseline,
        release: tuple[str | None, str | None],
        *,
        holder: tuple[str, str] | None = None,  # noqa: ARG002 - one process
    ) -> BaselineVersion | None:
        """Activate a provisional baseline, and continue learning as the next version."""
        window = replace(learning, since=found.since, until=found.until, reason="provisional")
        self._put(_completed(window, found, release))
        return self.begin_learning(learning.key, learning.reason, since=learning.since, until=learning.until)

    def activate_baseline(self, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
        """Finish learning and replace the active version."""
        self._put(_completed(self._versions[version_id], found, release))
        return True

    def replace_baseline(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        found: Baseline,
        release: tuple[str | None, str | None],
        *,
        replaces: int | None = None,  # noqa: ARG002 - one process
    ) -> BaselineVersion | None:
        """Store and activate a baseline."""
        started = self._new_version(key, reason, since=found.since, until=found.until)
        self._put(_completed(started, found, release))
        return self._versions[started.id]

    def _new_version(
        self, key: BaselineKey, reason: BaselineReason, *, since: datetime, until: datetime
    ) -> BaselineVersion:
        """Return a learning version with the next version number."""
        numbers = [version.number for version in self._versions.values() if version.key == key]
        version = BaselineVersion(
            id=-1 - len(self.learned_ids),
            key=key,
            number=1 + max(numbers, default=0),
            status="learning",
            reason=reason,
            since=since,
            until=until,
            baseline=None,
            model=None,
            prompt_version=None,
            created_at=self._clock(),
        )
        self.learned_ids.add(version.id)
        return version

    def _put(self, newest: BaselineVersion) -> None:
        """Store a version that supersedes all others with the same key."""
        for version in list(self._versions.values()):
            if version.key == newest.key and version.id != newest.id:
                self._versions[version.id] = replace(version, status="superseded")
        self._versions[newest.id] = newest


def _completed(version: BaselineVersion, found: Baseline, release: tuple[str | None, str | None]) -> BaselineVersion:
    model, prompt_version = release
    return replace(version, status="active", baseline=found, model=model, prompt_version=prompt_version)
