"""``scorer_error``: a scorer fails. The judge broke, which says nothing of the answers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from germane.alerting.rule_result import Verdict
from germane.settings import ScorerError


def judge(rule: ScorerError, service: str, scorer: str, scored: int, reasons: Counter[str]) -> Verdict:
    """Say whether too large a share of what was tried failed, or is to be tried again.

    Bad above the threshold, good from half of it on down, unclear between these and under ``min_count``.

    Args:
        rule: what is asked.
        service: whose answers.
        scorer: what was to score them.
        scored: how many it did.
        reasons: of those that it did not, how many for each reason.
    """
    failed = reasons.total()
    share = failed / (scored + failed) if scored + failed else 0.0
    return Verdict(
        rule=rule.name,
        kind=rule.kind,
        labels={"service": service, "scorer": scorer},
        state=_state(rule, scored + failed, share),
        severity=rule.severity,
        pending=rule.pending,
        cause="judge_broken",
        value=share,
        threshold=rule.threshold,
        window=rule.window,
        details=_details(scored + failed, reasons),
    )


def _state(rule: ScorerError, tried: int, share: float) -> Literal["bad", "good", "unclear"]:
    if tried < rule.min_count:
        return "unclear"
    if share > rule.threshold:
        return "bad"
    return "good" if share <= rule.threshold / 2 else "unclear"


def _details(tried: int, reasons: Counter[str]) -> dict[str, Any]:
    commonest = reasons.most_common(1)
    return {"tried": tried, "failed": reasons.total(), "reason": commonest[0][0] if commonest else None}
