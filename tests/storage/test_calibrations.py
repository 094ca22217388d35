"""The newest floor of each embedder and scorer counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from germane.calibration import Calibration
from germane.storage import Store

FIRST = Calibration(
    embedder="mini",
    scorer="answer_relevancy",
    fingerprint="f1",
    floor=0.07,
    high=0.21,
    n=400,
    made_at=datetime(2026, 11, 20, tzinfo=UTC),
)


def test_the_newest_of_each_embedder_and_scorer_counts(store: Store) -> None:
    """Older ones stay in the table, and are not used."""
    assert store.calibrations() == []
    later = replace(FIRST, floor=0.1, made_at=FIRST.made_at + timedelta(days=1))
    other = replace(FIRST, embedder="large")
    store.add_calibrations([later])
    store.add_calibrations([FIRST, other])

    assert store.calibrations() == [other, later]


def test_a_calibrated_value_runs_from_the_floor_to_one() -> None:
    """(value - floor) / (1 - floor), cut to [0, 1]."""
    half = replace(FIRST, floor=0.5)
    assert [half.of(value) for value in (-1.0, 0.5, 0.75, 0.9, 1.0)] == pytest.approx([0, 0, 0.5, 0.8, 1], abs=1e-9)
    assert replace(FIRST, floor=-0.25).of(0.0) == pytest.approx(0.2, abs=1e-9)


def test_a_floor_at_one_leaves_no_scale() -> None:
    """An embedder that finds all texts alike cannot be calibrated."""
    with pytest.raises(ValueError, match="less than 1"):
        replace(FIRST, floor=1.0)


def test_a_calibration_says_what_it_rests_on() -> None:
    """For people: the floor, from how many exchanges, and of when."""
    assert str(FIRST) == "calibrated (floor 0.07, n 400, 2026-11-20)"
