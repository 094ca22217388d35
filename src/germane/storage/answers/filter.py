"""Filters, sort orders and result types for answer searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, Literal, get_args

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.statistics import Estimate
from germane.storage.answers.lowest_scores import ScoreCriteria, ScoreFilter

AnswerState = Literal["scored", "failed", "skipped", "waiting", "any"]
STATES: Final[tuple[AnswerState, ...]] = get_args(AnswerState)
"""``any`` selects all exchanges, with or without a score."""
AnswerSort = Literal["lowest", "highest", "newest", "highest_cost", "slowest"]
SORTS: Final[tuple[AnswerSort, ...]] = get_args(AnswerSort)
"""Sort by score, answer time, scoring cost or handler duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFilter(ScoreCriteria):
    """Conditions on answers. None or an empty value matches all. The window is ``since <= started_at < until``."""

    model: str | None = None
    prompt_version: str | None = None
    user: str | None = None
    session: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    """Pairs of attribute name and value as text; only the first 200 characters of a value are compared."""
    text: str = ""
    """Substring of the question or the answer, case-insensitive."""
    question: str | None = None
    """The question, in any spelling with the same :func:`~germane.storage.answers.questions.question_key`."""
    ids: tuple[str, ...] | None = None
    """Ids of the exchanges to search; None for all, and an empty tuple for none."""
    labeled: bool | None = None
    """Whether the answer has human labels; None matches both."""
    state: AnswerState = "scored"
    reason: str | None = None
    """Reason that the score is missing, for the states ``failed`` and ``skipped``."""

    @property
    def score_filter(self) -> ScoreFilter:
        """The conditions that apply to columns of the score table."""
        return ScoreFilter(**{field.name: getattr(self, field.name) for field in fields(ScoreCriteria)})

    @property
    def needs_exchanges(self) -> bool:
        """Whether a condition applies to columns outside the score table."""
        return self.selects_exchanges or self.labeled is not None

    @property
    def selects_exchanges(self) -> bool:
        """Whether a condition applies to columns of the exchange table."""
        return bool(self.model or self.prompt_version or self.user or self.session or self.attributes or self.text)

    @property
    def selects_by_result(self) -> bool:
        """Whether the filter depends on results. If so, the mean of the matches does not represent all answers."""
        is_selective = self.low or self.label or self.text or self.labeled is not None or self.refusals is not None
        return bool(is_selective) or self.state != "scored" or self.at_least is not None or self.below is not None


_MAX_ID_LENGTH: Final = 500
"""Maximum length of an id, the same as for imported exchanges."""
_MAX_KEY: Final = 1e15
_VALID_YEARS: Final = (1971, 2999)


@dataclass(frozen=True, slots=True)
class AnswerCursor:
    """The position at which a page ended."""

    key: float
    """Sort key of the last row; 0 when sorted by time."""
    at: datetime
    """Answer time of the last row."""
    id: str
    """Id of the last row; empty if the page ended after all rows with this time."""

    def __str__(self) -> str:
        return f"{self.key!r}~{self.at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> AnswerCursor | None:
        """Parse a cursor that was converted with ``str()``. Return None if the text is invalid."""
        parts = text.split("~", 2)
        try:
            key, at = float(parts[0]), datetime.fromisoformat(parts[1])
        except (ValueError, IndexError):
            return None
        is_valid = len(parts) == 3 and len(parts[2]) <= _MAX_ID_LENGTH and "\0" not in parts[2] and abs(key) < _MAX_KEY
        # Outside these years, databases and time zone conversions cannot represent all times.
        is_valid_time = at.tzinfo is not None and _VALID_YEARS[0] <= at.year <= _VALID_YEARS[1]
        return cls(key, at, parts[2]) if is_valid and is_valid_time else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """The state of one scorer's task for one exchange."""

    scorer: str
    fingerprint: str
    state: str
    """One of ``pending``, ``running``, ``done``, ``failed`` and ``skipped``."""
    reason: UnscoredReason | None
    error: str | None
    """The last error message."""
    retries: int
    """Number of times that the task was postponed after a failed attempt."""
    due_at: datetime | None
    """For a pending task, the earliest time of the next attempt; for a running task, the end of the lease."""
    is_rescore: bool
    """Whether the task replaces an existing score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One exchange with one of its scores, or with the state of its task."""

    exchange: Exchange
    score: Score | None
    task: TaskStatus | None
    """State of the scoring task; always None in a search for scored answers."""
    feedback: Sequence[Feedback] = ()
    """Human labels, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCount:
    """The number of matching answers."""

    count: int
    is_capped: bool
    """Whether there may be more matches. Counting stops at 1,000 and covers the same time range as a page search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchSummary:
    """The number of scored answers that match a filter, and their mean score."""

    count: int
    estimate: Estimate | None
    """Mean of the scores with the newest fingerprint; None without scores."""
    searched_back_to: datetime | None
    """Start of the summarized time range if it was truncated; None if the whole window was summarized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage:
    """One page of answers."""

    answers: Sequence[Answer]
    next_cursor: AnswerCursor | None
    """Cursor of the next page; None on the last page."""
    searched_back_to: datetime | None = None
    """Start of the searched time range if it was truncated; None if the whole window was searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerNeighbors:
    """The exchanges before and after an answer in a sorted search."""

    previous: str | None = None
    """Id of the previous exchange; None at the start."""
    next: str | None = None
    """Id of the next exchange; None at the end."""
    position: int | None = None
    """Position of the answer, starting at 1; None if it is not among the first matches."""
