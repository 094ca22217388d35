"""Rate limits in `evaluate`."""

from __future__ import annotations

import time
from pathlib import Path

import germane
from germane.testing import FakeJudge


def test_rate_limits_apply_to_data_sets(bare: Path) -> None:
    """Requests are spread evenly, all rows are scored, and no database is created."""
    rows = [{"question": "How long is the warranty?", "answer": f"The warranty is {n} years."} for n in range(12)]
    with FakeJudge() as judge:
        settings = {**judge.settings(), "prices": {"fake-judge": {"input": 1, "output": 1}}}
        began = time.monotonic()
        evaluation = germane.evaluate(rows, "intent_match", requests_per_minute=600, **settings)
        took = time.monotonic() - began

    assert took > 1.0  # eleven intervals of 0.1 s, minus the 0.1 s by which the last request can be early
    assert [score.reason for score in evaluation.scores] == [None] * 12
    assert all(score.cost for score in evaluation.scores)
    assert list(bare.iterdir()) == []
