"""``mean_threshold``: the mean of a route is below a threshold, and not just by chance."""

from __future__ import annotations

from germane.alert import ScoreLevel
from germane.alerting.intervals import mean_upper_limit
from germane.alerting.rule_result import RuleResult, RuleState
from germane.alerting.rules.evaluation import EvaluationContext
from germane.alerting.rules.window import WindowRuleEvaluation, window_result
from germane.settings import MeanThreshold
from germane.storage import RouteMean


class MeanThresholdEvaluation(WindowRuleEvaluation[MeanThreshold]):
    """Evaluates a ``mean_threshold`` rule."""

    def __init__(self, rule: MeanThreshold, context: EvaluationContext) -> None:
        super().__init__(rule, context, evaluate_mean_threshold)


def evaluate_mean_threshold(rule: MeanThreshold, mean: RouteMean) -> RuleResult:
    """Return whether the scores of one service, route and fingerprint are too low.

    Bad if the mean and its one-sided upper 95 % limit are below the threshold; good at or above the threshold plus
    ``recovery_margin``; otherwise, or with fewer scores than ``min_samples``, unclear.
    """
    state: RuleState = "unclear"
    if mean.n >= rule.min_samples and mean.interval is not None:
        if mean.mean < rule.threshold and mean_upper_limit(mean.mean, mean.interval) < rule.threshold:
            state = "bad"
        elif mean.mean >= rule.threshold + rule.recovery_margin:
            state = "good"
    level = ScoreLevel(mean=mean.mean, n=mean.n, interval=mean.interval)
    return window_result(rule, mean, state, level, rule.threshold)
