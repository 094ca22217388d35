"""The health of an installation: the status of its workers, and its progress until answers are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.insights.context import InsightContext
from germane.insights.situation import DAY, NOTIFIED_STATES
from germane.insights.watched_traces import WatchedSummary, load_watched_traces
from germane.settings import LOCAL, Budget
from germane.storage import BudgetLimits, ScoringHealth, Worker

MISSED_LEASES: Final = 2
"""Number of task leases without a heartbeat after which a worker counts as unresponsive."""
STALE_AFTER: Final = timedelta(hours=1)
"""Data is stale if no exchange was captured for this long."""
LATE_AFTER: Final = timedelta(minutes=10)
"""The backlog is late if its oldest exchange has waited this long."""
WorkerState = Literal["running", "degraded", "unresponsive", "none"]
MAX_COUNTED: Final = 10_000
"""Maximum number of exchanges to count."""
MAX_HANDLERS: Final = 20
"""Maximum number of handlers without calls that are listed."""
_NO_JUDGE: Final = (
    "no judge is configured. Set OPENAI_API_KEY, OPENAI_BASE_URL for your own server, or judge = local. "
    "Run germane doctor to see what is missing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSummary:
    """The state of scoring."""

    scoring: ScoringHealth
    running: tuple[Worker, ...]
    """Workers with a heartbeat within two leases, most recent first."""
    unresponsive: tuple[Worker, ...]
    """Workers without a recent heartbeat that did not shut down properly."""
    budget: Budget | None
    """The budget in the settings of this process; workers may have another budget."""

    @property
    def now(self) -> datetime:
        """The current time in UTC, according to the database's clock. All ages are relative to it."""
        return self.scoring.now

    @property
    def state(self) -> WorkerState:
        """The state of the workers.

        ``degraded`` means that no running worker can use its judge, and ``none`` that no worker is known.
        """
        if self.running:
            return "degraded" if self.problem is not None else "running"
        return "unresponsive" if self.unresponsive else "none"

    @property
    def is_well(self) -> bool:
        """Whether nothing needs attention."""
        return self.state == "running" and not self.is_late and not self.scoring.failed and not self.unresponsive

    @property
    def problem(self) -> str | None:
        """The reason why the running workers are not scoring, or None if at least one of them is."""
        problems = [worker.problem for worker in self.running]
        return problems[0] if problems and all(problems) else None

    @property
    def scorers(self) -> frozenset[tuple[str, str]]:
        """Pairs of name and fingerprint for the running workers' scorers."""
        return frozenset(pair for worker in self.running for pair in worker.scorers.items())

    @property
    def seen_at(self) -> datetime | None:
        """Time of the most recent heartbeat of any worker, in UTC."""
        return max((worker.seen_at for worker in (*self.running, *self.unresponsive)), default=None)

    @property
    def waiting(self) -> int:
        """Number of open tasks and of exchanges without a sampling decision. Candidates in a budget's pool are not part
        of the backlog.
        """
        return self.scoring.undecided + self.scoring.waiting

    @property
    def lag(self) -> timedelta:
        """Time that the oldest unscored exchange has been waiting."""
        return (
            timedelta()
            if self.scoring.oldest_waiting_at is None
            else max(timedelta(), self.now - self.scoring.oldest_waiting_at)
        )

    @property
    def is_late(self) -> bool:
        """Whether the oldest unscored exchange has been waiting for more than ten minutes."""
        return self.lag > LATE_AFTER

    @property
    def failed(self) -> int:
        """Number of failed scores in the last hour."""
        return sum(self.scoring.failed.values())

    @property
    def reason(self) -> str | None:
        """The most common reason for failures in the last hour, such as ``judge_timeout``."""
        return max(self.scoring.failed, key=lambda reason: self.scoring.failed[reason], default=None)

    @property
    def is_stale(self) -> bool:
        """Whether no answer was captured in the last hour."""
        captured_at = self.scoring.last_captured_at
        return captured_at is None or self.now - captured_at > STALE_AFTER

    @property
    def limits(self) -> BudgetLimits | None:
        """The part of today's budget that is available by this hour, or None without a budget."""
        return None if self.budget is None else BudgetLimits.at(self.budget, self.now)

    @property
    def advice(self) -> str | None:
        """The recommended action, or None if a worker is scoring."""
        if self.state == "none":
            return (
                "Answers are scored only while a worker is running. Run germane worker, "
                "or start germane with role = all."
            )
        if self.state == "unresponsive":
            return "The worker exited without a clean shutdown. Check its logs for the cause, and then restart it."
        return self.problem

    @property
    def backlog(self) -> str:
        """The size of the backlog, such as "33 tasks and 3 undecided answers waiting", or "no backlog"."""
        counts = {"task": self.scoring.waiting, "undecided answer": self.scoring.undecided}
        more = " or more" if self.scoring.is_capped else ""
        parts = [f"{count:,}{more} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items() if count]
        return f"{' and '.join(parts)} waiting" if parts else "no backlog"


def load_health(context: InsightContext) -> HealthSummary:
    """Load the state of scoring with a few short queries in one transaction."""
    scoring = context.store.health.load_health()
    since = scoring.now - MISSED_LEASES * timedelta(seconds=context.settings.task_lease)
    return HealthSummary(
        scoring=scoring,
        running=tuple(worker for worker in scoring.workers if worker.seen_at >= since),
        unresponsive=tuple(worker for worker in scoring.workers if worker.seen_at < since),
        budget=context.settings.budget,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusBar:
    """The state that every page shows in its header and footer."""

    open_alerts: int
    health: HealthSummary


def load_status_bar(context: InsightContext, health: HealthSummary | None = None) -> StatusBar:
    """Load the state for the header and footer. Pass ``health`` if it is already loaded."""
    open_alerts = sum(alert.state in NOTIFIED_STATES for alert in context.store.alerts.list_open())
    return StatusBar(open_alerts=open_alerts, health=health or load_health(context))


@dataclass(frozen=True, slots=True, kw_only=True)
class Onboarding:
    """The progress of setting up germane."""

    database: str
    """The database URL without its password."""
    exists: bool
    """Whether the database exists."""
    captured: int = 0
    """Number of captured exchanges, up to 10,000."""
    scored: int = 0
    uncalled: Sequence[tuple[str, str]] = ()
    """Services and routes of observed handlers that have never been called."""
    has_handlers: bool = False
    traces: WatchedSummary = field(default_factory=lambda: WatchedSummary(scopes=()))
    """The traces that were watched or received in the last day."""
    obstacle: str | None = None
    """Why nothing has been scored. None if there are scores, or if there is nothing to score."""


def load_onboarding(context: InsightContext) -> Onboarding:
    """Load the setup progress. A database that does not exist yet counts as empty.

    Raises:
        StorageError: The database is unreachable or not migrated.
    """
    store, settings = context.store, context.settings
    if store.is_absent:
        return Onboarding(database=store.name, exists=False)
    counts, coverage = store.answers.counts(at_most=MAX_COUNTED), store.trends.coverage()
    called = {(line.service, line.route) for line in coverage if line.seen}
    uncalled = sorted({(line.service, line.route) for line in coverage} - called)
    if counts.captured >= MAX_COUNTED:
        uncalled = []
    obstacle = None
    if counts.captured and not counts.scores:
        health = load_health(context)
        if health.problem is not None:
            obstacle = f"the worker is not using the judge: {health.problem}"
        elif health.running:
            obstacle = f"a worker is running; {health.backlog}."
        elif not (settings.has_server or LOCAL in {settings.judge, settings.embedder} or settings.scorers):
            obstacle = _NO_JUDGE
        else:
            obstacle = health.advice or "no worker is running: run germane worker."
    return Onboarding(
        database=store.name,
        exists=True,
        captured=counts.captured,
        scored=counts.scores,
        uncalled=uncalled[:MAX_HANDLERS],
        has_handlers=bool(coverage or counts.captured),
        traces=load_watched_traces(store, since=store.now() - DAY),
        obstacle=obstacle,
    )


def has_exchanges(context: InsightContext) -> bool:
    """Return whether any exchange has been captured.

    Raises:
        StorageError: The database is unreachable or not migrated.
    """
    return not context.store.is_absent and bool(context.store.answers.list_exchanges(limit=1))
