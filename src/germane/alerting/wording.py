"""The words for causes and for reasons, which messages, the dashboard and the command line share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.alert import Cause, ResolveReason

CAUSES: Final[Mapping[Cause, str]] = {
    "answers_drifting": "answers drift away from the questions",
    "refusals_rising": "more refusals",
    "retrieval_worse": "retrieval returns less relevant contexts",
    "judge_broken": "the judge, the model that scores answers, fails",
    "no_data": "answers are not scored",
    "budget": "the budget is exhausted",
}
"""Likely causes of alerts."""
RESOLVE_REASONS: Final[Mapping[ResolveReason, str]] = {
    "recovered": "recovered",
    "passed": "the condition cleared before the alert fired",
    "judge_changed": "the judge changed",
    "by_hand": "someone resolved it",
    "new_baseline": "its level is the new baseline",
    "rule_removed": "its rule was removed",
}
"""Why alerts were resolved."""
