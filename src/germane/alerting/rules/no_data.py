"""``no_data``: answers arrive but are not scored. Without traffic there is nothing to alert on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from germane.alerting.rule_result import RuleResult, RuleState
from germane.alerting.rules.evaluation import MAX_INTERVAL, EvaluationContext
from germane.settings import NoData
from germane.storage import ScoringFlow

DEFAULT_GAP: Final = timedelta(hours=1)
"""Assumed typical gap between scores while too little is known."""
GAP_FACTOR: Final = 2
"""Scores are missing after this many typical gaps."""
EVALUATIONS_PER_GAP: Final = 60
"""Rules for short gaps are evaluated more often than every ten seconds."""
GAP_HISTORY: Final = timedelta(days=14)
"""Period from which typical gaps are estimated."""
GAP_REFRESH_INTERVAL: Final = timedelta(hours=1)
MIN_LOOKBACK: Final = timedelta(hours=2)
"""Minimum age up to which unscored answers are found."""


class NoDataEvaluation:
    """Evaluates a ``no_data`` rule."""

    def __init__(self, rule: NoData, context: EvaluationContext) -> None:
        self._rule = rule
        self._context = context
        self._gaps: dict[tuple[str, str], tuple[datetime, timedelta | None]] = {}
        """Typical gap by service and scorer, and when it was estimated."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations."""
        return min(MAX_INTERVAL, self._rule.at_least / EVALUATIONS_PER_GAP)

    def reset(self) -> None:
        """Do nothing: every evaluation covers everything."""

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return the results for every service and scorer."""
        rule, alerts, as_of = self._rule, self._context.store.alerts, self._context.as_of()
        longest = max((gap for _, gap in self._gaps.values() if gap is not None), default=None)
        since = now - max(MIN_LOOKBACK, 2 * max_wait(rule, longest))
        for flow in alerts.list_flows(since=since, until=as_of, includes_route=rule.matches_route):
            if rule.scorer not in {None, flow.scorer}:
                continue
            estimated_at, gap = self._gaps.get((flow.service, flow.scorer), (None, None))
            if estimated_at is None or not timedelta() <= now - estimated_at < GAP_REFRESH_INTERVAL:
                gap = alerts.typical_score_delay(flow.service, flow.scorer, since=now - GAP_HISTORY, until=as_of)
                self._gaps[flow.service, flow.scorer] = (now, gap)
            yield evaluate_no_data(rule, flow, now, gap)


def max_wait(rule: NoData, gap: timedelta | None) -> timedelta:
    """Return how long an answer may wait for the next score: twice the typical gap, at least ``at_least``."""
    return max(timedelta(seconds=rule.at_least), GAP_FACTOR * (DEFAULT_GAP if gap is None else gap))


def evaluate_no_data(rule: NoData, flow: ScoringFlow, now: datetime, gap: timedelta | None) -> RuleResult:
    """Return whether a service and scorer stopped scoring answers that were selected for scoring."""
    limit = max_wait(rule, gap)
    since = flow.waiting_since
    if since is not None and flow.last_score_at is not None:  # with a backlog, answers wait although scores are made
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
