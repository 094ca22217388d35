"""A custom scorer and helpers for files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason


class Numeric:
    """Scorer that returns the number, or raises the failure, given in the answer."""

    name = "numeric"
    fingerprint = "numeric-1"
    requires = frozenset({"answer"})
    range = (0.0, 1.0)

    def __init__(self) -> None:
        self.seen: list[Exchange] = []

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the number in the answer."""
        self.seen.append(exchange)
        try:
            return float(exchange.answer or "")
        except ValueError:
            raise ScoringError(UnscoredReason.UNPARSABLE, f"no number in {exchange.answer}") from None


@pytest.fixture
def numeric() -> Numeric:
    """Return a new numeric scorer."""
    return Numeric()


@pytest.fixture
def file(bare: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes a file unchanged and returns its path."""

    def write(name: str, content: str | bytes) -> Path:
        (bare / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return Path(name)

    return write


Evaluate = Callable[..., germane.Evaluation]


@pytest.fixture
def evaluated(bare: Path, numeric: Numeric) -> Evaluate:
    """Score answers by the number that they contain."""

    def evaluate(answers: list[object], **options: Any) -> germane.Evaluation:
        rows = [{"question": f"Question {number}?", "answer": answer} for number, answer in enumerate(answers)]
        return germane.evaluate(rows, [numeric], **options)

    return evaluate
