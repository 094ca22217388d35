"""Slices: rows that are evaluated together, and their measure."""

from __future__ import annotations

from collections.abc import Sequence

from labelled.figures import Slice
from labelled.rows import Row

SIMILARITY = "question_answer_similarity"
COVERAGE = frozenset({"context coverage"})
"""Floor that is invalid if the good answer was derived from the passage."""

AGAINST = {
    "a random answer": "offtopic_random",
    "the answer of a similar question": "offtopic_hard",
    "its own last sentence": "partial_last_sentence",
}
"""Kinds of answers with which a CLAPnq gold answer is compared."""


def of(rows: Sequence[Row], name: str, *, origin: str | None = None, kinds: Sequence[str] = ()) -> list[Row]:
    """Return a set's rows, optionally only those of one origin and of kinds with one of these prefixes."""
    return [
        row
        for row in rows
        if row.set == name
        and (origin is None or row.origin == origin)
        and (not kinds or row.kind.startswith(tuple(kinds)))
    ]


def relevancy(rows: Sequence[Row]) -> list[Slice]:
    """Return the relevancy slices, starting with the mean of the sources."""
    clapnq = of(rows, "relevancy", origin="CLAPnq")
    return [
        Slice("Mean of the four sources", of(rows, "relevancy"), "mean pair"),
        Slice("SelQA", of(rows, "relevancy", origin="SelQA")),
        Slice("CLAPnq, all pairs", clapnq, "pair", COVERAGE),
        *(_against(clapnq, title, kind) for title, kind in AGAINST.items()),
        Slice("MTRAG", of(rows, "relevancy", origin="MTRAG")),
        Slice("ALCE", of(rows, "relevancy", origin="ALCE")),
    ]


def faithfulness(rows: Sequence[Row]) -> list[Slice]:
    """Return three slices with the same rows and different measures."""
    found = of(rows, "faithfulness")
    return [
        Slice("MTRAG, Spearman", found, "spearman"),
        Slice("MTRAG, pairs", found, "pair"),
        Slice("MTRAG, AUC", found, "auc"),
    ]


def context_relevance(rows: Sequence[Row]) -> list[Slice]:
    """Return the context relevance slices."""
    squad, clapnq = "SQuAD1.1", "CLAPnq"
    gold = "gold_paragraph"
    return [
        Slice(
            "SQuAD, same article",
            of(rows, "context_relevance", origin=squad, kinds=(gold, "same_article")),
            "pair",
            COVERAGE,
        ),
        Slice(
            "SQuAD, random", of(rows, "context_relevance", origin=squad, kinds=(gold, "random_dis")), "pair", COVERAGE
        ),
        Slice(
            "CLAPnq passages, AUC",
            of(rows, "context_relevance", origin=clapnq, kinds=("answers", "does_not")),
            "auc",
            COVERAGE,
        ),
        Slice(
            "CLAPnq sentence fraction, Spearman",
            of(rows, "context_relevance", origin=clapnq, kinds=("gold_sentence",)),
            "spearman",
            COVERAGE,
        ),
    ]


def multilingual(rows: Sequence[Row]) -> list[Slice]:
    """Return the slices for other languages."""
    return [
        Slice(
            "XQuAD, same language",
            of(rows, "multilingual", origin="XQuAD", kinds=("answer_sentence", "offtopic_sentence")),
            "pair",
            COVERAGE,
        ),
        Slice(
            "XQuAD, English question",
            of(rows, "multilingual", origin="XQuAD", kinds=("crosslingual",)),
            "pair",
            COVERAGE,
        ),
        Slice("CMRC2018 (Chinese)", of(rows, "multilingual", origin="CMRC2018"), "pair", COVERAGE),
    ]


def noncommittal(rows: Sequence[Row]) -> Slice:
    """Return substantive and noncommittal answers, without the context floor, because contexts reveal the label."""
    return Slice("AUC", of(rows, "noncommittal"), "auc", COVERAGE)


def _against(rows: Sequence[Row], title: str, kind: str) -> Slice:
    """Return pairs of a gold answer and an answer of another kind, from groups that contain both."""
    groups = {row.group for row in rows if row.kind == kind}
    pairs = [row for row in rows if row.kind in ("gold_answer", kind) and row.group in groups]
    return Slice(f"CLAPnq, gold against {title}", pairs, "pair", COVERAGE)
