"""Calibrations of embedders and scorers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from germane.calibration import Calibration
from germane.storage import TrackingStore

FIRST = Calibration(
    embedder="mini",
    scorer="answer_relevancy",
    fingerprint="f1",
    floor=0.07,
    high=0.21,
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
    """(value - floor) / (1 - floor), clipped to [0, 1]."""
    half = replace(FIRST, floor=0.5)
    assert [half.rescale(value) for value in (-1.0, 0.5, 0.75, 0.9, 1.0)] == pytest.approx(
        [0, 0, 0.5, 0.8, 1], abs=1e-9
    )
    assert replace(FIRST, floor=-0.25).rescale(0.0) == pytest.approx(0.2, abs=1e-9)


def test_a_calibration_with_a_floor_of_1_is_rejected() -> None:
    """Such an embedder cannot distinguish texts."""
    with pytest.raises(ValueError, match="less than 1"):
        replace(FIRST, floor=1.0)


def test_a_calibration_describes_its_source() -> None:
    """Its description contains the floor, the number of exchanges, and the date."""
    assert str(FIRST) == "calibrated (floor 0.07, n 400, 2026-11-20)"
