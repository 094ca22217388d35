"""Checks of the scorers, judge, rate limits, budget, backlog and coverage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize, storage
from germane.cli.commands.doctor.capture import UNRESPONSIVE_AFTER_LEASES
from germane.cli.commands.doctor.finding import Finding
from germane.cli.commands.doctor.reported import describe_process
from germane.cli.core.render import NO_SCORER, describe_candidates, describe_coverage
from germane.errors import GermaneError, ScoringError, SettingsError, StorageError
from germane.score import UnscoredReason
from germane.settings import LOCAL, Settings

if TYPE_CHECKING:
    from germane.scorers import ScorerSet
    from germane.storage import Coverage, OutstandingWork, RetrySummary, TrackingStore, Worker

MAX_COUNT: Final = 10_000
"""Maximum number of exchanges and scores to count."""
RECENT_WAIT: Final = timedelta(minutes=10)
"""A rate limit counts as a bottleneck if it delayed a request within this time."""
COVERAGE_WINDOW: Final = timedelta(hours=24)
STALLED_AFTER: Final = timedelta(minutes=10)
"""Scoring counts as stalled if an exchange has waited longer than this."""
MAX_DRAIN_TIME: Final = timedelta(hours=1)
"""A backlog is too long if scoring it at the current rate would take longer than this, because it delays alerts."""
FIX_NO_WORKER: Final = (
    "run 'germane worker' with a judge on this database, or an application with germane.start(role='all')"
)
FIX_JUDGE_URL: Final = "start the judge's server, or correct OPENAI_BASE_URL"
FIXES: Final[Mapping[str, str]] = {
    "judge_rejected": (
        "set OPENAI_API_KEY to a valid key and `judge` to a model it can access, or correct OPENAI_BASE_URL (up to /v1)"
    ),
    "judge_unreachable": FIX_JUDGE_URL,
    "judge_timeout": "raise `judge_timeout`, or lower `concurrency`",
    "judge_rate_limited": "lower `sample_rate` or `concurrency`, or request a higher limit",
    "embedder_error": "correct the `embedder` setting",
    "no_usable_question": "use a stronger judge",
    "unparsable": "use a stronger judge or one that reasons less, or correct OPENAI_BASE_URL",
}
"""Suggested fixes, by the reason for a missing score."""


def check_scorers(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    """Check the configuration of the scorers, and whether the judge and the embedder respond."""
    from germane.monitor import EligibilityChecker
    from germane.scorers import build_scorers, find_name_conflicts

    try:
        scorer_set = build_scorers(settings)
    except GermaneError as error:
        yield Finding("scorers", "error", str(error), "install the missing package, or correct the setting")
        return
    for conflict in find_name_conflicts():
        yield Finding("scorers", "warning", str(conflict), f"rename the scorer {conflict.origin}")
    if scorer_set.unavailable_reason is not None:
        yield Finding("judge", "error", "no judge is configured", scorer_set.unavailable_reason)
        return
    yield Finding("scorers", "ok", ", ".join(scorer.name for scorer in scorer_set.scorers))
    try:  # imports the predicates
        EligibilityChecker(scorer_set.scorers, filters=settings.filters, always_score=settings.always_score)
    except SettingsError as error:
        fix = "correct the name; its module is imported from the current directory"
        yield Finding("sampling filters", "error", str(error), fix)
    names = {scorer.name for scorer in scorer_set.scorers}
    for name in settings.filters.keys() - names:
        message = f"has no effect: no scorer with this name is running (running: {', '.join(sorted(names))})"
        yield Finding(f"filters.{name}", "warning", message, "correct the name, or run that scorer")
    yield from _check_calibration(settings, scorer_set)
    if scorer_set.judge is None and settings.scorers is None:  # explicitly configured scorers may work without a judge
        message = "no judge is configured: answer_relevancy is not scored"
        yield Finding("judge", "warning", message, "set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server")
    if not offline:
        yield from asyncio.run(_check_models(scorer_set))


def check_reported_judge(process: Worker, settings: Settings) -> Iterator[Finding]:
    """Report the scorers and the judge of a process whose server is known only to its code or environment."""
    yield Finding("scorers", "ok", ", ".join(sorted(process.scorers)))
    origin = f"{settings.judge} is configured in the code or environment of {describe_process(process)}"
    if process.problem is None:
        yield Finding("judge", "ok", f"{origin}, which reports no problem")
    else:
        fix = FIXES.get(process.problem.partition(":")[0], "see the log of the process")
        yield Finding("judge", "error", f"{origin}: {process.problem}", fix)


def _check_calibration(settings: Settings, scorer_set: ScorerSet) -> Iterator[Finding]:
    """Check that cosine scorers are calibrated for their embedder. Database errors are reported elsewhere."""
    from germane.score import COSINE_SCORERS
    from germane.scorers import MIN_CALIBRATION_EXCHANGES, label_calibration_of

    embedders = {scorer.name: getattr(scorer, "embedder", None) for scorer in scorer_set.scorers}
    rated = {scorer.name for scorer in scorer_set.scorers if getattr(scorer, "label_from", None) == "guarded"}
    models = {name: embedder.model for name, embedder in embedders.items() if name in COSINE_SCORERS and embedder}
    if not models:
        return
    calibrations, captured = {}, 0
    with suppress(SettingsError, StorageError), closing(storage.TrackingStore(settings.database)) as store:
        calibrations = {(each.embedder, each.scorer): each for each in store.labels.list_calibrations()}
        captured = store.answers.counts(at_most=MAX_COUNT).captured
    for name, model in models.items():
        if calibration := label_calibration_of(calibrations, model, name):
            yield Finding(f"labels for {name}", "ok", str(calibration))
        else:
            rated_effect = "labels follow the judge's rating, unless the similarity contradicts it"
            effect = rated_effect if name in rated else "scores have no label"
            message = (
                f"uncalibrated: {effect}. The similarity scale of {model} is unknown and is measured once "
                f"{MIN_CALIBRATION_EXCHANGES} exchanges are scored"
            )
            missing = MIN_CALIBRATION_EXCHANGES - captured
            wait = f"after {sanitize.count_noun(missing, 'more exchange')}, run: " if missing > 0 else ""
            yield Finding(f"labels for {name}", "warning", message, f"{wait}germane calibrate --save")


async def _check_models(scorer_set: ScorerSet) -> list[Finding]:
    """Send a small request to the judge and to the embedder: only the servers can validate the key and the model."""
    findings: list[Finding] = []
    try:
        if scorer_set.judge is not None:
            findings.append(await _check_model("judge", scorer_set.judge.model, scorer_set.check_judge()))
        if scorer_set.embedder is not None:
            request = scorer_set.embedder.embed(["ok"])
            findings.append(await _check_model("embedder", scorer_set.embedder.model, request))
    finally:
        await scorer_set.aclose()
    return findings


async def _check_model(subject: str, model: str, request: Awaitable[Any]) -> Finding:
    try:
        await request
    except ScoringError as error:
        fix = error.fix or FIXES.get(str(error.reason), FIX_JUDGE_URL)
        if subject == "embedder" and not error.fix and error.retry_after is not None:
            fix = FIX_JUDGE_URL
        if model.startswith(f"{LOCAL}:"):
            fix = "fix the error, or use a judge on a server: set `judge`, and OPENAI_API_KEY or OPENAI_BASE_URL"
        return Finding(subject, "error", str(error).removeprefix(f"{subject}: "), fix)
    except GermaneError as error:
        return Finding(subject, "error", str(error), "install the missing package")
    return Finding(subject, "ok", f"{model} responds")


def check_scoring(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Check retries, rate limits, budget, backlog, and coverage for the last day."""
    from germane.monitor import rate_limits
    from germane.scorers import FIX_EMBEDDER_KEY

    counts, now = store.answers.counts(at_most=MAX_COUNT), datetime.now(UTC)
    retries = store.health.list_retries()
    for retry in retries:
        more = " or more" if retry.is_capped else ""
        last, prefix = retry.last_error, f"{retry.reason}:"
        error = last if last.startswith(prefix) else f"{prefix} {last}"
        since = f"{retry.waiting_since:%Y-%m-%d %H:%M} UTC"
        count = f"{sanitize.count_noun(retry.tasks, 'task')}{more}"
        message = f"{count} waiting for a retry, the oldest since {since}: {error}"
        level: Any = "warning" if retry.reason is UnscoredReason.JUDGE_RATE_LIMITED else "error"
        is_key = retry.reason is UnscoredReason.EMBEDDER_ERROR and "HTTP 401" in retry.last_error
        fix = FIX_EMBEDDER_KEY if is_key else FIXES.get(retry.reason)
        yield Finding(f"scorer {retry.scorer}", level, message, fix)
    uses, is_limited = {use.name: use for use in store.quota.load_rate_limit_usage()}, False
    for limit in rate_limits(settings):
        setting, use, last = f"{limit.name}_per_minute", uses.get(limit.name), "no requests yet"
        if use is not None:
            age = now - use.used_at
            last = f"the last request, {age.total_seconds():.0f} s ago, was delayed by {use.waited:.1f} s"
            is_limited |= age < RECENT_WAIT
        value = f"{getattr(settings, setting):g}, shared by all processes on this database"
        yield Finding(setting, "ok", f"{value}; {last}")
    yield from _check_budget(store, settings, now)

    outstanding = store.backlog.load_outstanding()
    backlog = list(_check_backlog(store, settings, outstanding, retries, is_limited=is_limited))
    yield from backlog
    if not backlog:
        more = " or more" if counts.scores == MAX_COUNT else ""
        waiting = counts.undecided + counts.pending + counts.running
        lines = [f"{counts.scores}{more} scores, {waiting} pending"]
        yield Finding("scoring", "ok", "; ".join(lines + describe_candidates(outstanding)))
    yield from _check_coverage(store.trends.coverage(since=now - COVERAGE_WINDOW))
    if settings.rules and not counts.scores:
        yield Finding("rules", "warning", "rules are configured, but there are no scores yet")


