"""``low_rate``: too many scores of a route are low."""

from __future__ import annotations

from germane.monitor.rules import share
from germane.monitor.verdict import Verdict
from germane.settings import LowRate
from germane.storage import RouteMean


def judge(rule: LowRate, mean: RouteMean) -> Verdict:
    """Say whether too many scores are in the lowest band."""
    return share.judge(rule, mean, mean.low_share)
