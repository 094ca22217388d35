"""A scorer that fails for one answer after another: said once, and once when it is over."""

from __future__ import annotations

import logging
from typing import Final

from germane.score import Reason, Score

logger = logging.getLogger("germane.monitor")

ENOUGH: Final = 5
"""Failures in a row that are no accident any more."""
PAUSED: Final = frozenset({Reason.JUDGE_REJECTED, *(reason for reason in Reason if reason.transient)})
"""Failures for which a scorer pauses, which says so itself."""


class Failing:
    """Learns from all scores that were saved which scorers fail again and again."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        """By scorer."""

    def note(self, score: Score) -> None:
        """Learn from a score. Of a failure its reason is told, and not its words: they may quote what was asked."""
        if score.state == "scored":
            self._over(score.scorer)
        elif score.state == "failed" and score.reason not in PAUSED:
            count = self._in_a_row[score.scorer] = self._in_a_row.get(score.scorer, 0) + 1
            if count == ENOUGH:
                logger.warning("%s fails again and again: %s", score.scorer, score.reason)

    def _over(self, scorer: str) -> None:
        count = self._in_a_row.pop(scorer, 0)
        if count >= ENOUGH:
            logger.warning("%s scores again, after %d failures in a row", scorer, count)
