"""All alert rules except ``drop``, and the schedule for evaluating them.

To add a rule type, add its settings to :mod:`germane.settings.rules`, its evaluation to a module in this package, an
entry to :data:`EVALUATIONS`, and a message to :mod:`germane.alerting.wording`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from germane.alerting.rule_result import RuleResult
from germane.alerting.rules.evaluation import EvaluationContext, RuleEvaluation
from germane.alerting.rules.scoring_health import (
    BudgetExhaustedEvaluation,
    JudgeDriftEvaluation,
    NoDataEvaluation,
    ScorerErrorEvaluation,
)
from germane.alerting.rules.window import (
    WindowRuleEvaluation,
    evaluate_low_score_rate,
    evaluate_mean_threshold,
    evaluate_noncommittal_rate,
    evaluate_share,
)
from germane.settings import AnyRule

__all__ = [
    "EVALUATIONS",
    "EvaluationContext",
    "RuleSchedule",
    "evaluate_mean_threshold",
    "evaluate_share",
    "warn_about_missing_scorers",
]

logger = logging.getLogger("germane.alerting")

EVALUATIONS: Final[Mapping[str, Callable[[Any, EvaluationContext], RuleEvaluation[Any]]]] = {
    "mean_threshold": partial(WindowRuleEvaluation, evaluate_mean=evaluate_mean_threshold),
    "low_score_rate": partial(WindowRuleEvaluation, evaluate_mean=evaluate_low_score_rate),
    "noncommittal_rate": partial(WindowRuleEvaluation, evaluate_mean=evaluate_noncommittal_rate),
    "no_data": NoDataEvaluation,
    "scorer_error": ScorerErrorEvaluation,
    "budget_exhausted": BudgetExhaustedEvaluation,
    "judge_drift": JudgeDriftEvaluation,
}
"""Evaluation factories by rule type. A separate package evaluates the ``drop`` rule."""


class RuleSchedule:
    """Evaluates each rule at its own interval.

    Args:
        rules: All active rules. Drop rules are ignored.
        context: The store and the settings that rules read.
        min_interval: Minimum number of seconds between two evaluations of a rule.
    """

    def __init__(self, rules: Sequence[AnyRule], context: EvaluationContext, *, min_interval: float) -> None:
        self._evaluations = [EVALUATIONS[rule.type](rule, context) for rule in rules if rule.type != "drop"]
        self._min_interval = min_interval
        self._evaluated_at: dict[int, datetime] = {}
        """Time of the last evaluation, by index in ``_evaluations``."""

    def evaluate(self, now: datetime) -> list[RuleResult]:
        """Return the results for the rules that are due. Reads the database."""
        due = []
        for index, evaluation in enumerate(self._evaluations):
            last = self._evaluated_at.get(index)
            interval = timedelta(seconds=max(self._min_interval, evaluation.interval))
            if last is None or not timedelta() <= now - last < interval:  # True if the clock was set back
                due.append(index)
        results = [result for index in due for result in self._evaluations[index].evaluate(now)]
        self._evaluated_at |= dict.fromkeys(due, now)
        return results

    def reset(self) -> None:
        """Evaluate all rules next time.

        Call this if the last results were not written or if another process has evaluated the rules since.
        """
        self._evaluated_at.clear()
        for evaluation in self._evaluations:
            evaluation.reset()


def warn_about_missing_scorers(rules: Sequence[AnyRule], scorers: Collection[str]) -> None:
    """Log a warning for each rule that watches a scorer that is not running in this process."""
    for rule in rules:
        if scorers and rule.scorer is not None and rule.scorer not in scorers:
            logger.warning(
                "rule %r watches scorer %s, which does not run in this process (running: %s); the rule only sees "
                "scores from other processes",
                rule.name, rule.scorer, ", ".join(sorted(scorers)),
            )  # fmt: skip
