"""Slices of labeled rows, and the agreement of values with labels, compared with floors and plain cosine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from germane.agreement import (
    BootstrapInterval,
    auc,
    bootstrap_difference,
    bootstrap_interval,
    pairwise_accuracy,
    spearman,
)
from labelled.rows import Row, by_hash, of

Measure = Literal["pair", "auc", "spearman", "mean pair"]
Values = Mapping[str, float]
"""Values by row id: NaN if the scorer failed, no entry if it was not run."""
LEAST_GROUPS = 5
"""Minimum number of groups for a slice to be reported."""
COSINE = "cosine (MiniLM)"


@dataclass(frozen=True)
class Slice:
    """Rows that are evaluated together."""

    title: str
    rows: Sequence[Row]
    measure: Measure = "pair"
    without: frozenset[str] = frozenset()
    """Floors that are invalid for this slice, because the construction of the rows determines their outcome."""

    def covered(self, values: Values) -> list[Row]:
        """Return the rows of each origin's first groups, up to the first incomplete group.

        Groups that need no requests can be anywhere in the order. Including all of them would bias the sample towards
        easy groups.
        """
        partial = {row.group for row in self.rows if row.id not in values}
        origins = dict.fromkeys(row.origin for row in self.rows)
        names = (by_hash(row.group for row in self.rows if row.origin == origin) for origin in origins)
        whole = {name for each in names for name in takewhile(lambda group: group not in partial, each)}
        return [row for row in self.rows if row.group in whole]


@dataclass(frozen=True)
class Line:
    """One method's figures on one slice."""

    method: str
    measure: Measure
    groups: int
    scored: int
    asked: int
    value: BootstrapInterval
    absent_half: float | None = None
    """The figure if missing pairs count as 0.5; None if no pair is missing or the measure has no pairs."""
    against: Mapping[str, BootstrapInterval] = field(default_factory=dict)
    """Differences from other methods on the same rows."""
    spread: tuple[float, ...] = ()
    """The figure of each run, if there were several runs."""


def over_sources(
    *, labels: Any, scores: Any, groups: Any, sources: Any, weights: Any = None, absent: float | None = None
) -> Any:
    """Return the unweighted mean of the sources' pairwise accuracies."""
    found = [
        pairwise_accuracy(
            labels[at], scores[at], groups[at], absent=absent, weights=None if weights is None else weights[:, at]
        )
        for at in (sources == name for name in np.unique(sources))
    ]
    return sum(found) / len(found)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _share(words: set[str], among: set[str]) -> float:
    return len(words & among) / len(words) if words else 0.0


FLOORS: Mapping[str, Callable[[Row], float]] = {
    "longer": lambda row: float(len(row.text)),
    "shorter": lambda row: -float(len(row.text)),
    "question overlap": lambda row: _share(_words(row.question), _words(row.text)),
    "context coverage": lambda row: _share(_words(row.text), _words(" ".join(row.contexts))),
}
"""Simple baselines without a model, which a scorer must outperform."""


def best_floor(piece: Slice) -> str:
    """Return the name of the slice's best floor."""
    floors = [name for name in FLOORS if name not in piece.without]
    return max(floors, key=lambda name: _value(piece.measure, piece.rows, floor_values(piece.rows, name)))


def floor_values(rows: Sequence[Row], name: str) -> dict[str, float]:
    """Return a floor's value for each row."""
    return {row.id: FLOORS[name](row) for row in rows}


def line(
    method: str, piece: Slice, values: Values, others: Mapping[str, Values], spread: tuple[float, ...] = ()
) -> Line | None:
    """Return a method's figures compared with others on the same rows; None if there are too few groups."""
    rows = piece.covered(values)
    if not _comparable(piece, rows):
        return None
    scores = _array(rows, values)
    statistic, arrays = _measured(piece.measure, rows)
    units = [row.unit for row in rows]
    return Line(
        method,
        piece.measure,
        len({row.group for row in rows}),
        int((~np.isnan(scores)).sum()),
        len(rows),
        bootstrap_interval(statistic, units, scores=scores, **arrays),
        _with_absent(piece.measure, rows, values) if np.isnan(scores).any() else None,
        {
            name: bootstrap_difference(statistic, units, scores=scores, others=_array(rows, other), **arrays)
            for name, other in others.items()
            if name != method and all(row.id in other for row in rows)
        },
        spread,
    )


def difference_on(piece: Slice, ours: Values, theirs: Values) -> tuple[int, float, float, BootstrapInterval] | None:
    """Compare two methods on the groups that both scored; None if there are too few.

    Returns the number of groups, the two figures and their difference.
    """
    rows = piece.covered({name: value for name, value in ours.items() if name in theirs})
    if not _comparable(piece, rows):
        return None
    statistic, arrays = _measured(piece.measure, rows)
    units = [row.unit for row in rows]
    gap = bootstrap_difference(statistic, units, scores=_array(rows, ours), others=_array(rows, theirs), **arrays)
    return len({row.group for row in rows}), _value(piece.measure, rows, ours), _value(piece.measure, rows, theirs), gap


