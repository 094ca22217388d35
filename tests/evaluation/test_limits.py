"""Scoring a data set is at least to the limits of the settings."""

from __future__ import annotations

import time
from pathlib import Path

import germane
from germane.testing import FakeJudge


def test_a_limit_holds_for_a_data_set(bare: Path) -> None:
    """Requests start evenly, all rows are scored, each with its cost, and no database comes into being."""
    rows = [{"question": "How long is the warranty?", "answer": f"The warranty is {n} years."} for n in range(12)]
    with FakeJudge() as judge:
        settings = {**judge.settings(), "prices": {"fake-judge": {"input": 1, "output": 1}}}
        began = time.monotonic()
        evaluation = germane.evaluate(rows, "intent_match", requests_per_minute=600, **settings)
        took = time.monotonic() - began

    assert took > 1.0  # eleven intervals of a tenth of a second, less the tenth by which one may come early
    assert [score.reason for score in evaluation.scores] == [None] * 12
    assert all(score.cost for score in evaluation.scores)
    assert list(bare.iterdir()) == []
