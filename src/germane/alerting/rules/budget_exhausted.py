"""``budget_exhausted``: the day's budget is spent long before the day is over."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Final, Literal

from germane.alerting.rule_result import Verdict
from germane.settings import Budget, BudgetExhausted
from germane.storage import Spent, spent_of, spent_until

MARGIN: Final = timedelta(hours=2)
"""A budget that lasts until then before midnight is well used: nobody is told."""


def judge(rule: BudgetExhausted, budget: Budget | None, spent: Spent, now: datetime) -> Verdict:
    """Say whether nothing more is paid for on this day, UTC, and much of it is left.

    That a single hour's share is spent before the hour is over is how a budget works.
    """
    until = None if budget is None else spent_until(budget, spent, now)
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return Verdict(
        rule=rule.name,
        kind=rule.kind,
        labels={},
        state=_state(until, tomorrow, now),
        severity=rule.severity,
        pending=rule.pending,
        cause="budget",
        details=_details(budget, spent, now, until),
    )


def _state(until: datetime | None, tomorrow: datetime, now: datetime) -> Literal["bad", "good", "unclear"]:
    if until is None or until < tomorrow:
        return "good"
    return "bad" if tomorrow - now > MARGIN else "unclear"


def _details(budget: Budget | None, spent: Spent, now: datetime, until: datetime | None) -> dict[str, object]:
    if budget is None or until is None:
        return {"until": None, "spent": []}
    return {"until": until.isoformat(), "spent": spent_of(budget, spent, now)}
