"""Rules other than ``drop``: one module per rule type, and the schedule on which they are evaluated.

To add a rule type, add its settings to :mod:`germane.settings.rules`, a module here, a line to :data:`EVALUATIONS`
and a sentence to :mod:`germane.alerting.messages`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from germane.alerting.rule_result import RuleResult
from germane.alerting.rules.budget_exhausted import BudgetExhaustedEvaluation
from germane.alerting.rules.evaluation import EvaluationContext, RuleEvaluation
from germane.alerting.rules.low_score_rate import LowScoreRateEvaluation
from germane.alerting.rules.mean_threshold import MeanThresholdEvaluation
from germane.alerting.rules.no_data import NoDataEvaluation
from germane.alerting.rules.noncommittal_rate import NoncommittalRateEvaluation
from germane.alerting.rules.scorer_error import ScorerErrorEvaluation
from germane.settings import AnyRule

__all__ = ["EVALUATIONS", "EvaluationContext", "RuleSchedule", "warn_about_missing_scorers"]

logger = logging.getLogger("germane.alerting")

EVALUATIONS: Final[Mapping[str, Callable[[Any, EvaluationContext], RuleEvaluation]]] = {
    "mean_threshold": MeanThresholdEvaluation,
    "low_score_rate": LowScoreRateEvaluation,
    "noncommittal_rate": NoncommittalRateEvaluation,
    "no_data": NoDataEvaluation,
    "scorer_error": ScorerErrorEvaluation,
    "budget_exhausted": BudgetExhaustedEvaluation,
}
"""By rule type. The ``drop`` rule has a package of its own."""


class RuleSchedule:
    """Evaluates each rule at its interval.

    Args:
        rules: All active rules; drop rules are ignored.
        context: What rules read.
        min_interval: Minimum number of seconds between two evaluations of a rule.
    """

    def __init__(self, rules: Sequence[AnyRule], context: EvaluationContext, *, min_interval: float) -> None:
        self._evaluations = [EVALUATIONS[rule.type](rule, context) for rule in rules if rule.type in EVALUATIONS]
        self._min_interval = min_interval
        self._evaluated_at: dict[int, datetime] = {}
        """By index of the evaluation."""

    def evaluate(self, now: datetime) -> list[RuleResult]:
        """Return the results of the rules that are due. Reads the database."""
        due = [index for index in range(len(self._evaluations)) if self._is_due(index, now)]
        results = [result for index in due for result in self._evaluations[index].evaluate(now)]
        self._evaluated_at |= dict.fromkeys(due, now)
        return results

    def reset(self) -> None:
        """Evaluate everything again next time: the last results were not written, or another process evaluated."""
        self._evaluated_at.clear()
        for evaluation in self._evaluations:
            evaluation.reset()

    def _is_due(self, index: int, now: datetime) -> bool:
        last = self._evaluated_at.get(index)
        interval = max(self._min_interval, self._evaluations[index].interval)
        return last is None or not timedelta() <= now - last < timedelta(seconds=interval)


def warn_about_missing_scorers(rules: Sequence[AnyRule], scorers: Collection[str]) -> None:
    """Log a warning for each rule that watches a scorer which does not run in this process."""
    for rule in rules:
        if scorers and rule.scorer is not None and rule.scorer not in scorers:
            logger.warning(
                "rule %r watches scorer %s, which does not run in this process (running: %s); it only sees scores of "
                "other processes",
                rule.name, rule.scorer, ", ".join(sorted(scorers)),
            )  # fmt: skip
