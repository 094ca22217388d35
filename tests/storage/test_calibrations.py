"""Calibrations of embedders and scorers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import TrackingStore

FIRST = Calibration(
    embedder="mini",
    scorer="answer_relevancy",
    fingerprint="f1",
    floor=0.07,
    topic_floor=0.21,
    n=400,
    made_at=datetime(2026, 11, 20, tzinfo=UTC),
)


def test_the_newest_calibration_of_an_embedder_and_scorer_is_used(store: TrackingStore) -> None:
    """Older calibrations stay in the table."""
    assert store.labels.list_calibrations() == []
    later = replace(FIRST, floor=0.1, made_at=FIRST.made_at + timedelta(days=1))
    other = replace(FIRST, embedder="large")
    store.labels.add_calibrations([later])
    store.labels.add_calibrations([FIRST, other])

    assert store.labels.list_calibrations() == [other, later]


def test_a_calibrated_value_rises_from_the_floor_to_1() -> None:
    """The floor maps to 0, and the same-topic floor maps to 0.45, which is in the lowest band."""
    half = replace(FIRST, floor=0.5, topic_floor=0.7)
    assert [half.rescale(value) for value in (-1.0, 0.5, 0.6, 0.7, 0.85, 1.0)] == pytest.approx(
        [0, 0, 0.225, 0.45, 0.725, 1], abs=1e-9
    )


@pytest.mark.parametrize("scorer", ["answer_relevancy", "question_answer_similarity"])
def test_cosines_in_the_lowest_band_are_low(scorer: str) -> None:
    """The limit is the cosine with a calibrated value of 0.5."""
    calibration = replace(FIRST, scorer=scorer, floor=0.1, topic_floor=0.6)
    assert calibration.rescale(calibration.cosine_of(0.5)) == pytest.approx(0.5, abs=1e-9)


def test_a_calibration_with_equal_floors_still_maps_cosines_to_a_scale() -> None:
    """A cosine at the floors maps to 0; higher cosines map to values above the same-topic level."""
    same = replace(FIRST, floor=0.4, topic_floor=0.4)
    assert (same.rescale(0.4), same.rescale(0.7)) == (0.0, pytest.approx(0.725))


def test_a_calibration_with_a_floor_of_1_is_rejected() -> None:
    """Such an embedder cannot distinguish texts."""
    with pytest.raises(ValueError, match="less than 1"):
        replace(FIRST, floor=1.0)
    with pytest.raises(ValueError, match="at least the floor"):
        replace(FIRST, floor=0.5, topic_floor=0.4)


def test_a_calibration_records_its_source() -> None:
    """The description contains both floors, and either the number of exchanges and the date, or "by default"."""
    assert str(FIRST) == "calibrated (floor 0.07, same topic 0.21, n 400, 2026-11-20)"
    assert str(replace(FIRST, is_default=True)) == "calibrated (floor 0.07, same topic 0.21, by default)"


def test_labels_are_recomputed_only_for_current_scores_with_stored_text(
    store: TrackingStore, sampled: Callable[..., list[Exchange]], make: Callable[..., Exchange]
) -> None:
    """Erased exchanges and replaced scores keep their labels. The hours of updated scores are rolled up again."""
    erased, replaced, current = sampled(make(-2 * 24 * 60), make(0), make(1), scorers={"similarity": "f1"})
    score = Score(scorer="similarity", fingerprint="f1", value=0.7, label="uncalibrated", explanation="No label.")
    claims = store.queue.claim_tasks("w", {"similarity": "f1"}, limit=3, lease=timedelta(minutes=1))
    store.queue.complete_tasks("w", [(task, score) for claim in claims for task in claim.tasks])
    store.retention.prune(texts_before=current.started_at - timedelta(days=1))
    store.rollups.update()
    new = replace(score, label="irrelevant", explanation="Not close.", details={"calibrated": 0.4})

    updated = store.labels.update_labels(
        [(erased.id, new), (replaced.id, replace(new, value=0.8)), (current.id, new), ("0" * 32, new)]
    )

    scores = store.answers.get_scores([erased.id, replaced.id, current.id])
    found = {exchange_id: (each.label, each.explanation, each.details) for exchange_id, [each] in scores.items()}
    assert updated == 1
    assert found == {
        erased.id: ("uncalibrated", None, {}),
        replaced.id: ("uncalibrated", "No label.", {}),
        current.id: ("irrelevant", "Not close.", {"calibrated": 0.4}),
    }
    assert store.rollups.count_dirty_hours() == 1
