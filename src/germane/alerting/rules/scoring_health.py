"""Rules that watch scoring itself: missing scores, failing scorers, an exhausted budget and a changed judge.

- ``no_data``: answers arrive but are not scored. Without traffic, there is no alert.
- ``scorer_error``: a scorer fails. The problem is with the judge, not with the answers.
- ``budget_exhausted``: the daily budget is exhausted long before the day ends.
- ``judge_drift``: the judge scores the same answers differently than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Final

from germane.alerting.rule_result import RuleResult, RuleState
from germane.alerting.rules.evaluation import MAX_INTERVAL, EvaluationContext, RuleEvaluation, window_interval
from germane.score import UnscoredReason
from germane.settings import Budget, BudgetExhausted, JudgeDrift, NoData, ScorerError
from germane.storage import AnchorRounds, BudgetDay, ScoringFlow

DEFAULT_GAP: Final = timedelta(hours=1)
"""Assumed typical gap between scores, until there is enough data for an estimate."""
GAP_FACTOR: Final = 2
"""Number of typical gaps after which scores are considered missing."""
EVALUATIONS_PER_GAP: Final = 60
"""Minimum number of evaluations per gap. Rules for short gaps are evaluated more often than every 10 seconds."""
GAP_HISTORY: Final = timedelta(days=14)
"""Length of the period from which typical gaps are estimated."""
GAP_REFRESH_INTERVAL: Final = timedelta(hours=1)
MIN_LOOKBACK: Final = timedelta(hours=2)
"""Minimum length of the period that is searched for unscored answers."""
END_OF_DAY_MARGIN: Final = timedelta(hours=2)
"""Period before midnight UTC in which an exhausted budget does not cause an alert, because it covered most of the
day."""


class NoDataEvaluation(RuleEvaluation[NoData]):
    """Evaluates a ``no_data`` rule."""

    def __init__(self, rule: NoData, context: EvaluationContext) -> None:
        super().__init__(rule, context)
        self._gaps: dict[tuple[str, str], tuple[datetime, timedelta | None]] = {}
        """Time of the estimate and the typical gap, by (service, scorer)."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations."""
        return min(MAX_INTERVAL, self._rule.at_least / EVALUATIONS_PER_GAP)

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return one result per service and scorer."""
        rule, progress, as_of = self._rule, self._context.store.progress, self._context.as_of()
        longest = max((gap for _, gap in self._gaps.values() if gap is not None), default=None)
        since = now - max(MIN_LOOKBACK, 2 * max_wait(rule, longest))
        for flow in progress.list_flows(since=since, until=as_of, includes_route=rule.matches_route):
            if rule.scorer not in {None, flow.scorer}:
                continue
            estimated_at, gap = self._gaps.get((flow.service, flow.scorer), (None, None))
            if estimated_at is None or not timedelta() <= now - estimated_at < GAP_REFRESH_INTERVAL:
                gap = progress.typical_score_delay(flow.service, flow.scorer, since=now - GAP_HISTORY, until=as_of)
                self._gaps[flow.service, flow.scorer] = (now, gap)
            yield evaluate_no_data(rule, flow, now, gap)


def max_wait(rule: NoData, gap: timedelta | None) -> timedelta:
    """Return the maximum time that an answer may wait for a score: twice the typical gap, but at least ``at_least``."""
    return max(timedelta(seconds=rule.at_least), GAP_FACTOR * (DEFAULT_GAP if gap is None else gap))


def evaluate_no_data(rule: NoData, flow: ScoringFlow, now: datetime, gap: timedelta | None) -> RuleResult:
    """Evaluate whether a scorer has stopped scoring a service's selected answers.

    The result is bad if an answer has been waiting longer than :func:`max_wait`, good if other answers in the window
    have been scored, and otherwise unclear.
    """
    limit = max_wait(rule, gap)
    since = flow.waiting_since
    if since is not None and flow.last_score_at is not None:  # with a backlog, answers wait while others are scored
        since = max(since, flow.last_score_at)
    waited = None if since is None else now - since
    state: RuleState = "unclear"
    if waited is not None and waited > limit:
        state = "bad"
    elif flow.last_scored_minute is not None:
        state = "good"
    return RuleResult(
        rule=rule.name,
        type=rule.type,
        labels={"service": flow.service, "scorer": flow.scorer},
        state=state,
        severity=rule.severity,
        pending=rule.pending,
        cause="no_data",
        value=None if waited is None else waited.total_seconds(),
        threshold=limit.total_seconds(),
        onset=since,
        details={"waiting": flow.waiting, "usual": None if gap is None else gap.total_seconds()},
    )


class ScorerErrorEvaluation(RuleEvaluation[ScorerError]):
    """Evaluates a ``scorer_error`` rule."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations."""
        return window_interval(self._rule.window)

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return one result per service and scorer."""
        rule, store, as_of = self._rule, self._context.store, self._context.as_of()
        scored: Counter[tuple[str, str]] = Counter()
        failures: dict[tuple[str, str], Counter[str]] = {}
        for coverage in store.trends.coverage(since=now - timedelta(seconds=rule.window), until=as_of):
            if rule.matches_route(coverage.route) and rule.scorer in {None, coverage.scorer}:
                names = (coverage.service, coverage.scorer)
                scored[names] += coverage.scored
                failures.setdefault(names, Counter()).update(coverage.failed)
        # Failed attempts that later succeeded are not stored, so a backtest cannot count them.
        for failing in store.progress.list_failing() if as_of is None else ():
            names = (failing.service, failing.scorer)
            if rule.matches_route(failing.route) and names in failures:
                failures[names][failing.reason] += failing.tasks
        for names, reasons in sorted(failures.items()):
            yield evaluate_scorer_error(rule, *names, scored[names], reasons)


def evaluate_scorer_error(
    rule: ScorerError, service: str, scorer: str, scored: int, reasons: Counter[str]
) -> RuleResult:
    """Evaluate whether too large a share of attempts failed.

    The result is bad if the share is above the threshold, and good if it is at most half the threshold. Otherwise, or
    with fewer than ``min_samples`` attempts, it is unclear. Scores without any failure are always good: with little
    traffic, an alert would otherwise stay open after the scorer has recovered.

    Args:
        rule: The rule.
        service: Name of the service.
        scorer: Name of the scorer.
        scored: Number of scores.
        reasons: Number of failures by reason, including those that will be retried.
    """
    failed = reasons.total()
    attempts = scored + failed
    share = failed / attempts if attempts else 0.0
    state: RuleState = "unclear"
    if attempts >= rule.min_samples:
        if share > rule.threshold:
            state = "bad"
        elif share <= rule.threshold / 2:
            state = "good"
    elif scored and not failed:
        state = "good"
    details: dict[str, object] = {"tried": attempts, "failed": failed}
    if failed:  # otherwise, the alert keeps the last reason
        details["reason"] = reasons.most_common(1)[0][0]
    return RuleResult(
        rule=rule.name,
        type=rule.type,
        labels={"service": service, "scorer": scorer},
        state=state,
        severity=rule.severity,
        pending=rule.pending,
        cause="judge_broken",
        value=share,
        threshold=rule.threshold,
        window=rule.window,
        details=details,
    )


class BudgetExhaustedEvaluation(RuleEvaluation[BudgetExhausted]):
    """Evaluates a ``budget_exhausted`` rule."""

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return the result for the budget."""
        store, as_of = self._context.store, self._context.as_of()
        if as_of is None:
            spent = store.quota.load_usage()
        else:
            # Only the daily total is stored. In a backtest, the budget counts as exhausted from the first answer that
            # was skipped because of it.
            day = as_of.astimezone(UTC).date()
            coverage = store.trends.coverage(since=datetime.combine(day, time(), UTC), until=as_of)
            is_spent = any(UnscoredReason.BUDGET.value in route.skipped for route in coverage)
            spent = store.quota.load_usage(day) if is_spent else BudgetDay(day=day)
        yield evaluate_budget_exhausted(self._rule, self._context.budget, spent, now)