def value_of(piece: Slice, values: Values) -> float:
    """Return a method's figure on the rows that it scored, without an interval."""
    return _value(piece.measure, piece.covered(values), values)


def _value(measure: Measure, rows: Sequence[Row], values: Values) -> float:
    statistic, arrays = _measured(measure, rows)
    return float(np.asarray(statistic(scores=_array(rows, values), **arrays, weights=np.ones((1, len(rows)))))[0])


def _measured(measure: Measure, rows: Sequence[Row]) -> tuple[Callable[..., Any], dict[str, Any]]:
    labels = np.array([row.label for row in rows])
    groups = np.array([row.group for row in rows])
    if measure == "pair":
        return pairwise_accuracy, {"labels": labels, "groups": groups}
    if measure == "mean pair":
        return over_sources, {"labels": labels, "groups": groups, "sources": np.array([row.origin for row in rows])}
    return (auc if measure == "auc" else spearman), {"labels": labels}


def _with_absent(measure: Measure, rows: Sequence[Row], values: Values) -> float | None:
    if measure == "spearman":
        return None
    statistic, arrays = _measured(measure, rows)
    return float(statistic(scores=_array(rows, values), **arrays, absent=0.5))


def _comparable(piece: Slice, rows: Sequence[Row]) -> bool:
    """Whether there are enough groups (per source, if sources are averaged) and different labels."""
    origins = {row.origin for row in piece.rows} if piece.measure == "mean pair" else {None}
    groups = [len({row.group for row in rows if origin in (None, row.origin)}) for origin in origins]
    return min(groups, default=0) >= LEAST_GROUPS and len({row.label for row in rows}) > 1


def _array(rows: Sequence[Row], values: Values) -> NDArray[np.float64]:
    return np.array([values[row.id] for row in rows], dtype=np.float64)


def slices(rows: Sequence[Row]) -> dict[str, list[Slice]]:
    """Return the slices by set. The context floor is left out where contexts determine the label."""
    coverage = frozenset({"context coverage"})
    clapnq, faithful = of(rows, "relevancy", origin="CLAPnq"), of(rows, "faithfulness")

    def against(title: str, kind: str) -> Slice:
        """Return the pairs of a gold answer and an answer of another kind, from groups that contain both."""
        groups = {row.group for row in clapnq if row.kind == kind}
        pairs = [row for row in clapnq if row.kind in ("gold_answer", kind) and row.group in groups]
        return Slice(f"CLAPnq, gold against {title}", pairs, "pair", coverage)

    def part(title: str, name: str, origin: str, *kinds: str, measure: Measure = "pair") -> Slice:
        return Slice(title, of(rows, name, origin=origin, kinds=kinds), measure, coverage)

    context, languages = "context_relevance", "multilingual"
    return {
        "relevancy": [
            Slice("Mean of the four sources", of(rows, "relevancy"), "mean pair"),
            Slice("SelQA", of(rows, "relevancy", origin="SelQA")),
            Slice("CLAPnq, all pairs", clapnq, "pair", coverage),
            against("a random answer", "offtopic_random"),
            against("the answer of a similar question", "offtopic_hard"),
            against("its own last sentence", "partial_last_sentence"),
            Slice("MTRAG", of(rows, "relevancy", origin="MTRAG")),
            Slice("ALCE", of(rows, "relevancy", origin="ALCE")),
        ],
        "noncommittal": [Slice("AUC", of(rows, "noncommittal"), "auc", coverage)],
        "faithfulness": [
            Slice("MTRAG, Spearman", faithful, "spearman"),
            Slice("MTRAG, pairs", faithful),
            Slice("MTRAG, AUC", faithful, "auc"),
        ],
        context: [
            part("SQuAD, same article", context, "SQuAD1.1", "gold_paragraph", "same_article"),
            part("SQuAD, random", context, "SQuAD1.1", "gold_paragraph", "random_dis"),
            part("CLAPnq passages, AUC", context, "CLAPnq", "answers", "does_not", measure="auc"),
            part("CLAPnq sentence fraction, Spearman", context, "CLAPnq", "gold_sentence", measure="spearman"),
        ],
        languages: [
            part("XQuAD, same language", languages, "XQuAD", "answer_sentence", "offtopic_sentence"),
            part("XQuAD, English question", languages, "XQuAD", "crosslingual"),
            part("CMRC2018 (Chinese)", languages, "CMRC2018"),
        ],
    }
