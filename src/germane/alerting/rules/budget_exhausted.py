"""``budget_exhausted``: the daily budget is spent long before the day ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Final

from germane.alerting.rule_result import RuleResult, RuleState
from germane.alerting.rules.evaluation import MAX_INTERVAL, EvaluationContext
from germane.score import UnscoredReason
from germane.settings import Budget, BudgetExhausted
from germane.storage import BudgetDay, describe_usage, exhausted_until

END_OF_DAY_MARGIN: Final = timedelta(hours=2)
"""A budget that lasts until this long before midnight is well used and does not alert."""


class BudgetExhaustedEvaluation:
    """Evaluates a ``budget_exhausted`` rule."""

    def __init__(self, rule: BudgetExhausted, context: EvaluationContext) -> None:
        self._rule = rule
        self._context = context

    @property
    def interval(self) -> float:
        """Seconds between two evaluations."""
        return MAX_INTERVAL

    def reset(self) -> None:
        """Do nothing: every evaluation covers everything."""

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return whether the budget is spent."""
        as_of = self._context.as_of()
        spent = self._context.store.quota.load_usage() if as_of is None else self._spent_at(as_of)
        yield evaluate_budget_exhausted(self._rule, self._context.budget, spent, now)

    def _spent_at(self, moment: datetime) -> BudgetDay:
        """Return the final usage of a past day from its first unpaid answer on, and none before.

        Only the total of each day is stored.
        """
        day = moment.astimezone(UTC).date()
        coverage = self._context.store.trends.coverage(since=datetime.combine(day, time(), UTC), until=moment)
        is_spent = any(UnscoredReason.BUDGET.value in one.skipped for one in coverage)
        return self._context.store.quota.load_usage(day) if is_spent else BudgetDay(day=day)


def evaluate_budget_exhausted(
    rule: BudgetExhausted, budget: Budget | None, spent: BudgetDay, now: datetime
) -> RuleResult:
    """Return whether the budget of this UTC day is spent while much of the day is left.

    A spent hourly share is normal operation.
    """
    until = None if budget is None else exhausted_until(budget, spent, now)
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    state: RuleState = "good"
    if until is not None and until >= tomorrow:
        state = "bad" if tomorrow - now > END_OF_DAY_MARGIN else "unclear"
    details: dict[str, object] = {"until": None, "spent": []}
    if budget is not None and until is not None:
        details = {"until": until.isoformat(), "spent": describe_usage(budget, spent, now)}
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
