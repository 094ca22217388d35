"""``no_data``: answers come in, and none is scored any more. Where nobody asks, all is well."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal

from germane.alerting.rule_result import Verdict
from germane.settings import NoData
from germane.storage.alerting.scoring_flow import Flow

UNKNOWN: Final = timedelta(hours=1)
"""What is taken for the usual gap where too little is known."""
TIMES: Final = 2
"""So many usual gaps are too long."""


def patience(rule: NoData, usual: timedelta | None) -> timedelta:
    """Return how long an answer may wait for the next score: twice the usual gap, or what the rule says at least."""
    return max(timedelta(seconds=rule.at_least), TIMES * (UNKNOWN if usual is None else usual))


def judge(rule: NoData, flow: Flow, now: datetime, usual: timedelta | None) -> Verdict:
    """Say whether the scores of one service and scorer have stopped, while answers that were to be scored came in."""
    most = patience(rule, usual)
    since = flow.waiting_since
    if since is not None and flow.made_at is not None:  # where there is a backlog, answers wait though scores are made
        since = max(since, flow.made_at)
    waited = None if since is None else now - since
    return Verdict(
        rule=rule.name,
        kind=rule.kind,
        labels={"service": flow.service, "scorer": flow.scorer},
        state=_state(waited, most, scored=flow.scored_at is not None),
        severity=rule.severity,
        pending=rule.pending,
        cause="no_data",
        value=None if waited is None else waited.total_seconds(),
        threshold=most.total_seconds(),
        onset=since,
        details={"waiting": flow.waiting, "usual": None if usual is None else usual.total_seconds()},
    )


def _state(waited: timedelta | None, most: timedelta, *, scored: bool) -> Literal["bad", "good", "unclear"]:
    if waited is not None and waited > most:
        return "bad"
    return "good" if scored else "unclear"
