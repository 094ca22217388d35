"""The benchmark of queries does what it says, on a small scale; its times are for whoever runs it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from history import FAILED, SCORERS, History, last_hour
from queries import QUESTIONS, ask_all, made

from germane.storage import Store

HISTORY = History(20_000, 1, last_hour())


def test_all_questions_are_asked_of_a_history_that_adds_up(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None reads a large table whole; and every exchange has its end."""
    until = made(database_url, HISTORY, tmp_path / "until")
    with closing(Store(database_url)) as store:
        ask_all(store, until, 1)
        counts, coverage = store.counts(), store.coverage()
        summary = store.summary()

    printed = capsys.readouterr().out
    assert "FULL SCAN" not in printed
    assert all(question.name in printed for question in QUESTIONS)
    assert made(database_url, HISTORY, tmp_path / "until") == until
    assert counts.rows == counts.done == sum(one.n for one in summary) == sum(one.scored for one in coverage)
    assert 19_900 <= counts.rows <= 20_000
    assert counts.failed == len(SCORERS) * -(-counts.captured // FAILED)
    for one in coverage:
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values())