def _check_backlog(
    store: TrackingStore,
    settings: Settings,
    outstanding: OutstandingWork,
    retries: Sequence[RetrySummary],
    *,
    is_limited: bool,
) -> Iterator[Finding]:
    """Report each scorer whose backlog takes too long to clear, at its own rate: a fast scorer must not hide a slow
    one.
    """
    now, rates = store.now(), store.backlog.load_throughput()
    lease = timedelta(seconds=settings.task_lease)
    running = store.workers.list_workers(within=UNRESPONSIVE_AFTER_LEASES * lease)
    in_use = {pair for worker in running for pair in worker.scorers.items()}
    undecided = sanitize.count_noun(outstanding.undecided, "unsampled exchange")
    retrying = {retry.scorer for retry in retries if now - retry.last_retry_at < STALLED_AFTER}
    findings: list[Finding] = []
    for tasks in outstanding.tasks:
        pair = (tasks.scorer, tasks.fingerprint)
        # Tasks whose fingerprint no running process uses will expire. check_workers reports them.
        if not tasks.in_progress or (in_use and pair not in in_use):
            continue
        count, rate = sanitize.count_noun(tasks.in_progress, "pending score"), rates.get(pair)
        findings += _check_delay(
            f"{count} and {undecided}" if outstanding.undecided else count,
            scorer=sanitize.line(tasks.scorer, 60),
            drain_time=rate.drain_time(outstanding.undecided + tasks.in_progress) if rate else None,
            age=timedelta() if tasks.waiting_since is None else now - tasks.waiting_since,
            is_growing=rate is not None and rate.tasks_per_hour > rate.scores_per_hour,
            is_limited=is_limited,
            is_retrying=tasks.scorer in retrying,
        )
    yield from findings
    # Without a task, no scorer is late. Exchanges that nobody samples wait all the same.
    newest = store.answers.list_exchanges(limit=1) if outstanding.undecided and not findings else ()
    if any(now - each.started_at > STALLED_AFTER for each in newest):
        yield Finding("scoring", "error", f"{undecided}, but no process is scoring", FIX_NO_WORKER)


