"""Leaving a judge alone that would refuse the next exchange as well."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.monitor.loop.backoff import Backoff
from germane.score import Reason, Score
from germane.scorers import is_rejected, may_succeed_later

logger = logging.getLogger("germane.monitor")

Admission = Literal["go", "probe", "wait"]
REJECTIONS: Final = 2
"""Rejections in a row after which a scorer pauses. A single one may be about that one exchange."""
OUTAGES: Final = 5
"""The same for a judge that is away, slow or busy."""
_SAYS_NOTHING: Final = frozenset({Reason.MISSING_INPUT, Reason.SCORER_ERROR, Reason.BUDGET})


class Pause:
    """Whether one scorer may ask its judge now.

    After failures in a row it may not, for a while that doubles with each failed probe. Then one exchange goes ahead as
    a probe; any reply of the judge ends the pause.
    """

    def __init__(self, scorer: str, *, backoff: Backoff, clock: Callable[[], datetime]) -> None:
        self.scorer = scorer
        self.reason: Reason | None = None
        self.problem: str | None = None
        """Why it pauses, None while it does not."""
        self.until: datetime | None = None
        self._backoff = backoff
        self._clock = clock
        self._failures = 0
        self._probes = 0
        self._probing = False

    @property
    def closed(self) -> bool:
        """Whether no exchange may go ahead now."""
        return self.until is not None and (self._probing or self._lasts(self.until - self._clock()))

    def admit(self) -> Admission:
        """Say whether an exchange may go ahead, and whether it does so as the probe."""
        if self.until is None:
            return "go"
        if self.closed:
            return "wait"
        self._probing = True
        return "probe"

    def left(self) -> timedelta:
        """Return how long it is closed for; a probe that is under way takes about the shortest wait."""
        if self.until is None:
            return timedelta()
        return max(self.until - self._clock(), timedelta(seconds=self._backoff.first))

    def _lasts(self, left: timedelta) -> bool:
        """Whether there is something left; more than the longest pause there is means that the clock was set back."""
        return timedelta() < left <= timedelta(seconds=self._backoff.longest)

    def abandon(self, admission: Admission) -> None:
        """Take back an admission whose exchange was not scored."""
        if admission == "probe":
            self._probing = False

    def note(self, score: Score, admission: Admission) -> None:
        """Learn from what became of an exchange that went ahead."""
        self.abandon(admission)
        if is_rejected(score) or may_succeed_later(score):
            self._note_failure(score, admission)
        elif score.reason not in _SAYS_NOTHING:
            self._end()

    def _note_failure(self, score: Score, admission: Admission) -> None:
        self._failures += 1
        asked = retry_after(score)
        enough = REJECTIONS if is_rejected(score) else OUTAGES
        if admission == "probe" or (self.until is None and (asked or self._failures >= enough)):
            self._begin(score, asked)

    def _begin(self, score: Score, asked: float | None) -> None:
        self._probes += 1
        self.until = self._clock() + self._backoff.wait(self._probes, at_least=asked)
        if self.problem is None:
            # A judge that is merely busy is daily life: no reason to warn anybody.
            level = logging.INFO if score.reason is Reason.JUDGE_RATE_LIMITED else logging.WARNING
            logger.log(level, "%s pauses, and tries again by itself: %s", self.scorer, _sentence(score))
        self.reason, self.problem = score.reason, _sentence(score)

    def _end(self) -> None:
        if self.problem is not None:
            level = logging.INFO if self.reason is Reason.JUDGE_RATE_LIMITED else logging.WARNING
            logger.log(level, "%s goes on", self.scorer)
        self.until = self.reason = self.problem = None
        self._failures = self._probes = 0


def retry_after(score: Score) -> float | None:
    """Return the seconds that the judge's server asked to be left alone."""
    asked = score.details.get("retry_after")
    return float(asked) if isinstance(asked, (int, float)) else None


def _sentence(score: Score) -> str:
    text = f"{score.reason}: {score.explanation or 'no explanation'}"
    return "".join(character if character.isprintable() else " " for character in text)
