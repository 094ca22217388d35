"""The current state of scoring, retries and sampling, read with queries that stay fast on large tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import case, func, select

from germane.score import UnscoredReason
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import exchange, scoring_task, tally
from germane.storage.queue import backlog as queue
from germane.storage.queue.backlog import BACKLOG_COUNT_LIMIT, OpenTasks
from germane.storage.quota import budget_ledger
from germane.storage.quota.budget_ledger import BudgetDay
from germane.storage.workers import Worker, load_workers

RECENT: Final = timedelta(hours=1)
"""Length of the window for recent scores and failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringHealth:
    """The current state of scoring."""

    now: datetime
    """Current time from the shared clock; UTC."""
    workers: tuple[Worker, ...] = ()
    """Worker processes that have not deregistered, latest heartbeat first."""
    undecided: int = 0
    """Number of exchanges without a sampling decision, counted up to :data:`BACKLOG_COUNT_LIMIT`."""
    queue: tuple[OpenTasks, ...] = ()
    """Open tasks of each scorer, counted up to :data:`BACKLOG_COUNT_LIMIT`."""
    retried: int = 0
    """Number of pending tasks that have already failed, counted up to :data:`BACKLOG_COUNT_LIMIT`."""
    oldest_waiting_at: datetime | None = None
    """Time at which the oldest waiting exchange or task started waiting; UTC."""
    scored: int = 0
    """Number of scores for answers from the last hour."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Number of scoring failures for answers from the last hour, by reason."""
    last_captured_at: datetime | None = None
    """Start time of the newest stored exchange; UTC."""
    spent_today: BudgetDay
    """Today's judge usage."""

    @property
    def waiting(self) -> int:
        """Number of ready, postponed and running tasks."""
        return sum(scorer_queue.in_progress for scorer_queue in self.queue)

    @property
    def candidates(self) -> int:
        """Number of tasks in the candidate pool."""
        return sum(scorer_queue.candidates for scorer_queue in self.queue)

    @property
    def is_capped(self) -> bool:
        """Whether a count has reached :data:`BACKLOG_COUNT_LIMIT`, so the actual number may be higher."""
        return self.undecided >= BACKLOG_COUNT_LIMIT or any(
            BACKLOG_COUNT_LIMIT in {scorer_queue.ready, scorer_queue.postponed} for scorer_queue in self.queue
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySummary:
    """One scorer's tasks that failed for the same reason and are waiting for a retry."""

    scorer: str
    reason: UnscoredReason
    tasks: int
    """Number of tasks. Per reason, at most :data:`~germane.storage.queue.backlog.BACKLOG_COUNT_LIMIT` are counted."""
    waiting_since: datetime
    """Time at which the oldest task started waiting; UTC."""
    last_retry_at: datetime
    """Time at which the last of the tasks is due for its retry; UTC."""
    last_error: str
    """Error message of the task that is due last, exactly as the judge's server sent it."""
    is_capped: bool = False
    """Whether the count has reached the limit, so the actual number may be higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingReasonCount:
    """The number of exchanges with one sampling reason."""

    reason: str
    """For example ``sampled``, ``not_sampled``, ``uniform``, ``suspicion``, ``route_floor`` or ``always``. Empty before
    the sampling decision."""
    n: int
    min_probability: float | None
    """Lowest probability of being scored; None without random sampling."""
    max_probability: float | None
    """Highest probability of being scored; None without random sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSummary:
    """How the newest exchanges were sampled and stored."""

    n: int
    """Number of exchanges."""
    since: datetime | None
    """Start time of the oldest of these exchanges; UTC."""
    reasons: Sequence[SamplingReasonCount]
    """Counts by sampling reason, most common first."""
    without_text: int
    """Number of exchanges that were stored without question and answer."""
    erased: int
    """Number of exchanges whose text has been erased."""


def _count_first(column: Any, *conditions: Any) -> Any:
    first = select(column).where(*conditions).limit(BACKLOG_COUNT_LIMIT).subquery("first")
    return select(func.count()).select_from(first).scalar_subquery()


_IS_UNDECIDED: Final = exchange.c.sampling_reason.is_(None)
_TOTALS: Final = select(
    select(func.min(exchange.c.started_at)).where(_IS_UNDECIDED).scalar_subquery().label("oldest_undecided_at"),
    _count_first(exchange.c.started_at, _IS_UNDECIDED).label("undecided"),
    _count_first(scoring_task.c.state, scoring_task.c.state == "pending", scoring_task.c.reason.is_not(None)).label(
        "retried"
    ),
    select(func.max(exchange.c.started_at)).scalar_subquery().label("last_captured_at"),
)


class HealthReader(StoreComponent):
    """Reads the current state of scoring, retries and sampling."""

    def load_health(self) -> ScoringHealth:
        """Return the current state of scoring. Fast enough for every page load."""
        with self._database.read() as connection:
            now = self._context.now(connection)
            waits = queue.count_open_tasks(connection, now)
            counted = connection.execute(_TOTALS).one()
            oldest = [counted.oldest_undecided_at, *(tasks.waiting_since for tasks in waits)]
            totals = select(tally.c.outcome, tally.c.reason, func.sum(tally.c.count).label("n"))
            totals = totals.where(tally.c.minute >= now - RECENT, tally.c.scorer != "")
            totals = totals.where(tally.c.outcome.in_(("scored", "failed"))).group_by(tally.c.outcome, tally.c.reason)
            outcomes = connection.execute(totals).all()
            return ScoringHealth(
                now=now,
                workers=tuple(load_workers(connection)),
                undecided=counted.undecided,
                queue=waits,
                retried=counted.retried,
                oldest_waiting_at=min((moment for moment in oldest if moment is not None), default=None),
                scored=sum(int(row.n) for row in outcomes if row.outcome == "scored"),
                failed={row.reason: int(row.n) for row in outcomes if row.outcome == "failed" and row.n},
                last_captured_at=counted.last_captured_at,
                spent_today=budget_ledger.load_usage(connection, now.astimezone(UTC).date()),
            )

    def list_retries(self) -> list[RetrySummary]:
        """Summarize the failed tasks that are waiting for a retry by scorer and reason, largest group first."""
        columns = scoring_task.c
        summaries: list[RetrySummary] = []
        # Step from reason to reason through an index, because there may be many tasks.
        first_reason = select(func.min(columns.reason)).where(columns.state == "pending")
        with self._database.read() as connection:
            reason = connection.execute(first_reason).scalar_one()
            while reason is not None:
                wanted = select(columns.scorer, columns.first_pending_at, columns.due_at, columns.error)
                wanted = wanted.where(columns.state == "pending", columns.reason == reason)
                first = wanted.limit(BACKLOG_COUNT_LIMIT).subquery("first")
                sums = (func.count(), func.min(first.c.first_pending_at), func.max(first.c.due_at))
                groups = connection.execute(select(first.c.scorer, *sums).group_by(first.c.scorer)).all()
                is_capped = sum(row[1] for row in groups) >= BACKLOG_COUNT_LIMIT
                for scorer, tasks, since, until in groups:
                    last = (
                        select(first.c.error).where(first.c.scorer == scorer).order_by(first.c.due_at.desc()).limit(1)
                    )
                    summary = RetrySummary(
                        scorer=scorer,
                        reason=UnscoredReason(reason),
                        tasks=tasks,
                        waiting_since=since,
                        last_retry_at=until,
                        last_error=connection.execute(last.limit(1)).scalar_one_or_none() or "",
                        is_capped=is_capped,
                    )
                    summaries.append(summary)
                reason = connection.execute(first_reason.where(columns.reason > reason)).scalar_one()
        return sorted(summaries, key=lambda summary: (-summary.tasks, summary.scorer, summary.reason))

    def summarize_sampling(self, *, newest: int = 1000) -> SamplingSummary:
        """Summarize how the ``newest`` exchanges were sampled and whether their text was kept."""
        columns = exchange.c
        hidden = columns.question.is_(None) & columns.answer.is_(None) & columns.erased_at.is_(None)
        wanted = (
            columns.started_at,
            func.coalesce(columns.sampling_reason, "").label("reason"),
            columns.sampling_probability.label("probability"),
            case((hidden, 1), else_=0).label("hidden"),
            case((columns.erased_at.is_not(None), 1), else_=0).label("erased"),
        )
        first = select(*wanted).order_by(columns.started_at.desc()).limit(newest).subquery("first").c
        sums = (func.count().label("n"), func.min(first.probability), func.max(first.probability))
        others = (func.min(first.started_at), func.sum(first.hidden), func.sum(first.erased))
        with self._database.read() as connection:
            rows = connection.execute(select(first.reason, *sums, *others).group_by(first.reason)).all()
        counts = [
            SamplingReasonCount(reason=row[0], n=int(row[1]), min_probability=row[2], max_probability=row[3])
            for row in rows
        ]
        return SamplingSummary(
            n=sum(count.n for count in counts),
            since=min((row[4] for row in rows), default=None),
            reasons=sorted(counts, key=lambda count: (-count.n, count.reason)),
            without_text=sum(int(row[5]) for row in rows),
            erased=sum(int(row[6]) for row in rows),
        )
