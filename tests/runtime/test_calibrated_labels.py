"""What was calibrated is read at the start, and labels go by it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import germane
from germane.calibration import Calibration
from germane.testing import FakeJudge

Query = Callable[[str], list[Any]]


@germane.observe
def ask(question: str) -> str:
    """Answer at once, in the words of the question."""
    return "You pay by card in the shop."


def test_labels_are_calibrated_from_the_start_on(judge: FakeJudge, database: str, query: Query) -> None:
    """The row's value is raw, its label that of the calibrated value; another embedder's floor is not used."""
    store = germane.Store(database)
    store.migrate()
    given = {"scorer": "question_answer_similarity", "fingerprint": "f1", "n": 60, "made_at": datetime.now(UTC)}
    store.add_calibrations([
        Calibration(embedder=embedder, floor=floor, high=0.99, **given)
        for embedder, floor in (("fake-embedder", 0.95), ("other", -1.0))
    ])  # fmt: skip
    store.close()
    germane.start(**judge.settings(), database=database, scorers=["question_answer_similarity"], tick=0.05)
    ask("You pay by what in the shop?")

    assert germane.stop(drain=20)

    [(value, label, calibrated)] = query("SELECT value, label, json_extract(details, '$.calibrated') FROM score")
    assert 0.5 < value < 0.95
    assert (label, calibrated) == ("off", 0)
