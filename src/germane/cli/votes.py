"""Whether the judge's noncommittal votes may count: how often they are false of answers that people hold for good."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

from germane.cli.agreements import ENOUGH, GOOD, units_of
from germane.cli.labelled import Row
from germane.score import Score

FALSE_VOTES = 0.05
"""Share of good answers that the judge's votes may hold for noncommittal."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What the judge's noncommittal votes say of answers that people hold for good."""

    n: int = 0
    """Good answers that the judge voted on."""
    questions: int = 0
    """Their units: answers to one question are no evidence of their own each."""
    false: float | None = None
    """Share of the answers whose votes say noncommittal."""

    @property
    def at_most(self) -> float | None:
        """What that share is at most, with a certainty of 95 %."""
        return None if self.false is None else _at_most(self._false_questions, self.questions)

    @property
    def may_count(self) -> bool | None:
        """Whether they may make a score noncommittal; None where the answers do not settle it."""
        if self.false is None or self.at_most is None or self.questions < ENOUGH:
            return None
        if self.at_most <= FALSE_VOTES:
            return True
        return False if self.false > FALSE_VOTES else None

    @property
    def needed(self) -> int:
        """Questions that would let them count, if no more votes were false."""
        return next(of for of in count(1) if _at_most(self._false_questions, of) <= FALSE_VOTES)

    @property
    def _false_questions(self) -> int:
        return math.ceil((self.false or 0.0) * self.questions - 1e-9)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        found = {"at_most": self.at_most, "may_count": self.may_count, "needed": self.needed, "limit": FALSE_VOTES}
        return {**asdict(self), **found}


def votes(rows: Sequence[Row]) -> Votes:
    """Return how often the judge's votes hold an answer for noncommittal that people hold for good.

    Those of the newest fingerprint alone: another judge votes otherwise.
    """
    cast = [(row, score, vote) for row in rows for score in row.scores if (vote := _vote(score)) is not None]
    if not cast:
        return Votes()
    newest = max(cast, key=lambda one: one[1].scored_at or datetime.min.replace(tzinfo=UTC))[1].fingerprint
    good = [(row, vote) for row, score, vote in cast if row.label >= GOOD and score.fingerprint == newest]
    if not good:
        return Votes()
    return Votes(len(good), len(units_of(row for row, _ in good)), sum(vote for _, vote in good) / len(good))


def _at_most(count: int, of: int) -> float:
    from germane.agreement import at_most

    return at_most(count, of)


def _vote(score: Score) -> bool | None:
    """Return what a strict majority of the votes in a score's details says; None where there are none."""
    questions = score.details.get("questions") if score.scorer == "answer_relevancy" else None
    told = [one.get("noncommittal") for one in questions or () if isinstance(one, Mapping)]
    votes = [vote for vote in told if isinstance(vote, bool)]
    return 2 * sum(votes) > len(votes) if votes else None