def _check_delay(
    count: str,
    *,
    scorer: str,
    drain_time: timedelta | None,
    age: timedelta,
    is_growing: bool,
    is_limited: bool,
    is_retrying: bool,
) -> Iterator[Finding]:
    """Report a scorer's pending scores and the unsampled exchanges, if scoring them takes too long.

    ``count`` is the number of both, in words. ``drain_time`` is the time that scoring them takes at the current rate,
    or None if nothing is being scored, and ``age`` the time that the oldest score has been pending.
    """
    # The oldest tasks are scored first, so none should wait much longer than the whole backlog takes to score.
    is_late = age > max(STALLED_AFTER, 2 * (drain_time or timedelta()))
    if drain_time is not None and drain_time > MAX_DRAIN_TIME:
        growing = " and growing" if is_growing else ""
        hours = drain_time / timedelta(hours=1)
        delay = f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"
        message = f"scoring cannot keep up: {scorer} is {delay} behind{growing} ({count})"
        fix = "add workers, lower `sample_rate`, or set a budget"
        yield Finding("scoring", "error", message, f"raise the rate limit, or {fix}" if is_limited else fix)
    elif is_late and is_limited:
        waiting = f"the oldest waiting for {age / timedelta(minutes=1):.0f} minutes"
        message = f"{scorer}: {count}, {waiting}: a rate limit is lower than the incoming traffic"
        fix = "raise the limit if the judge's server allows it, or lower `sample_rate`"
        yield Finding("scoring", "warning", message, fix)
    elif is_late and not is_retrying:
        message = f"{scorer}: {count}, but no process is scoring"
        yield Finding("scoring", "error", message, FIX_NO_WORKER)


