"""The interface and the context for evaluating rules of all types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from germane.alerting.rule_result import RuleResult
from germane.settings import Budget, Rule
from germane.storage import TrackingStore

MAX_INTERVAL: Final = 10.0
"""Maximum time in seconds between two evaluations of a rule."""
EVALUATIONS_PER_WINDOW: Final = 360
"""Minimum number of evaluations per window. Short windows are evaluated more often than every 10 seconds."""
RuleT = TypeVar("RuleT", bound=Rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """The store and the settings that rules read."""

    store: TrackingStore
    budget: Budget | None
    scorers: Collection[str]
    """Names of the scorers that run in this process, for window rules without a scorer."""
    as_of: Callable[[], datetime | None] = lambda: None
    """In a backtest, returns the point in time at which data is read; otherwise, returns None."""


class RuleEvaluation(ABC, Generic[RuleT]):
    """The evaluation of one rule. Each rule type has its own subclass."""

    def __init__(self, rule: RuleT, context: EvaluationContext) -> None:
        self._rule = rule
        self._context = context

    @property
    def interval(self) -> float:
        """Seconds between two evaluations; at most 10."""
        return MAX_INTERVAL

    @abstractmethod
    def evaluate(self, now: datetime) -> Iterable[RuleResult]:
        """Return the results that may have changed since the last evaluation. Reads the database."""

    def reset(self) -> None:
        """Evaluate everything again next time. This is called if the last results were not written."""


def window_interval(window: float) -> float:
    """Return the seconds between two evaluations of a window of this length in seconds."""
    return min(MAX_INTERVAL, window / EVALUATIONS_PER_WINDOW)
