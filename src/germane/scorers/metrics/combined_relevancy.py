"""One figure out of four views of relevancy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Scorer
from germane.scorers.metrics.composite import Missing, Part, Parts, expenses, fingerprints_of, missing_of, weighted_mean

VERSION = "1"
WEIGHTS: Mapping[str, float] = {
    "answer_relevancy": 0.30,
    "direct_relevancy": 0.25,
    "question_coverage": 0.25,
    "intent_match": 0.20,
}
"""Of the reverse questions, the direct rating, the coverage and the intent."""


def checked_weights(weights: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the weights over 0, in the order of :data:`WEIGHTS`; these where none are given.

    Raises:
        TypeError: they are no mapping of names to numbers.
        ValueError: a name is none of the parts', a weight is negative or not finite, or all are 0.
    """
    weights = WEIGHTS if weights is None else weights
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights must map names of parts to numbers, not be {weights!r:.80}")
    if unknown := [str(name) for name in weights if name not in WEIGHTS]:
        raise ValueError(f"weights: there is no part {', '.join(unknown)}; there are {', '.join(WEIGHTS)}")
    for name, weight in weights.items():
        _check(name, weight)
    found = {name: float(weights[name]) for name in WEIGHTS if weights.get(name)}
    if not found:
        raise ValueError("weights: at least one must be greater than 0")
    return found


def _check(name: str, weight: object) -> None:
    if not isinstance(weight, Real) or isinstance(weight, bool):
        raise TypeError(f"weights: {name} = {weight!r:.80} is not a number")
    if not math.isfinite(weight) or weight < 0:
        raise ValueError(f"weights: {name} = {weight} must be 0 or more")


class CombinedRelevancy:
    """Weighted mean of reverse questions .30, direct rating .25, coverage .25 and intent .20, from 0 to 1.

    Each part is first clipped to 0..1: ``answer_relevancy`` is a cosine. Parts are asked side by side, each as often
    as it asks for itself. A part that failed for good is left out and the weights of the rest are renormalised, which
    label, explanation, details and fingerprint tell; a part that may still get its value is waited for. With the
    default options four requests to the judge, fewer where parts share one, and a share of one to the embedder.

    Source: the form is ours, the weights are a convention.
    """

    name = "combined_relevancy"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        *,
        weights: Mapping[str, float] | None = None,
        missing: Missing = "renormalise",
    ) -> None:
        """Put together ``scorers``, by name. A part that ``weights`` leaves out or gives 0 is not asked.

        With ``missing="fail"`` there is no value unless every part has one.

        Raises:
            TypeError, ValueError: see :func:`checked_weights`; or a scorer for one of them is not there.
        """
        self.weights = checked_weights(weights)
        self._parts = Parts(scorers, self.weights, missing)
        self.scorers = self._parts.scorers

    def __repr__(self) -> str:
        return f"CombinedRelevancy(weights={self.weights}, missing={self._parts.missing!r})"

    @property
    def fingerprint(self) -> str:
        """Of version, weights, and the fingerprints of all parts as configured.

        ``missing`` counts for nothing: it decides whether there is a value, not which.
        """
        return self._fingerprint_of(self._parts.fingerprints)

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds each part with value, weight and reason, and which are ``missing``.

        Raises:
            ScoringError: all parts are missing, one is that may not be, or one may still get its value: with the
                reason of the first such part.
        """
        return self._scored(await self._parts.run(exchange))

    def _scored(self, parts: Sequence[Part]) -> Score:
        value, missing = weighted_mean(parts), missing_of(parts)
        return Score(
            scorer=self.name,
            fingerprint=self._fingerprint_of(fingerprints_of(parts)),
            value=value,
            label=f"{band(value)} (incomplete)" if missing else band(value),
            explanation=_explain(parts, missing),
            details={
                "parts": {part.name: part.details() for part in parts},
                "missing": [part.name for part in missing],
            },
            **expenses(parts),
        )

    def _fingerprint_of(self, parts: Mapping[str, str | None]) -> str:
        """Return the fingerprint of a score from parts of these fingerprints; None for one that is missing."""
        parameters = {"weights": self.weights, "parts": dict(parts)}
        return fingerprint(scorer=self.name, version=VERSION, parameters=parameters)


def _explain(parts: Sequence[Part], missing: Sequence[Part]) -> str:
    total = math.fsum(part.weight for part in parts if part.value is not None)
    present = [
        f"{part.name} {part.value:.2f} (weight {part.weight / total:.2f})" for part in parts if part.value is not None
    ]
    absent = [f"{part.name} ({part.score.reason})" for part in missing]
    without = f"; without {', '.join(absent)}, the weights of the rest are renormalised" if absent else ""
    return f"{', '.join(present)}{without}."
