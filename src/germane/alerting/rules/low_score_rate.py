"""``low_score_rate``: the share of low scores of a route is above a threshold."""

from __future__ import annotations

from germane.alerting.rule_result import RuleResult
from germane.alerting.rules.evaluation import EvaluationContext
from germane.alerting.rules.window import WindowRuleEvaluation, evaluate_share
from germane.settings import LowScoreRate
from germane.storage import RouteMean


class LowScoreRateEvaluation(WindowRuleEvaluation[LowScoreRate]):
    """Evaluates a ``low_score_rate`` rule."""

    def __init__(self, rule: LowScoreRate, context: EvaluationContext) -> None:
        super().__init__(rule, context, evaluate_low_score_rate)


def evaluate_low_score_rate(rule: LowScoreRate, mean: RouteMean) -> RuleResult:
    """Return whether too many scores are in the lowest band."""
    return evaluate_share(rule, mean, mean.low_share)
