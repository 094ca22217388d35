"""Window rules, which watch the mean or a share of each route's recent scores.

- ``mean_threshold``: a route's mean score is significantly below a threshold.
- ``low_score_rate``: the share of low scores is above a threshold.
- ``noncommittal_rate``: the share of noncommittal answers is above a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from germane.alert import ScoreLevel
from germane.alerting.intervals import mean_upper_limit, share_interval, share_lower_limit
from germane.alerting.rule_result import RuleResult, RuleState
from germane.alerting.rules.evaluation import EvaluationContext, RuleEvaluation, window_interval
from germane.settings import LowScoreRate, MeanThreshold, NoncommittalRate, WindowRule
from germane.storage import RouteMean

MAX_WINDOW_FACTOR: Final = 32
"""Maximum factor by which a window with too few scores is extended."""
FRESH_FRACTION: Final = 1 / 100
"""Maximum gap between a window's newest score and its end, as a fraction of its length. If the gap is larger, the
window that ends at the newest score is read instead."""
_TICK: Final = timedelta(microseconds=1)
WindowRuleT = TypeVar("WindowRuleT", bound=WindowRule)


class WindowRuleEvaluation(RuleEvaluation[WindowRuleT]):
    """Evaluates a window rule for each route with new scores.

    Only a route's newest fingerprint counts. The window ends at the route's newest score, so the result does not change
    while no scores arrive.

    Args:
        rule: The rule.
        context: The store and the settings that rules read.
        evaluate_mean: Returns the result for a mean, or None if the rule does not apply to the mean's scorer.
    """

    def __init__(
        self,
        rule: WindowRuleT,
        context: EvaluationContext,
        evaluate_mean: Callable[[WindowRuleT, RouteMean], RuleResult | None],
    ) -> None:
        super().__init__(rule, context)
        self._evaluate_mean = evaluate_mean
        self._scorers = [rule.scorer] if rule.scorer else sorted(context.scorers)
        self._evaluated: dict[tuple[str, str, str], datetime] = {}
        """Time of the newest evaluated score, by scorer, service and route."""

    @property
    def interval(self) -> float:
        """Seconds between two evaluations."""
        return window_interval(self._rule.window)

    def reset(self) -> None:
        """Evaluate all routes again next time."""
        self._evaluated.clear()

    def evaluate(self, now: datetime) -> Iterator[RuleResult]:
        """Return the results for routes with new scores."""
        window = timedelta(seconds=self._rule.window)
        for scorer in self._scorers:
            for mean in self._means(scorer, now - window, self._context.as_of()):
                stream = (scorer, mean.service, mean.route)
                if self._evaluated.get(stream) == mean.latest:
                    continue
                route_mean, length = self._extend(scorer, mean, now, window)
                result = self._evaluate_mean(self._rule, route_mean)
                if result is not None:
                    yield replace(result, window=length.total_seconds())
                self._evaluated[stream] = mean.latest

    def _extend(self, scorer: str, mean: RouteMean, now: datetime, window: timedelta) -> tuple[RouteMean, timedelta]:
        """Return the mean over the newest window with enough scores, or the longest one, and its length."""

        def read(length: timedelta) -> RouteMean:
            end = mean.latest + _TICK
            return next(self._means(scorer, mean.latest - length, end, mean.service, mean.route), mean)

        route_mean = read(window) if now - mean.latest > window * FRESH_FRACTION else mean
        factor = 1
        while route_mean.n < self._rule.min_samples and factor < MAX_WINDOW_FACTOR:
            factor *= 2
            route_mean = read(factor * window)
        return route_mean, factor * window

    def _means(
        self,
        scorer: str,
        since: datetime,
        until: datetime | None,
        service: str | None = None,
        route: str | None = None,
    ) -> Iterator[RouteMean]:
        trends, attributes = self._context.store.trends, self._rule.attributes
        selected: dict[str, Any] = {
            "scorer": scorer, "since": since, "until": until, "service": service, "route": route
        }  # fmt: skip
        if attributes:
            means = trends.means_with_attributes(attributes, **selected)
        else:
            means = trends.means(**selected, histograms=False)
        return (mean for mean in means if mean.newest and self._rule.matches_route(mean.route))


def evaluate_share(rule: LowScoreRate | NoncommittalRate, mean: RouteMean, share: float) -> RuleResult:
    """Evaluate whether a share of the scores for one service, route and fingerprint is too large.

    The result is bad if the share and its one-sided lower 95% limit are above the threshold, and good if the share is
    at most the threshold minus ``recovery_margin``. Otherwise, or with fewer than ``min_samples`` scores, it is
    unclear.
    """
    state: RuleState = "unclear"
    if mean.n >= rule.min_samples:
        if share > rule.threshold and share_lower_limit(mean, share) > rule.threshold:
            state = "bad"
        elif share <= max(0.0, rule.threshold - rule.recovery_margin):
            state = "good"
    level = ScoreLevel(mean=share, n=mean.n, interval=share_interval(mean, share))
    return window_result(rule, mean, state, level, rule.threshold)


def window_result(
    rule: MeanThreshold | LowScoreRate | NoncommittalRate,
    mean: RouteMean,
    state: RuleState,
    level: ScoreLevel,
    threshold: float,
) -> RuleResult:
    """Build a window rule's result for one service, route and fingerprint."""
    return RuleResult(
        rule=rule.name,
        type=rule.type,
        labels={"service": mean.service, "scorer": mean.scorer, "route": mean.route},
        state=state,
        severity=rule.severity,
        pending=rule.pending,
        keep_firing_for=rule.keep_firing_for,
        fingerprint=mean.fingerprint,
        value=level.mean,
        threshold=threshold,
        current=level,
        window=rule.window,
    )


def evaluate_mean_threshold(rule: MeanThreshold, mean: RouteMean) -> RuleResult:
    """Evaluate whether the scores for one service, route and fingerprint are too low.

    The result is bad if the mean and its one-sided upper 95% limit are below the threshold, and good if the mean is at
    least the threshold plus ``recovery_margin``. Otherwise, or with fewer than ``min_samples`` scores, it is unclear.
    """
    state: RuleState = "unclear"
    if mean.n >= rule.min_samples and mean.interval is not None:
        if mean.mean < rule.threshold and mean_upper_limit(mean.mean, mean.interval) < rule.threshold:
            state = "bad"
        elif mean.mean >= rule.threshold + rule.recovery_margin:
            state = "good"
    level = ScoreLevel(mean=mean.mean, n=mean.n, interval=mean.interval)
    return window_result(rule, mean, state, level, rule.threshold)


def evaluate_low_score_rate(rule: LowScoreRate, mean: RouteMean) -> RuleResult:
    """Evaluate whether too many scores are in the lowest band."""
    return evaluate_share(rule, mean, mean.low_share)


def evaluate_noncommittal_rate(rule: NoncommittalRate, mean: RouteMean) -> RuleResult | None:
    """Evaluate whether too many answers are noncommittal. Return None if the scorer does not detect such answers."""
    return None if mean.noncommittal_share is None else evaluate_share(rule, mean, mean.noncommittal_share)
