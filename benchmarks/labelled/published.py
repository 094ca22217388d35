"""Independently measured figures for plain cosine with the embedded MiniLM, which germane must reproduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labelled import slices
from labelled.figures import Slice, Values, value_of
from labelled.rows import Row
from labelled.text import table

TOLERANCE = 0.01
PUBLISHED: Mapping[str, float] = {
    "Mean of the four sources": 0.71,
    "SelQA": 0.82,
    "CLAPnq, all pairs": 0.94,
    "CLAPnq, gold against a random answer": 1.00,
    "CLAPnq, gold against the answer of a similar question": 0.98,
    "CLAPnq, gold against its own last sentence": 0.83,
    "MTRAG": 0.52,
    "ALCE": 0.57,
    "AUC": 0.57,
    "MTRAG, Spearman": 0.10,
    "MTRAG, pairs": 0.40,
    "MTRAG, AUC": 0.56,
    "SQuAD, same article": 0.98,
    "SQuAD, random": 1.00,
    "CLAPnq passages, AUC": 0.88,
    "CLAPnq sentence fraction, Spearman": 0.31,
    "XQuAD, same language": 0.88,
    "XQuAD, English question": 0.71,
    "CMRC2018 (Chinese)": 0.58,
}


def reproduced(rows: Sequence[Row], cosine: Values) -> list[tuple[str, float, float]]:
    """Return the name, germane's figure over all rows, and the published figure of each slice."""
    return [
        (f"{piece.rows[0].set}: {piece.title}", value_of(piece, cosine), PUBLISHED[piece.title])
        for piece in _pieces(rows)
        if piece.rows
    ]


def agrees(ours: float, published: float) -> bool:
    """Return whether two figures agree within the tolerance."""
    return abs(ours - published) <= TOLERANCE + 1e-9


def page(found: Sequence[tuple[str, float, float]]) -> str:
    """Return the table in the report."""
    return table(
        ("set", "measured", "published"), [(name, f"{ours:.3f}", f"{theirs:.2f}") for name, ours, theirs in found]
    )


def _pieces(rows: Sequence[Row]) -> list[Slice]:
    return [
        *slices.relevancy(rows),
        slices.noncommittal(rows),
        *slices.faithfulness(rows),
        *slices.context_relevance(rows),
        *slices.multilingual(rows),
    ]
