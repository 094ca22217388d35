"""Alert evaluation in memory: the production learner, detectors and alert states, without a database."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

from germane.alert import Alert, AlertChange
from germane.alerting.backtest_history import BaselineHistory
from germane.alerting.drop.watcher import DropWatcher
from germane.alerting.state_machine import AlertStateMachine
from germane.settings import Drop
from germane.storage import DetectorScore, DetectorScoreQuery, DetectorState, TrackingStore
from streams.families import Service
from streams.recipe import START, Floats

SERVICE, SCORER, FINGERPRINT = "shop", "direct_relevancy", "simulated"
HOUR = timedelta(hours=1)


@dataclass(slots=True)
class Clock:
    """A clock that the simulation sets."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


class MemoryScores:
    """One service's scores and detector states, with the interface of the store's detector tables.

    Args:
        scores: All scores, in order of arrival.
        clock: Returns the simulated time.
    """

    def __init__(self, scores: Sequence[DetectorScore], clock: Clock) -> None:
        self._scores = scores
        self._arrivals = [score.arrived_at for score in scores]
        self._by_answer = sorted(scores, key=lambda score: score.answered_at)
        self._answers = [score.answered_at for score in self._by_answer]
        self._clock = clock
        self._next = 0
        self._states: dict[tuple[str, str, str], DetectorState] = {}

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:  # noqa: ARG002
        """Return up to ``limit`` scores that have arrived but have not been processed yet."""
        return list(self._scores[self._next : min(bisect_right(self._arrivals, self._clock()), self._next + limit)])

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:  # noqa: ARG002
        """Return the states of all detectors."""
        return list(self._states.values())

    def apply(self, states: Sequence[DetectorState], processed: int) -> None:
        """Store the detector states from an evaluation, and skip the processed scores."""
        self._next += processed
        for state in states:
            self._states[state.rule, state.service, state.scorer] = replace(state, row_version=state.row_version + 1)

    def _within(self, sought: DetectorScoreQuery) -> Sequence[DetectorScore]:
        now = self._clock() + timedelta(seconds=1)
        until = now if sought.by_answer else min(sought.until, now)
        if sought.by_answer:
            part = slice(bisect_left(self._answers, sought.since), bisect_left(self._answers, sought.until))
            return [score for score in self._by_answer[part] if score.arrived_at < until]
        return self._scores[bisect_left(self._arrivals, sought.since) : bisect_left(self._arrivals, until)]

    def list_past_scores(
        self,
        sought: DetectorScoreQuery,
        chosen: Callable[[str], bool] = lambda _: True,
        *,
        attributes: bool = False,  # noqa: ARG002 - none of the scores has attributes
    ) -> list[DetectorScore]:
        """Return the scores in a window, in order of arrival."""
        return [score for score in self._within(sought) if chosen(score.exchange_id)]

    def count_past_scores(self, sought: DetectorScoreQuery) -> int:
        """Return the number of scores in a window."""
        return len(self._within(sought))

    def first_score_times(self, sought: DetectorScoreQuery) -> tuple[datetime, datetime] | None:
        """Return the earliest answer time and the earliest arrival time in a window."""
        scores = self._within(sought)
        if not scores:
            return None
        return min(score.answered_at for score in scores), scores[0].arrived_at

    def most_common_release(self, sought: DetectorScoreQuery) -> tuple[str | None, str | None]:  # noqa: ARG002
        """Return no model and no prompt version."""
        return None, None


@dataclass(frozen=True)
class MemoryStore:
    """The part of a store that drop rules read."""

    detectors: MemoryScores
    baselines: BaselineHistory


def scores_of(made: Service, delays: Floats | None = None) -> list[DetectorScore]:
    """Return a service's scores in order of arrival. Scores arrive ``delays`` hours after their answers."""
    stream, ids = made.stream, count(1)
    answered = [datetime.fromtimestamp(START, UTC) + HOUR * hour for hour in stream.hours.tolist()]
    late = [0.0] * len(answered) if delays is None else delays.tolist()
    users = [None] * len(answered) if made.users is None else [str(user) for user in made.users.tolist()]
    names = [stream.names[route] for route in stream.routes.tolist()]
    scores = [
        DetectorScore(
            id=number, service=SERVICE, route=route, scorer=SCORER, fingerprint=FINGERPRINT, exchange_id=f"{number:x}",
            value=value, is_zero=value <= 0, arrived_at=at + HOUR * delay, answered_at=at, user=user,
        )
        for number, route, value, at, delay, user in zip(
            ids, names, stream.values.tolist(), answered, late, users, strict=False
        )
    ]  # fmt: skip
    return sorted(scores, key=lambda score: score.arrived_at)


def changes(
    scores: Sequence[DetectorScore], days: int, step: int, rule: Drop | None = None
) -> Iterator[tuple[float, AlertChange]]:
    """Yield the hour and each change of an alert, with evaluations every ``step`` hours."""
    clock = Clock(datetime.fromtimestamp(START, UTC))
    inputs, versions = MemoryScores(scores, clock), BaselineHistory([], clock.now, clock)
    store = cast(TrackingStore, MemoryStore(inputs, versions))
    watcher = DropWatcher(
        store, [rule or Drop()], holder=None, clock=clock, inputs=cast(Any, inputs), versions=versions
    )
    alerts: dict[str, Alert] = {}
    ids = count(1)
    for hour in range(step, 24 * days + 1, step):
        clock.now = datetime.fromtimestamp(START, UTC) + HOUR * hour
        more = True
        while more:
            opened = [alert for alert in alerts.values() if alert.is_open]
            found = watcher.evaluate({alert.key: alert for alert in opened})
            more = found.more
            inputs.apply(found.detector_states, len(found.processed_score_ids))
            machine = AlertStateMachine(clock.now, lambda: f"{next(ids):032x}")
            for change in machine.apply(opened, found.results, has_rule=lambda _: True):
                alerts[change.alert.id] = change.alert
                if change.event is not None:
                    yield float(hour), change
