"""Floors: simple baselines without a model, which a scorer must outperform."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from labelled.rows import Row

_WORD = re.compile(r"\w+")


def longer(row: Row) -> float:
    """Return the length of the text: the longer text wins."""
    return float(len(row.text))


def shorter(row: Row) -> float:
    """Return the negative length of the text: the shorter text wins."""
    return -longer(row)


def question_overlap(row: Row) -> float:
    """Return the share of the question's words that occur in the text."""
    return _share(_words(row.question), _words(row.text))


def context_coverage(row: Row) -> float:
    """Return the share of the text's words that occur in the contexts."""
    return _share(_words(row.text), _words(" ".join(row.contexts)))


FLOORS: Mapping[str, Callable[[Row], float]] = {
    "longer": longer,
    "shorter": shorter,
    "question overlap": question_overlap,
    "context coverage": context_coverage,
}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _share(words: set[str], among: set[str]) -> float:
    return len(words & among) / len(words) if words else 0.0
