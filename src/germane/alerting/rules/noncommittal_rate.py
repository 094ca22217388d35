"""``noncommittal_rate``: the share of answers of a route that do not answer is above a threshold."""

from __future__ import annotations

from germane.alerting.rule_result import RuleResult
from germane.alerting.rules.evaluation import EvaluationContext
from germane.alerting.rules.window import WindowRuleEvaluation, evaluate_share
from germane.settings import NoncommittalRate
from germane.storage import RouteMean


class NoncommittalRateEvaluation(WindowRuleEvaluation[NoncommittalRate]):
    """Evaluates a ``noncommittal_rate`` rule."""

    def __init__(self, rule: NoncommittalRate, context: EvaluationContext) -> None:
        super().__init__(rule, context, evaluate_noncommittal_rate)


def evaluate_noncommittal_rate(rule: NoncommittalRate, mean: RouteMean) -> RuleResult:
    """Return whether too many answers are noncommittal."""
    return evaluate_share(rule, mean, mean.noncommittal_share)
