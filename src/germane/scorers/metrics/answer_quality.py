"""The overall quality of a RAG answer: context relevance, faithfulness and relevancy combined into one graded value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, get_args

from germane.exchange import Exchange
from germane.quality import RELEVANCIES, RELEVANCY_WEIGHT, WEIGHTS, grade
from germane.score import Score
from germane.scorers.base.composite import (
    CompositeScorer,
    MissingPolicy,
    missing_parts,
    validate_weights,
    weighted_mean,
)
from germane.scorers.base.protocols import Scorer, ScorerModels

QualityAggregate = Literal["weighted", "harmonic", "minimum"]


def part_weights(relevancy: str, weights: object) -> dict[str, float]:
    """Return the positive weights of the parts, by name, if the scorer can be the relevancy part."""
    if relevancy not in RELEVANCIES:
        raise ValueError(f"relevancy must be one of {', '.join(RELEVANCIES)}, not {relevancy!r:.80}")
    return validate_weights(weights, {**WEIGHTS, relevancy: RELEVANCY_WEIGHT})


def harmonic_mean(values: Sequence[float]) -> float:
    """Return n / sum(1 / value) of one or more values from 0 to 1; 0 if any value is 0."""
    minimum = min(values)
    return minimum * len(values) / math.fsum(minimum / value for value in values) if minimum > 0 else 0.0


class AnswerQuality(CompositeScorer):
    """Combines context relevance (weight 0.3), faithfulness (0.4) and relevancy (0.3) into a value from 0 to 1.

    The value is the weighted mean, the harmonic mean, or the minimum; ``details`` contains all three. The label is a
    letter grade. Each part is first clipped to [0, 1]. A part that failed permanently or was skipped is excluded and
    never counts as 0; the label, explanation, details and fingerprint record this. If a part may succeed later, the
    whole score is retried. With the default options, scoring an exchange takes four judge requests and one shared
    embedding request.

    Source: the parts are from Es et al. 2023, arXiv 2309.15217. germane defines the weights and grades.
    """

    name = "answer_quality"
    requires = frozenset({"question", "answer", "contexts"})

    def __init__(
        self,
        scorers: Mapping[str, Scorer],
        *,
        relevancy: str = "answer_relevancy",
        weights: Mapping[str, float] | None = None,
        aggregate: QualityAggregate = "weighted",
        grade_from: QualityAggregate | None = None,
        missing: MissingPolicy = "renormalize",
    ) -> None:
        """Combine ``context_relevance``, ``faithfulness`` and the scorer whose name is passed as ``relevancy``.

        Args:
            scorers: The parts, by name.
            relevancy: The name of the relevancy part.
            weights: The weights of the parts for the weighted mean, by name. They do not need to add up to 1. A part
                without a weight, or with a weight of 0, does not run.
            aggregate: The aggregate to use as the value.
            grade_from: The aggregate that determines the grade. Defaults to ``aggregate``.
            missing: With ``fail``, the score has no value unless every part has one.

        Raises:
            TypeError, ValueError: an option is invalid, or a scorer is missing.
        """
        for option, name in (("aggregate", aggregate), ("grade_from", grade_from or aggregate)):
            if name not in get_args(QualityAggregate):
                raise ValueError(f"{option} must be one of {', '.join(get_args(QualityAggregate))}, not {name!r}")
        super().__init__(scorers, part_weights(relevancy, weights), missing)
        self.aggregate: QualityAggregate = aggregate
        self.grade_from: QualityAggregate = grade_from or aggregate

    @classmethod
    def build(cls, models: ScorerModels, options: Mapping[str, Any]) -> Self:
        """Build the scorer from the settings, with the parts that it needs."""
        weights = part_weights(options.get("relevancy", "answer_relevancy"), options.get("weights"))
        return cls({name: models.get_scorer(name) for name in weights}, **options)

    def __repr__(self) -> str:
        return f"AnswerQuality({', '.join(self.scorers)}; aggregate={self.aggregate!r}, missing={self.missing!r})"

    def parameters(self) -> dict[str, object]:
        """Return the weights and the aggregates. They become part of the fingerprint."""
        parameters = {**super().parameters(), "aggregate": self.aggregate}
        return parameters if self.grade_from == self.aggregate else {**parameters, "grade_from": self.grade_from}

    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` also contains all three aggregates."""
        parts = await self.score_parts(exchange)
        values = [part.value for part in parts if part.value is not None]
        aggregates = {
            "weighted": weighted_mean(parts),  # first, because it raises if no part has a value
            "harmonic": harmonic_mean(values) if values else 0.0,
            "minimum": min(values, default=0.0),
        }
        letter = grade(aggregates[self.grade_from])
        present = [f"{part.name} {part.value:z.2f}" for part in parts if part.value is not None]
        absent = [f"{part.name} ({part.score.reason})" for part in missing_parts(parts)]
        without = f"; without {', '.join(absent)}" if absent else ""
        return self.build_score(
            parts,
            value=aggregates[self.aggregate],
            label=letter,
            explanation=f"{', '.join(present)}{without}.",
            details={**aggregates, "grade": letter},
        )
