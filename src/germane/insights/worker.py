"""The worker page: workers, backlog, judge usage, sampling, failures and storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from germane.insights.context import InsightContext, ViewParams, from_one_snapshot
from germane.insights.formatting import format_percent, highlight_redactions
from germane.insights.health import HealthSummary, load_health
from germane.insights.judge import JudgeHistory, load_judge
from germane.insights.watched_traces import WatchedSummary, load_watched_traces
from germane.settings import Budget, Settings
from germane.storage import (
    NOTIFICATION,
    AnswerFilter,
    BudgetDay,
    Coverage,
    JobRuns,
    NotificationRecord,
    OpenTasks,
    QueueStatus,
    RateLimitUsage,
    RetrySummary,
    SamplingSummary,
    WaitingRequests,
    Worker,
)

MAX_COVERAGE_ROWS: Final = 80
MAX_FAILURES: Final = 12
"""Maximum number of failure groups that are shown, each with its newest error."""
MAX_UNDELIVERED: Final = 20
USAGE_DAYS: Final = 14
REDACTION_SAMPLE: Final = 20
"""Number of answers, newest first, that are searched for redactions."""
REDACTION_TEXT_LENGTH: Final = 20_000
"""Maximum number of characters that are searched in each answer."""
BAR_WIDTH: Final = 4
BAR_HEIGHT: Final = 18
_REASONS: Final[Mapping[str, str]] = {
    "sampled": "sampled",
    "not_sampled": "not sampled",
    "candidate": "in the budget's candidate pool",
    "uniform": "selected uniformly",
    "route_floor": "selected to cover their route",
    "suspicion": "selected for a low proxy score",
    "always": "required by a rule or a label",
    "passed_over": "not selected within the budget",
    "": "not decided yet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBar:
    """One run of a job, as a bar in its chart."""

    x: int
    y: float
    height: float
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """A periodic job and its recent runs."""

    job: JobRuns

    @property
    def failed(self) -> int:
        """Number of failed runs."""
        return sum(run.problem is not None for run in self.job.runs)

    @property
    def longest(self) -> float:
        """Duration of the longest run, in seconds."""
        return max((run.seconds for run in self.job.runs), default=0.0)

    @property
    def bars(self) -> Sequence[RunBar]:
        """The runs as bars, oldest first.

        A bar's height is proportional to the square root of the run time. Failed runs have full height.
        """
        bars = []
        for index, run in enumerate(self.job.runs):
            share = (run.seconds / self.longest) ** 0.5 if self.longest else 0.0
            height = BAR_HEIGHT if run.problem else max(2.0, round(BAR_HEIGHT * share, 1))
            bars.append(
                RunBar(x=index * BAR_WIDTH, y=BAR_HEIGHT - height, height=height, failed=run.problem is not None)
            )
        return bars


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """The failures of one scorer with the same reason, within the window."""

    scorer: str
    reason: str
    n: int
    error: str | None
    """The newest error message, as the server sent it."""
    exchange_id: str | None
    """Exchange id of the newest failure, if it is still stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyUsage:
    """Judge usage on one day."""

    spent: BudgetDay
    share: float
    """Largest used share of any budget limit. Without a budget, number of requests relative to the peak day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSummary:
    """The size and contents of the database."""

    name: str
    size: int
    """Size in bytes."""
    revision: str | None
    sampling: SamplingSummary
    redacted: int
    """Number of newest answers in which redactions were found."""
    searched: int
    """Number of newest answers that were searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInsight:
    """The content of the worker page."""

    health: HealthSummary
    process: Worker | None
    """The worker whose jobs are shown."""
    jobs: Sequence[JobHistory]
    queue: Sequence[OpenTasks]
    retries: Sequence[RetrySummary]
    failures: Sequence[FailureGroup]
    """Most common first."""
    failures_hidden: int
    days: Sequence[DailyUsage]
    """Newest first."""
    limits: Sequence[RateLimitUsage]
    judges: Mapping[str, JudgeHistory]
    """The watched judge of each scorer that has anchors."""
    coverage: Sequence[Coverage]
    coverage_hidden: int
    forwarding: Sequence[WaitingRequests]
    channels: Sequence[QueueStatus]
    undelivered: Sequence[NotificationRecord]
    traces: WatchedSummary
    """The traces that were watched or received in the window, with samples of the unreadable ones."""
    storage: StorageSummary


