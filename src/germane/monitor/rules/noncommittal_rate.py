"""``noncommittal_rate``: too many answers of a route do not answer."""

from __future__ import annotations

from germane.monitor.rules import share
from germane.monitor.verdict import Verdict
from germane.settings import NoncommittalRate
from germane.storage import RouteMean


def judge(rule: NoncommittalRate, mean: RouteMean) -> Verdict:
    """Say whether too many answers are noncommittal."""
    return share.judge(rule, mean, mean.noncommittal_share)
