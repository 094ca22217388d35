"""``floor``: the mean of a route lies under a threshold, and not just by chance."""

from __future__ import annotations

from typing import Literal

from germane.alert import Level
from germane.alerting.rule_result import Verdict
from germane.alerting.rules.one_sided import upper
from germane.settings import Floor
from germane.storage import RouteMean


def judge(rule: Floor, mean: RouteMean) -> Verdict:
    """Say whether the scores of one service, route and fingerprint lie too low.

    Bad when mean and one-sided upper 95 % limit are under the threshold, good from threshold + recovery on; between
    these, and with fewer scores than ``min_count``, unclear.
    """
    return Verdict(
        rule=rule.name,
        kind=rule.kind,
        labels={"service": mean.service, "scorer": mean.scorer, "route": mean.route},
        state=_state(rule, mean),
        severity=rule.severity,
        pending=rule.pending,
        keep_firing=rule.keep_firing,
        fingerprint=mean.fingerprint,
        value=mean.mean,
        threshold=rule.threshold,
        current=Level(mean=mean.mean, n=mean.n, interval=mean.interval),
        window=rule.window,
    )


def _state(rule: Floor, mean: RouteMean) -> Literal["bad", "good", "unclear"]:
    if mean.n < rule.min_count or mean.interval is None:
        return "unclear"
    if mean.mean < rule.threshold and upper(mean.mean, mean.interval) < rule.threshold:
        return "bad"
    return "good" if mean.mean >= rule.threshold + rule.recovery else "unclear"
