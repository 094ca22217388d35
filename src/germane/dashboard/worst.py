"""The worst answers, and for each what it answers in place of the question asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """One of the worst answers."""

    exchange: Exchange
    score: Score
    reads_like: str | None
    """The written question that is least like the one asked; of scorers that write none why the score is what it is;
    None of a refusal, which has no such questions."""


def worst_of(found: Sequence[Scored]) -> list[Worst]:
    """Return answers ready to be shown, in their order."""
    return [Worst(exchange=one.exchange, score=one.score, reads_like=reads_like(one.score)) for one in found]


def reads_like(score: Score) -> str | None:
    """Return the written question that is least like the one asked, else the score's explanation."""
    if score.label == "noncommittal":
        return None
    written = [one for one in _questions(score.details) if isinstance(one.get("similarity"), (int, float))]
    farthest = min(written, key=lambda one: float(one["similarity"]), default=None)
    return score.explanation if farthest is None else str(farthest.get("text", ""))


def _questions(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    written = details.get("questions")
    return [one for one in written if isinstance(one, Mapping)] if isinstance(written, list) else []
