"""``low_rate``: too many scores of a route are low."""

from __future__ import annotations

from typing import Literal

from germane.alert import Level
from germane.alerting.rule_result import Verdict
from germane.alerting.rules.one_sided import lower_of_share, share_interval
from germane.settings import LowRate, NoncommittalRate
from germane.storage import RouteMean

Rule = LowRate | NoncommittalRate


def judge_share(rule: Rule, mean: RouteMean, share: float) -> Verdict:
    """Say whether a share of the scores of one service, route and fingerprint is too large.

    Bad when share and one-sided lower 95 % limit are above the threshold, good from threshold - recovery on down;
    between these, and with fewer scores than ``min_count``, unclear.
    """
    return Verdict(
        rule=rule.name,
        kind=rule.kind,
        labels={"service": mean.service, "scorer": mean.scorer, "route": mean.route},
        state=_state(rule, mean, share),
        severity=rule.severity,
        pending=rule.pending,
        keep_firing=rule.keep_firing,
        fingerprint=mean.fingerprint,
        value=share,
        threshold=rule.threshold,
        current=Level(mean=share, n=mean.n, interval=share_interval(mean, share)),
        window=rule.window,
    )


def _state(rule: Rule, mean: RouteMean, share: float) -> Literal["bad", "good", "unclear"]:
    if mean.n < rule.min_count:
        return "unclear"
    if share > rule.threshold and lower_of_share(mean, share) > rule.threshold:
        return "bad"
    return "good" if share <= max(0.0, rule.threshold - rule.recovery) else "unclear"


def judge(rule: LowRate, mean: RouteMean) -> Verdict:
    """Say whether too many scores are in the lowest band."""
    return judge_share(rule, mean, mean.low_share)


def judge_noncommittal_rate(rule: NoncommittalRate, mean: RouteMean) -> Verdict:
    """Say whether too many answers are noncommittal."""
    return judge_share(rule, mean, mean.noncommittal_share)
