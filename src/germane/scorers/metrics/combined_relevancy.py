"""Relevancy as a weighted mean of four scorers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from germane.exchange import Exchange
from germane.score import Score
from germane.scorers.base.composite import (
    CompositeScorer,
    MissingPolicy,
    band_of_parts,
    missing_parts,
    validate_weights,
    weighted_mean,
)
from germane.scorers.base.protocols import Scorer, ScorerModels

WEIGHTS: Mapping[str, float] = {
    "answer_relevancy": 0.30,
    "direct_relevancy": 0.25,
    "question_coverage": 0.25,
    "intent_match": 0.20,
}


class CombinedRelevancy(CompositeScorer):
    """Weighted mean of four scorers, from 0 to 1. The weights are in :data:`WEIGHTS`.

    Each part is first clipped to [0, 1], because ``answer_relevancy`` is a cosine. The parts run concurrently. If a
    part failed permanently, it is excluded and the remaining weights are renormalized; the label, explanation, details
    and fingerprint record this. If a part may succeed later, the whole score is retried. With the default options,
    scoring takes four judge requests (fewer if parts share one) and one shared embedding request.

    Source: defined by germane; the weights are arbitrary.
    """

    name = "combined_relevancy"
    requires = frozenset({"question", "answer"})

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        *,
        weights: Mapping[str, float] | None = None,
        missing: MissingPolicy = "renormalize",
    ) -> None:
        """Combine ``scorers``, which maps part names to scorers.

        Parts without a weight, or with a weight of 0, do not run.

        With ``missing="fail"``, the score has no value unless every part has one.

        Raises:
            TypeError, ValueError: the weights are invalid, or a part has no scorer.
        """
        super().__init__(scorers, validate_weights(weights, WEIGHTS), missing)

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings, with the parts that have a weight."""
        parts = {name: models.get_scorer(name) for name in validate_weights(options.get("weights"), WEIGHTS)}
        return cls(parts, **options)

    def __repr__(self) -> str:
        return f"CombinedRelevancy(weights={self.weights}, missing={self.missing!r})"

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange; see :meth:`CompositeScorer.score`."""
        parts = await self.score_parts(exchange)
        value, missing = weighted_mean(parts), missing_parts(parts)
        total = math.fsum(part.weight for part in parts if part.value is not None)
        explanation = ", ".join(
            f"{part.name} {part.value:z.2f} (weight {part.weight / total:z.2f})"
            for part in parts
            if part.value is not None
        )
        if missing:
            absent = ", ".join(f"{part.name} ({part.score.reason})" for part in missing)
            explanation += f"; without {absent}; the remaining weights are renormalized"
        return self.build_score(
            parts, value=value, label=band_of_parts(parts), explanation=f"{explanation}.", details={}
        )
