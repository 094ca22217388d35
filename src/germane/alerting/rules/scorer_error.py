"""``scorer_error``: a scorer fails. This is a problem of the judge, not of the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from germane.alerting.rule_result import RuleResult, RuleState
from germane.alerting.rules.evaluation import MAX_INTERVAL, EvaluationContext
from germane.settings import ScorerError

EVALUATIONS_PER_WINDOW: Final = 360
"""Short windows are evaluated more often than every ten seconds."""


class ScorerErrorEvaluation:
    """Evaluates a ``scorer_error`` rule."""

    def __init__(self, rule: ScorerError, context: EvaluationContext) -> None:
        self._rule = rule
        self._context = context

    @property
    def interval(self) -> float:
        """Seconds between two evaluations."""
        return min(MAX_INTERVAL, self._rule.window / EVALUATIONS_PER_WINDOW)

    def reset(self) -> None:
        """Do nothing: every evaluation covers everything."""

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return the results for every service and scorer."""
        rule, store, as_of = self._rule, self._context.store, self._context.as_of()
        scored: Counter[tuple[str, str]] = Counter()
        failures: dict[tuple[str, str], Counter[str]] = {}
        for coverage in store.trends.coverage(since=now - timedelta(seconds=rule.window), until=as_of):
            if rule.matches_route(coverage.route) and rule.scorer in {None, coverage.scorer}:
                names = (coverage.service, coverage.scorer)
                scored[names] += coverage.scored
                failures.setdefault(names, Counter()).update(coverage.failed)
        # Attempts that failed in the past and succeeded later are not stored.
        for failing in store.alerts.list_failing() if as_of is None else ():
            names = (failing.service, failing.scorer)
            if rule.matches_route(failing.route) and names in failures:
                failures[names][failing.reason] += failing.tasks
        for names, reasons in sorted(failures.items()):
            yield evaluate_scorer_error(rule, *names, scored[names], reasons)


def evaluate_scorer_error(
    rule: ScorerError, service: str, scorer: str, scored: int, reasons: Counter[str]
) -> RuleResult:
    """Return whether too large a share of attempts failed.

    Bad above the threshold, good at or below half of it; otherwise, or with fewer attempts than ``min_samples``,
    unclear.

    Args:
        rule: The rule.
        service: Name of the service.
        scorer: Name of the scorer.
        scored: Number of scores.
        reasons: Failures by reason, including those that will be retried.
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
    most_common = reasons.most_common(1)
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
        details={"tried": attempts, "failed": failed, "reason": most_common[0][0] if most_common else None},
    )
