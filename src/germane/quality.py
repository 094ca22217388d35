"""The overall quality of a RAG answer from its parts: weights, letter grades, and the mean of recorded parts.

Source: the parts are from Es et al. 2023, arXiv 2309.15217. germane defines the weights and grades.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

NAME: Final = "answer_quality"
WEIGHTS: Mapping[str, float] = {"context_relevance": 0.3, "faithfulness": 0.4}
RELEVANCY_WEIGHT = 0.3
RELEVANCIES = (
    "answer_relevancy", "direct_relevancy", "guarded_relevancy", "question_coverage", "intent_match",
    "combined_relevancy", "question_answer_similarity",
)  # fmt: skip
"""The scorers that can be used as the relevancy part."""
PARTS: Final = (*WEIGHTS, *RELEVANCIES)
GRADES = ((0.9, "A"), (0.8, "B"), (0.7, "C"), (0.6, "D"), (-math.inf, "F"))
"""The minimum value of each letter grade, best first."""


def grade(value: float) -> str:
    """Return the letter grade for a value: A for 0.9 and above, B for 0.8, C for 0.7, D for 0.6, and F below that."""
    # The tolerance allows for rounding errors in sums such as 0.3 * 0.9 + 0.4 * 0.9 + 0.3 * 0.9.
    return next(letter for limit, letter in GRADES if value >= limit - 1e-9)


def combine_parts(values: Mapping[str, float]) -> tuple[float, dict[str, float]] | None:
    """Return the weighted mean of an answer's parts, in [0, 1], and the parts; None if there are fewer than two.

    Of several relevancy scores, the first of :data:`RELEVANCIES` counts. A part alone measures something else.
    """
    relevancy = next((name for name in RELEVANCIES if name in values), None)
    weights = {name: weight for name, weight in WEIGHTS.items() if name in values}
    weights |= {relevancy: RELEVANCY_WEIGHT} if relevancy else {}
    if len(weights) < 2:
        return None
    parts = {name: min(max(values[name], 0.0), 1.0) for name in weights}
    return math.fsum(parts[name] * weight for name, weight in weights.items()) / math.fsum(weights.values()), parts
