"""Labels of calibrated scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason, band_of
from germane.scorers import QuestionAnswerSimilarity, apply_calibration, run_scorer
from germane.scorers.calibration import CalibratedScorer, with_calibrated_labels
from germane.testing import FakeEmbedder

NAME = "question_answer_similarity"
HALF = Calibration(
    embedder="mini", scorer=NAME, fingerprint="f", floor=0.5, high=0.6, n=60, made_at=datetime(2026, 11, 20, tzinfo=UTC)
)
FLOORS = {(HALF.embedder, HALF.scorer): HALF}
RAW = Score(scorer=NAME, fingerprint="f1", value=0.75, label="mostly_relevant", embedder="mini", details={"kept": 1})


def test_label_comes_from_the_calibrated_value() -> None:
    """.75 above a floor of .5 is .5. Value, fingerprint and details do not change."""
    assert apply_calibration(RAW, FLOORS) == replace(
        RAW, label="partly_relevant", details={"kept": 1, "calibrated": 0.5}
    )


def test_score_below_the_floor_is_irrelevant() -> None:
    """Calibrated values lie from 0 to 1."""
    found = apply_calibration(replace(RAW, value=0.2), FLOORS)
    assert (found.value, found.label, found.details["calibrated"]) == (0.2, "irrelevant", 0.0)


@given(st.floats(-1, 0.99), st.floats(-1, 1))
def test_label_is_the_band_of_the_value_in_details(floor: float, value: float) -> None:
    """For any floor and value, and monotonically."""
    found = apply_calibration(replace(RAW, value=value), {(HALF.embedder, NAME): replace(HALF, floor=floor)})
    lower = apply_calibration(replace(RAW, value=-1.0), {(HALF.embedder, NAME): replace(HALF, floor=floor)})
    assert found.value == value
    assert 0 <= lower.details["calibrated"] <= found.details["calibrated"] <= 1
    assert found.label == band_of(found.details["calibrated"])


OTHERS = [
    replace(RAW, embedder="large"),
    replace(RAW, embedder=None),
    replace(RAW, scorer="faithfulness"),
    replace(RAW, value=None, label=None, reason=UnscoredReason.EMBEDDER_ERROR),
]


@pytest.mark.parametrize("score", OTHERS, ids=["another embedder", "no embedder", "no cosine", "no value"])
def test_calibration_for_another_embedder_is_ignored(score: Score) -> None:
    """Its scale differs."""
    assert apply_calibration(score, {**FLOORS, ("mini", "faithfulness"): HALF}) == score


def test_labels_other_than_bands_are_kept() -> None:
    """One example is noncommittal."""
    found = apply_calibration(replace(RAW, value=0.0, label="noncommittal"), FLOORS)
    assert (found.label, found.details["calibrated"]) == ("noncommittal", 0.0)


def test_wrapper_only_changes_labels(exchange: Callable[..., Exchange]) -> None:
    """Calibrations that are added later apply to later scores."""
    scorer = QuestionAnswerSimilarity(FakeEmbedder())
    floors: dict[tuple[str, str], Calibration] = {}
    wrapped = with_calibrated_labels(scorer, floors)
    assert isinstance(wrapped, CalibratedScorer)
    assert (wrapped.name, wrapped.requires, wrapped.range) == (scorer.name, scorer.requires, scorer.range)
    assert (wrapped.fingerprint, wrapped.embedder, repr(wrapped)) == (scorer.fingerprint, scorer.embedder, repr(scorer))

    async def both() -> list[Any]:
        before = await run_scorer(wrapped, exchange(question="red shoes", answer="red shoes"))
        floors[scorer.embedder.model, scorer.name] = replace(HALF, floor=-0.5)
        return [before, await run_scorer(wrapped, exchange(question="red shoes", answer="red hats"))]

    before, after = asyncio.run(both())
    assert "calibrated" not in before.details
    assert after.details["calibrated"] == pytest.approx((after.value + 0.5) / 1.5, abs=1e-9)


def test_only_cosine_scorers_are_wrapped() -> None:
    """They are wrapped only if there are calibrations."""

    class Rating:
        name = "faithfulness"
        fingerprint = "f1"
        requires: frozenset[str] = frozenset()
        range = (0.0, 1.0)

        async def score(self, exchange: Exchange) -> float:
            return 1.0

    rating, cosine = Rating(), QuestionAnswerSimilarity(FakeEmbedder())
    assert with_calibrated_labels(rating, FLOORS) is rating
    assert with_calibrated_labels(cosine, None) is cosine
