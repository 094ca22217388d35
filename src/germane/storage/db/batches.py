"""Batches of rows that background jobs change, one transaction per batch, and counts of removed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import RowMapping

from germane import sanitize

BATCH_SIZE: Final = 1000
"""Maximum number of rows per transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """Counts of erased and deleted rows."""

    texts: int = 0
    """Exchanges whose text was erased, but which are still stored."""
    exchanges: int = 0
    scores: int = 0
    """Scores of deleted exchanges."""
    expired: int = 0
    """Pending tasks that were skipped because their exchange's text was erased."""
    feedback: int = 0
    """Labels of deleted exchanges, and labels that a deleted user gave."""
    comments: int = 0
    """Comments that were erased from old labels."""
    counts: int = 0
    """Rows of the tally."""
    workers: int = 0
    """Worker rows of stopped processes."""
    markers: int = 0
    alerts: int = 0
    """Resolved alerts, notifications and silences."""
    traces: int = 0
    """Received traces that were not finished."""
    requests: int = 0
    """Requests that were acknowledged, but not forwarded."""

    def __add__(self, other: PruneResult) -> PruneResult:
        return PruneResult(**{name: getattr(self, name) + getattr(other, name) for name in PruneResult.__slots__})

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in PruneResult.__slots__)

    def __str__(self) -> str:
        """Return the non-zero counts as text, such as "2 texts erased, 1 exchange deleted"."""
        counts = [(getattr(self, name), noun, verb) for name, (noun, verb) in _WORDS.items()]
        return (
            ", ".join(f"{sanitize.count_noun(count, noun)} {verb}" for count, noun, verb in counts if count)
            or "nothing"
        )


_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "texts": ("text", "erased"),
    "exchanges": ("exchange", "deleted"),
    "scores": ("score", "deleted"),
    "expired": ("task", "expired"),
    "feedback": ("label", "deleted"),
    "comments": ("comment", "erased"),
    "counts": ("count", "deleted"),
    "workers": ("worker", "deleted"),
    "markers": ("marker", "deleted"),
    "alerts": ("alert record", "deleted"),
    "traces": ("unfinished trace", "deleted"),
    "requests": ("unsent request", "deleted"),
}


class RowCursor(NamedTuple):
    """A row's position in the order by time and id."""

    at: datetime
    id: str

    @classmethod
    def after_batch(cls, rows: Sequence[RowMapping], moment: str) -> RowCursor | None:
        """Return the position of a batch's last row, or None if the batch is not full and there are no more rows.

        ``moment`` is the name of the column that contains the time.
        """
        return cls(rows[-1][moment], rows[-1]["id"]) if len(rows) == BATCH_SIZE else None


@dataclass(frozen=True, slots=True)
class PruneBatch:
    """The result of pruning one batch, in one transaction."""

    removed: PruneResult
    last: RowCursor | None
    """Position after which the next transaction continues; None at the end."""
