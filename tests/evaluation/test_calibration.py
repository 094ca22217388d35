"""Labels from calibrated values in `evaluate`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane.calibration import Calibration
from germane.scorers import QuestionAnswerSimilarity
from germane.testing import FakeEmbedder

ROWS = [{"question": "near", "answer": "far"}]
VECTORS = {"near": (1.0, 0.0), "far": (0.8, 0.6)}
CALIBRATION = Calibration(
    embedder="fake-embedder",
    scorer="question_answer_similarity",
    fingerprint="f1",
    floor=0.6,
    high=0.7,
    n=60,
    made_at=datetime(2026, 11, 20, tzinfo=UTC),
)


def test_labels_come_from_the_calibrated_value(bare: Path) -> None:
    """A cosine of .8 above a floor of .6 is .5. Cached scores do not depend on calibrations."""
    runs = [
        germane.evaluate(ROWS, QuestionAnswerSimilarity(FakeEmbedder(VECTORS)), cache=bare / "cache", **given)
        for given in ({}, {"calibration": [CALIBRATION]}, {})
    ]

    scores = [score for run in runs for score in run.scores]
    assert [score.value for score in scores] == [pytest.approx(0.8)] * 3
    assert [score.label for score in scores] == ["mostly_relevant", "partly_relevant", "mostly_relevant"]
    assert [score.details.get("calibrated") for score in scores] == [None, pytest.approx(0.5), None]
    assert len({score.fingerprint for score in scores}) == 1


def test_calibrated_label_determines_low_scores(bare: Path) -> None:
    """A cosine of .62 just above a floor of .6 is low, also in the summary."""
    scorer = QuestionAnswerSimilarity(FakeEmbedder({**VECTORS, "far": (0.62, (1 - 0.62**2) ** 0.5)}))
    shares = [
        summary.estimate and summary.estimate.low_share
        for given in ((), (CALIBRATION,))
        for summary in germane.evaluate(ROWS, scorer, calibration=given).summary()
    ]

    assert shares == [0.0, 1.0]