@from_one_snapshot
def load_worker(context: InsightContext, view: ViewParams, process_id: str | None) -> WorkerInsight:
    """Load the worker page for a window.

    Shows the jobs of the process with ``process_id``, or of the most recently seen process by default.
    """
    store, health = context.store, load_health(context)
    processes = (*health.running, *health.unresponsive)
    process = next((worker for worker in processes if worker.id == process_id), processes[0] if processes else None)
    coverage = [counts for counts in store.trends.coverage(since=view.since, until=view.until) if counts.seen]
    failures: dict[tuple[str, str], int] = {}
    for counts in coverage:
        for reason, count in counts.failed.items():
            failures[counts.scorer, reason] = failures.get((counts.scorer, reason), 0) + count
    common = sorted(failures, key=lambda names: (-failures[names], names))
    failure_groups = []
    for scorer, reason in common[:MAX_FAILURES]:
        chosen = AnswerFilter(since=view.since, until=view.until, scorer=scorer, state="failed", reason=reason)
        newest = next(iter(store.answers.search(chosen, sort="newest", limit=1).answers), None)
        error = None if newest is None or newest.task is None else newest.task.error
        exchange_id = None if newest is None else newest.exchange.id
        count = failures[scorer, reason]
        failure_groups.append(FailureGroup(scorer=scorer, reason=reason, n=count, error=error, exchange_id=exchange_id))
    days, budget = store.quota.load_usage_by_day(USAGE_DAYS), context.settings.budget
    peak = max((day.requests for day in days), default=0)
    usage = []
    for day in reversed(days):
        of_limits = {} if budget is None else day.shares(budget)
        share = max(of_limits.values(), default=day.requests / peak if peak else 0.0)
        usage.append(DailyUsage(spent=day, share=share))
    return WorkerInsight(
        health=health,
        process=process,
        jobs=[] if process is None else [JobHistory(job=job) for job in store.workers.list_job_runs(process.id)],
        queue=health.scoring.queue,
        retries=store.health.list_retries(),
        failures=failure_groups,
        failures_hidden=max(0, len(common) - MAX_FAILURES),
        days=usage,
        limits=store.quota.load_rate_limit_usage(),
        judges={scorer: load_judge(store, scorer) for scorer in store.anchors.list_scorers()},
        coverage=sorted(coverage, key=lambda counts: -counts.seen)[:MAX_COVERAGE_ROWS],
        coverage_hidden=max(0, len(coverage) - MAX_COVERAGE_ROWS),
        forwarding=store.forwarding.list_targets(),
        channels=store.outbox.list_queues(NOTIFICATION),
        undelivered=store.notifications.search(status="undelivered", limit=MAX_UNDELIVERED),
        traces=load_watched_traces(store, since=view.since, until=view.until, with_samples=True),
        storage=_load_storage(context),
    )


def _load_storage(context: InsightContext) -> StorageSummary:
    store = context.store
    newest = store.answers.list_exchanges(limit=REDACTION_SAMPLE)
    texts = [" ".join((item.question or "", item.answer or ""))[:REDACTION_TEXT_LENGTH] for item in newest]
    return StorageSummary(
        name=store.name,
        size=store.retention.measure_size(),
        revision=store.revision(),
        sampling=store.health.summarize_sampling(),
        redacted=sum('class="redacted"' in highlight_redactions(text) for text in texts),
        searched=len(texts),
    )


def describe_sampling(settings: Settings, coverage: Coverage | None = None) -> str:
    """Describe sampling in a few words, such as "all sampled", "80% sampled" or the selection within a budget.

    Workers may have other settings than this process, so the outcomes of the answers that a mean covers take
    precedence.
    """
    skipped = {} if coverage is None else coverage.skipped
    if settings.budget is not None or "budget" in skipped:
        limits = "a budget" if settings.budget is None else f"the budget: {', '.join(describe_limits(settings.budget))}"
        words = f"selected by expected information, within {limits}"
    elif "not_sampled" in skipped and coverage is not None:
        words = f"{format_percent(1 - skipped['not_sampled'] / coverage.seen)} sampled"
    elif settings.sample_rate < 1 and not (coverage and coverage.seen):
        words = f"{format_percent(settings.sample_rate)} sampled"
    else:
        words = "all sampled"
    return f"{words}, after filters" if "filtered" in skipped else words


def describe_sampling_settings(settings: Settings) -> str:
    """Return a sentence about sampling and the settings that determine it."""
    rate = "" if settings.budget is not None else f" (sample_rate = {settings.sample_rate:g})"
    always = " Answers that match always_score are scored regardless." if settings.always_score else ""
    rule = describe_sampling(settings)
    return f"{rule[0].upper()}{rule[1:]}{rate}.{always}"


def describe_limits(budget: Budget) -> Iterator[str]:
    """Yield a budget's limits, such as "5,000 requests per day"."""
    for name, words in (("requests", "{:,} requests"), ("tokens", "{:,} tokens"), ("usd", "${:,.2f}")):
        for period in ("hour", "day"):
            value = getattr(budget, f"{name}_per_{period}")
            if value is not None:
                yield f"{words.format(value)} per {period}"


def describe_sampling_outcomes(summary: SamplingSummary) -> list[str]:
    """Return one line per sampling reason, with the number of recent answers and the range of probabilities."""
    lines = []
    for group in summary.reasons:
        words = f"{group.n:,} {_REASONS.get(group.reason, group.reason.replace('_', ' '))}"
        if group.min_probability is not None and group.max_probability is not None:
            low, high = f"{group.min_probability:.2g}", f"{group.max_probability:.2g}"
            words += f" (with probability {low})" if low == high else f" (with probability {low} to {high})"
        lines.append(words)
    return lines
