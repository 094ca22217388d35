"""Which answers are asked for, in which order, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage.answers.lowest_scores import Chosen

AnswerState = Literal["scored", "failed", "skipped", "waiting", "any"]
STATES: Final[tuple[AnswerState, ...]] = get_args(AnswerState)
"""``any`` takes every exchange, with the score that it has or has not."""
Sort = Literal["lowest", "highest", "newest", "dearest", "slowest"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)
"""By value, by when the answer was given, by what its score cost, by how long the handler took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFilter:
    """What is asked for; None, or nothing, takes all. Moments are of the answers: since <= started_at < until."""

    since: datetime | None = None
    until: datetime | None = None
    scorer: str | None = None
    service: str | None = None
    route: str | None = None
    fingerprint: str | None = None
    label: str | None = None
    """Such as ``noncommittal``."""
    low: bool = False
    """Only those in the lowest band."""
    at_least: float | None = None
    below: float | None = None
    model: str | None = None
    prompt_version: str | None = None
    text: str = ""
    """Contained in question or answer, in small or capital letters."""
    labelled: bool | None = None
    """Whether people have labelled it."""
    state: AnswerState = "scored"
    reason: str | None = None
    """Why there is no score; of the states ``failed`` and ``skipped``."""

    @property
    def of_scores(self) -> Chosen:
        """What of it the table of scores knows."""
        names = ("since", "until", "scorer", "service", "route", "fingerprint", "label", "low", "at_least", "below")
        return Chosen(**{name: getattr(self, name) for name in names})

    @property
    def needs_exchanges(self) -> bool:
        """Whether the index of scores is not enough to tell."""
        return bool(self.model or self.prompt_version or self.text or self.labelled is not None)

    @property
    def by_value(self) -> bool:
        """Whether it picks answers by what was found out about them: their mean would say nothing of the others."""
        picked = self.low or self.label or self.text or self.labelled is not None or self.state != "scored"
        return bool(picked) or self.at_least is not None or self.below is not None


_LONGEST: Final = 500
"""Characters of an id: as many as one that is imported may have."""
_HIGHEST: Final = 1e15
_YEARS: Final = (1971, 2999)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: the next one begins behind it."""

    key: float
    """What was sorted by; 0 where that is time."""
    at: datetime
    id: str
    """Of the row; empty behind all of that moment."""

    def __str__(self) -> str:
        return f"{self.key!r}~{self.at.isoformat()}~{self.id}"

    @classmethod
    def read(cls, text: str) -> Place | None:
        """Return the place that a text tells of; None where it tells of none."""
        parts = text.split("~", 2)
        try:
            key, at = float(parts[0]), datetime.fromisoformat(parts[1])
        except (ValueError, IndexError):
            return None
        usable = len(parts) == 3 and len(parts[2]) <= _LONGEST and "\0" not in parts[2] and abs(key) < _HIGHEST
        # Beyond those years no database, and no zone, could tell the moment.
        is_moment = at.tzinfo is not None and _YEARS[0] <= at.year <= _YEARS[1]
        return cls(key, at, parts[2]) if usable and is_moment else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One scorer's task of one exchange, as it stands."""

    scorer: str
    fingerprint: str
    state: str
    """pending, running, done, failed or skipped."""
    reason: Reason | None
    error: str | None
    """What was said last: why it failed, or is tried again."""
    tries: int
    """How often it was tried in vain and put off."""
    not_before: datetime | None
    """Of a task that waits: the earliest moment of the next try. Of a running one, the end of its lease."""
    again: bool
    """Whether it is scored again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One exchange with one score of it, or with why there is none."""

    exchange: Exchange
    score: Score | None
    work: Work | None
    """What became of it, where there is no score."""
    feedback: Sequence[Feedback] = ()
    """People's labels, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """How many there are."""

    count: int
    more: bool
    """Whether there may be more: counting ends at a thousand, and looks no further back than the page does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage:
    """Some answers, in order."""

    answers: Sequence[Answer]
    after: Place | None
    """Where the next page begins; None at the end."""
    looked_back_to: datetime | None = None
    """Older ones were not looked at, for there are too many; None where all were."""