def evaluate_budget_exhausted(
    rule: BudgetExhausted, budget: Budget | None, spent: BudgetDay, now: datetime
) -> RuleResult:
    """Evaluate whether the budget for this UTC day is exhausted long before the day ends.

    An exhausted hourly limit is normal and not an alert.
    """
    until = None if budget is None else spent.exhausted_until(budget, now)
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    state: RuleState = "good"
    if until is not None and until >= tomorrow:
        state = "bad" if tomorrow - now > END_OF_DAY_MARGIN else "unclear"
    details: dict[str, object] = {"until": None, "spent": []}
    if budget is not None and until is not None:
        details = {"until": until.isoformat(), "spent": spent.describe(budget, now)}
    return RuleResult(
        rule=rule.name,
        type=rule.type,
        labels={},
        state=state,
        severity=rule.severity,
        pending=rule.pending,
        cause="budget",
        details=details,
    )


class JudgeDriftEvaluation(RuleEvaluation[JudgeDrift]):
    """Evaluates a ``judge_drift`` rule."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations. Rounds of anchors are daily."""
        return 6 * MAX_INTERVAL

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:  # noqa: ARG002 - rounds have their own times
        """Return one result per scorer with anchors."""
        anchors = self._context.store.anchors
        for scorer in anchors.list_scorers():
            if self._rule.scorer in {None, scorer}:
                yield evaluate_judge_drift(self._rule, scorer, anchors.load_rounds(scorer))


def evaluate_judge_drift(rule: JudgeDrift, scorer: str, rounds: AnchorRounds | None) -> RuleResult:
    """Evaluate whether the judge's scores of the same answers have changed.

    Without rounds, the anchors have new baselines, and the result is good.
    """
    from germane.statistics import find_judge_shift

    result = RuleResult(
        rule=rule.name,
        type=rule.type,
        labels={"scorer": scorer},
        state="good",
        severity=rule.severity,
        pending=rule.pending,
        cause="judge_drift",
        reason="new_baseline" if rounds is None else "recovered",
    )
    shift = None if rounds is None else find_judge_shift(rounds.differences, rounds.baseline_counts)
    if rounds is None or shift is None:
        return result
    return replace(
        result,
        state="bad",
        fingerprint=rounds.fingerprint,
        value=shift.size,
        onset=rounds.started_at[shift.since_round],
        details={"judge": rounds.judge, "interval": list(shift.interval), "anchors": shift.n},
    )
