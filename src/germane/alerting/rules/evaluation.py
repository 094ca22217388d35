"""The interface and the context that the evaluations of all rule types share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from germane.alerting.rule_result import RuleResult
from germane.settings import Budget
from germane.storage import TrackingStore

MAX_INTERVAL: Final = 10.0
"""Maximum time in seconds between two evaluations of a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """The store and the settings that rules read."""

    store: TrackingStore
    budget: Budget | None
    scorers: Collection[str]
    """Names of the scorers that run in this process, for window rules without a scorer."""
    as_of: Callable[[], datetime | None] = lambda: None
    """In a backtest, returns the time as of which to read data; otherwise, returns None."""


class RuleEvaluation(Protocol):
    """Evaluates one rule."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations; at most 10."""

    def evaluate(self, now: datetime) -> Iterable[RuleResult]:
        """Return the results that may have changed since the last evaluation. Reads the database."""

    def reset(self) -> None:
        """Evaluate everything again next time. Called if the last results were not written."""
