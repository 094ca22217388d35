"""Scoring progress: unscored answers, typical delays between scores, and failing tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from sqlalchemy import func, select

from germane.score import UnscoredReason
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import exchange, score, scoring_task, tally

SLOT_SECONDS: Final = 300
"""Length of a time slot. Scores in the same slot count as one, because scores arrive in bursts."""
MAX_SCORES_READ: Final = 5_000
"""Maximum number of scores, newest first, from which the typical delay is computed."""
MIN_GAPS: Final = 20
"""Minimum number of gaps required to compute a typical delay."""
PERCENTILE: Final = 0.99
MIN_FAILURES: Final = 3
"""Number of failures in a row from which a scorer counts as not scoring, if each alone may be due to the answer."""
_EXPECTED_SKIPS: Final = {
    UnscoredReason.NOT_SAMPLED,
    UnscoredReason.FILTERED,
    UnscoredReason.MISSING_INPUT,
    UnscoredReason.EXCHANGE_LIMIT,
    UnscoredReason.BUDGET,
    UnscoredReason.UNREADABLE,
}
"""Skip reasons for answers that were not meant to be scored. A separate rule covers the budget."""
_OF_SINGLE_ANSWERS: Final = {
    UnscoredReason.JUDGE_REFUSED,
    UnscoredReason.UNPARSABLE,
    UnscoredReason.NO_USABLE_QUESTION,
    UnscoredReason.OUT_OF_RANGE,
}
"""Reasons for failures that may be due to the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringFlow:
    """One scorer's progress through one service's answers."""

    service: str
    scorer: str
    last_scored_minute: datetime | None = None
    """Minute of the newest scored answer; None if no answer in the window is scored."""
    last_score_at: datetime | None = None
    """Time at which the newest scored answer was scored. With a backlog, this can be long after the answer."""
    waiting_since: datetime | None = None
    """Minute of the oldest answer after ``last_scored_minute`` that is still to be scored."""
    waiting: int = 0
    """Number of answers after ``last_scored_minute`` that are waiting or have failed. Failures that may be due to the
    answer count from :data:`MIN_FAILURES` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingTasks:
    """A group of tasks that failed for the same reason and are waiting for a retry."""

    service: str
    route: str
    scorer: str
    reason: str
    tasks: int


class _MinuteCounts:
    """Numbers of answers per minute, of one service and scorer."""

    def __init__(self) -> None:
        self.scored: Counter[datetime] = Counter()
        self._wanted: Counter[datetime] = Counter()
        """The answers that were meant to be scored."""
        self._failures: Counter[datetime] = Counter()
        """The failures that may be due to the answer."""

    def add(self, minute: datetime, outcome: str, reason: str, count: int) -> None:
        if outcome == "scored":
            self.scored[minute] += count
        elif outcome == "seen":
            self._wanted[minute] += count
        elif outcome == "skipped" and reason in _EXPECTED_SKIPS:
            self._wanted[minute] -= count
        elif outcome == "failed" and reason in _OF_SINGLE_ANSWERS:
            self._failures[minute] += count

    @property
    def last_scored(self) -> datetime | None:
        """The newest minute with a scored answer, if any."""
        return max((minute for minute, count in self.scored.items() if count > 0), default=None)

    def waiting_after(self, last: datetime | None) -> dict[datetime, int]:
        """Return how many answers after a minute are still to be scored."""
        after = [minute for minute in self._wanted if last is None or minute > last]
        # A scorer that fails on one of the last answers before a quiet period has not stopped.
        is_few = sum(self._failures[minute] for minute in after) < MIN_FAILURES
        counts = {minute: self._wanted[minute] - is_few * self._failures[minute] for minute in after}
        return {minute: count for minute, count in counts.items() if count > 0}


class ScoringProgress(StoreComponent):
    """Measures the progress of scoring, for the rules ``no_data`` and ``scorer_error``."""

    def list_flows(
        self, *, since: datetime, until: datetime | None = None, includes_route: Callable[[str], bool] = lambda _: True
    ) -> list[ScoringFlow]:
        """Return the scoring progress for answers since a given time, one entry per service and scorer.

        With ``until``, report the progress as of this time: answers that were scored later count as unscored.
        ``includes_route`` is called with a route's name.
        """
        names = (tally.c.minute, tally.c.service, tally.c.route, tally.c.scorer, tally.c.outcome, tally.c.reason)
        query = select(*names, func.sum(tally.c.count).label("n")).where(tally.c.minute >= since).group_by(*names)
        counts: defaultdict[tuple[str, str], _MinuteCounts] = defaultdict(_MinuteCounts)
        flows = []
        with self._database.read() as connection:
            for row in connection.execute(query if until is None else query.where(tally.c.minute < until)):
                if includes_route(row.route):
                    counts[row.service, row.scorer].add(row.minute, row.outcome, row.reason, int(row.n))
            if until is not None:  # take back the answers that were scored later
                columns = (score.c.service, score.c.route, score.c.scorer, score.c.started_at)
                window = (score.c.started_at >= since, score.c.started_at < until)
                later = connection.execute(select(*columns).where(*window, score.c.scored_at > until))
                for service, route, scorer, started_at in later:
                    if (service, scorer) in counts and includes_route(route):
                        counts[service, scorer].scored[started_at.replace(second=0, microsecond=0)] -= 1
            for (service, scorer), minutes in sorted(counts.items()):
                last = minutes.last_scored
                waiting = minutes.waiting_after(last)
                newest = select(score.c.scored_at).order_by(score.c.started_at.desc()).limit(1)
                newest = newest.where(score.c.service == service, score.c.scorer == scorer, score.c.started_at >= since)
                if until is not None:
                    newest = newest.where(score.c.started_at < until, score.c.scored_at <= until)
                flow = ScoringFlow(
                    service=service,
                    scorer=scorer,
                    last_scored_minute=last,
                    last_score_at=connection.execute(newest).scalar_one_or_none(),
                    waiting_since=min(waiting, default=None),
                    waiting=sum(waiting.values()),
                )
                flows.append(flow)
        return flows

    def typical_score_delay(
        self, service: str, scorer: str, *, since: datetime, until: datetime | None = None
    ) -> timedelta | None:
        """Return the typical maximum time between consecutive scores, or None if there are too few scores.

        This is the sum of two 99th percentiles: that of the gaps between five-minute slots with scored answers, and
        that of the delay from answer to score. With ``until``, return the value as of that time.
        """
        query = select(score.c.started_at, score.c.scored_at).where(
            score.c.service == service, score.c.scorer == scorer, score.c.started_at >= since
        )
        query = query if until is None else query.where(score.c.started_at < until, score.c.scored_at <= until)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(score.c.started_at.desc()).limit(MAX_SCORES_READ)).all()
        slots = sorted({int(row.started_at.timestamp()) // SLOT_SECONDS for row in rows})
        gaps = [SLOT_SECONDS * (after - before) for before, after in pairwise(slots)]
        if len(gaps) < MIN_GAPS:
            return None
        lags = [max(0.0, (row.scored_at - row.started_at).total_seconds()) for row in rows if row.scored_at is not None]
        return timedelta(seconds=_percentile(gaps) + _percentile(lags))

    def list_failing(self) -> list[FailingTasks]:
        """Return the number of failed tasks that are waiting for a retry, by service, route, scorer and reason."""
        columns = (exchange.c.service, exchange.c.route, scoring_task.c.scorer, scoring_task.c.reason)
        query = select(*columns, func.count().label("tasks"))
        query = query.join(exchange, exchange.c.id == scoring_task.c.exchange_id)
        query = query.where(scoring_task.c.state == "pending", scoring_task.c.reason.is_not(None)).group_by(*columns)
        with self._database.read() as connection:
            return [FailingTasks(**row) for row in connection.execute(query).mappings()]


def _percentile(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(PERCENTILE * len(ordered)))] if ordered else 0.0