def _check_budget(store: TrackingStore, settings: Settings, now: datetime) -> Iterator[Finding]:
    from germane.monitor import check_judge_price

    budget = settings.budget
    if budget is None:
        return
    try:
        check_judge_price(settings)
    except SettingsError as error:
        yield Finding("budget", "error", str(error), "set the price, or limit requests or tokens instead")
    spent = store.quota.load_usage()
    usage = f"used today (UTC): {'; '.join(spent.describe(budget, now))}"
    until = spent.exhausted_until(budget, now)
    if until is None:
        yield Finding("budget", "ok", f"{usage}; shared by all processes on this database")
    else:
        message = f"{usage}; exhausted until {until:%Y-%m-%d %H:%M} UTC, and exchanges are skipped until then"
        yield Finding("budget", "warning", message, "raise the budget if you want more scores")


def _check_coverage(coverages: Sequence[Coverage]) -> Iterator[Finding]:
    """Report coverage for the last day, and scorers that failed more often than they succeeded."""
    for coverage in (each for each in coverages if each.has_exchanges):
        subject = f"coverage of {coverage.route}, {coverage.scorer or NO_SCORER}"
        message = f"in the last day: {describe_coverage(coverage)}"
        yield Finding(subject, "ok", message, coverage=coverage, group="coverage")
        if coverage.failed and sum(coverage.failed.values()) > coverage.scored:
            reason = max(coverage.failed, key=lambda name: coverage.failed[name])
            counts = ", ".join(f"{count} {name}" for name, count in coverage.failed.items())
            yield Finding(
                f"scorer {coverage.scorer}",
                "error",
                f"most scores for route {coverage.route} failed in the last day: {counts}",
                FIXES.get(reason, "check the logs of the scoring process"),
                group="failing scorer",
                fault=reason,
            )
