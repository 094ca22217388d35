"""Calibrations, which are read at the start and applied to labels."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.calibration import Calibration
from germane.scorers.calibration import measurement_fingerprint
from germane.storage import CalibrationCache, TrackingStore
from germane.testing import FakeJudge

Query = Callable[[str], list[Any]]


@germane.observe
def ask(question: str) -> str:
    """Return an answer that repeats the question."""
    return "You pay by card in the shop."


def calibrate(database: str) -> None:
    """Store a calibration for the judge's embedder and one for another embedder."""
    store = TrackingStore(database)
    store.migrate()
    given: Any = {"scorer": "question_answer_similarity", "n": 60, "made_at": datetime.now(UTC)}
    store.labels.add_calibrations([
        Calibration(
            embedder=embedder,
            fingerprint=measurement_fingerprint(embedder, given["scorer"]),
            floor=floor,
            topic_floor=0.99,
            **given,
        )
        for embedder, floor in (("fake-embedder", 0.95), ("other", -1.0))
    ])  # fmt: skip
    store.close()


def test_unreadable_calibrations_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line is logged for any number of scores. Calibrations are used as soon as they are readable."""
    database = f"sqlite:///{tmp_path / 'later.db'}"
    store = TrackingStore(database)
    floors = CalibrationCache(store)

    assert [len(floors) for _ in range(3)] == [0, 0, 0]
    (line,) = caplog.messages
    assert line.startswith("labels will not be calibrated until the database is readable: ")
    calibrate(database)
    assert len(floors) == 2
    store.close()


def test_labels_are_calibrated_from_the_start(judge: FakeJudge, database: str, query: Query) -> None:
    """The stored value is not calibrated, but its label is. The other embedder's calibration is not used."""
    calibrate(database)
    germane.start(**judge.settings(), database=database, scorers=["question_answer_similarity"], poll_interval=0.05)
    ask("You pay by what in the shop?")

    assert germane.stop(drain_timeout=60)

    [(value, label, calibrated)] = query("SELECT value, label, json_extract(details, '$.calibrated') FROM score")
    assert 0.5 < value < 0.95
    assert (label, calibrated) == ("irrelevant", 0)
    [summary] = reading(database)
    assert (summary.mean, summary.low_share) == (value, 1.0)


def test_labels_are_calibrated_when_the_database_is_created_later(judge: FakeJudge, tmp_path: Path) -> None:
    """Calibrations are read when the first score is computed."""
    made, folder = tmp_path / "made", tmp_path / "later"
    made.mkdir()
    calibrate(f"sqlite:///{made / 'germane.db'}")
    database = f"sqlite:///{folder / 'germane.db'}"
    germane.start(**judge.settings(), database=database, scorers=["question_answer_similarity"], poll_interval=0.05)
    ask("You pay by what in the shop?")
    made.rename(folder)

    assert germane.stop(drain_timeout=60)

    [summary] = reading(database)
    assert summary.mean > 0.5
    assert summary.low_share == 1.0


def reading(database: str) -> list[Any]:
    """Return the summary."""
    store = germane.Store(database)
    found = store.trends.summary()
    store.close()
    return found
