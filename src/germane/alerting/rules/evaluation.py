"""What the evaluation of every rule type has in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from germane.alerting.rule_result import RuleResult
from germane.settings import Budget
from germane.storage import TrackingStore

MAX_INTERVAL: Final = 10.0
"""Longest time in seconds between two evaluations of a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """What rules read."""

    store: TrackingStore
    budget: Budget | None
    scorers: Collection[str]
    """Names of the scorers of this process, for window rules that name none."""
    as_of: Callable[[], datetime | None] = lambda: None
    """In a backtest, the moment whose data is read; otherwise None."""


class RuleEvaluation(Protocol):
    """Evaluates one rule. Every rule type has a class in a module of its own."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations, at least as often as every ten seconds."""

    def evaluate(self, now: datetime) -> Iterable[RuleResult]:
        """Return the results that may have changed since the last evaluation. Reads the database."""

    def reset(self) -> None:
        """Evaluate everything again next time: the last results were not written."""
