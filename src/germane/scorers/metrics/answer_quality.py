"""One figure and a letter for an answer made from contexts: retrieval, faithfulness and relevancy together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Scorer
from germane.scorers.metrics.composite import Missing, Part, Parts, expenses, fingerprints_of, missing_of, weighted_mean

Aggregate = Literal["weighted", "harmonic", "minimum"]

VERSION = "1"
CONTEXT_RELEVANCE, FAITHFULNESS = "context_relevance", "faithfulness"
WEIGHTS: Mapping[str, float] = {CONTEXT_RELEVANCE: 0.3, FAITHFULNESS: 0.4}
RELEVANCY_WEIGHT = 0.3
RELEVANCIES = (
    "answer_relevancy", "direct_relevancy", "guarded_relevancy", "question_coverage", "intent_match",
    "combined_relevancy", "question_answer_similarity",
)  # fmt: skip
"""Scorers that may stand for relevancy."""
GRADES = ((0.9, "A"), (0.8, "B"), (0.7, "C"), (0.6, "D"), (-math.inf, "F"))
"""Lower edge and letter, best first."""


def checked_relevancy(name: str) -> str:
    """Return the name of the scorer that stands for relevancy.

    Raises:
        ValueError: it is none that can.
    """
    if name not in RELEVANCIES:
        raise ValueError(f"relevancy must be one of {', '.join(RELEVANCIES)}, not {name!r:.80}")
    return name


def grade(value: float) -> str:
    """Return the letter of a value: A from .9, B from .8, C from .7, D from .6, else F."""
    # Sums of decimal fractions miss their edge by less than this: .3 * .9 + .4 * .9 + .3 * .9 is one.
    return next(letter for edge, letter in GRADES if value >= edge - 1e-9)


def harmonic_mean(values: Sequence[float]) -> float:
    """Return n / sum(1 / value) of one value or more, each from 0 to 1; 0 if any is 0."""
    least = min(values)
    return least * len(values) / math.fsum(least / value for value in values) if least > 0 else 0.0


class AnswerQuality:
    """Context relevance .3, faithfulness .4 and relevancy .3 in one figure from 0 to 1, with a letter for a label.

    The value is their weighted mean, their harmonic mean, or their minimum; the others stand in the details. Each part
    is first clipped to 0..1. A part that failed for good, or could not be scored, never counts as 0: it is left out,
    which label, explanation, details and fingerprint tell. A part that may still get its value is waited for. With the
    default options three requests to the judge, and a share of one to the embedder.

    Source: the three parts are those of Es et al. 2023, arXiv 2309.15217; weights and letters are a convention.
    """

    name = "answer_quality"
    requires = frozenset({"question", "answer", "contexts"})
    range = (0.0, 1.0)

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        *,
        relevancy: str = "answer_relevancy",
        aggregate: Aggregate = "weighted",
        missing: Missing = "renormalise",
    ) -> None:
        """Put together ``scorers``, by name: ``context_relevance``, ``faithfulness``, and the one named ``relevancy``.

        With ``missing="fail"`` there is no value unless every part has one.

        Raises:
            ValueError: an option is none of those there are, or a scorer is not there.
        """
        if aggregate not in get_args(Aggregate):
            raise ValueError(f"aggregate must be one of {', '.join(get_args(Aggregate))}, not {aggregate!r}")
        self.weights = {**WEIGHTS, checked_relevancy(relevancy): RELEVANCY_WEIGHT}
        self._parts = Parts(scorers, self.weights, missing)
        self.scorers = self._parts.scorers
        self.aggregate: Aggregate = aggregate

    def __repr__(self) -> str:
        return (
            f"AnswerQuality({', '.join(self.scorers)}; aggregate={self.aggregate!r}, missing={self._parts.missing!r})"
        )

    @property
    def fingerprint(self) -> str:
        """Of version, weights, aggregate, and the fingerprints of all parts as configured."""
        return self._fingerprint_of(self._parts.fingerprints)

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds all three figures, and each part with value, weight and reason.

        Raises:
            ScoringError: all parts are missing, one is that may not be, or one may still get its value: with the
                reason of the first such part.
        """
        return self._scored(await self._parts.run(exchange))

    def _scored(self, parts: Sequence[Part]) -> Score:
        figures, missing = _figures(parts), missing_of(parts)
        value = figures[self.aggregate]
        return Score(
            scorer=self.name,
            fingerprint=self._fingerprint_of(fingerprints_of(parts)),
            value=value,
            label=f"{grade(value)} (incomplete)" if missing else grade(value),
            explanation=_explain(parts, missing),
            details={
                **figures,
                "grade": grade(value),
                "parts": {part.name: part.details() for part in parts},
                "missing": [part.name for part in missing],
            },
            **expenses(parts),
        )

    def _fingerprint_of(self, parts: Mapping[str, str | None]) -> str:
        """Return the fingerprint of a score from parts of these fingerprints; None for one that is missing."""
        parameters = {"weights": self.weights, "aggregate": self.aggregate, "parts": dict(parts)}
        return fingerprint(scorer=self.name, version=VERSION, parameters=parameters)


def _figures(parts: Sequence[Part]) -> dict[str, float]:
    """Return all three figures of the parts that are there.

    Raises:
        ScoringError: none is.
    """
    weighted = weighted_mean(parts)
    values = [part.value for part in parts if part.value is not None]
    return {"weighted": weighted, "harmonic": harmonic_mean(values), "minimum": min(values)}


def _explain(parts: Sequence[Part], missing: Sequence[Part]) -> str:
    present = [f"{part.name} {part.value:.2f}" for part in parts if part.value is not None]
    absent = [f"{part.name} ({part.score.reason})" for part in missing]
    without = f"; without {', '.join(absent)}" if absent else ""
    return f"{', '.join(present)}{without}."
