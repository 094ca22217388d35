"""Labels from calibrated values in `evaluate`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import germane
from germane.calibration import Calibration
from germane.scorers import QuestionAnswerSimilarity
from germane.scorers.calibration import measurement_fingerprint
from germane.testing import FakeEmbedder

ROWS = [{"question": "near", "answer": "far"}]
VECTORS = {"near": (1.0, 0.0), "far": (0.8, 0.6)}
CALIBRATION = Calibration(
    embedder="fake-embedder",
    scorer="question_answer_similarity",
    fingerprint=measurement_fingerprint("fake-embedder", "question_answer_similarity"),
    floor=0.6,
    topic_floor=0.799,
    n=60,
    made_at=datetime(2026, 11, 20, tzinfo=UTC),
)


def test_labels_in_an_evaluation_come_from_the_calibrated_value(bare: Path) -> None:
    """A cosine of 0.8 is just above this same-topic floor. Cached scores do not depend on calibrations."""
    runs = [
        germane.evaluate(ROWS, QuestionAnswerSimilarity(FakeEmbedder(VECTORS)), cache=bare / "cache", **given)
        for given in ({}, {"calibration": [CALIBRATION]}, {})
    ]

    scores = [score for run in runs for score in run.scores]
    assert [score.value for score in scores] == [pytest.approx(0.8)] * 3
    assert [score.label for score in scores] == ["relevant", "partly_relevant", "relevant"]
    assert 0.5 < scores[1].details["calibrated"] < 0.7
    assert len({score.fingerprint for score in scores}) == 1


def test_the_calibrated_label_determines_which_scores_are_low(bare: Path) -> None:
    """A cosine of 0.62, just above a floor of 0.6, counts as low. This also applies to the summary."""
    scorer = QuestionAnswerSimilarity(FakeEmbedder({**VECTORS, "far": (0.62, (1 - 0.62**2) ** 0.5)}))
    shares = [
        summary.estimate and summary.estimate.low_share
        for given in ((), (CALIBRATION,))
        for summary in germane.evaluate(ROWS, scorer, calibration=given).summary()
    ]

    assert shares == [0.0, 1.0]
