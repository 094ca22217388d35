"""The queries benchmark on a small data set, without checking times."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from common import fill_once
from history import FAILED, SCORERS, History, last_hour
from queries import QUERIES, run_all

from germane.storage import TrackingStore

pytestmark = pytest.mark.slow

HISTORY = History(20_000, 1, last_hour())


def test_the_benchmark_runs_every_query_on_a_consistent_history(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each query is measured, and every exchange has a final state."""
    until = fill_once(database_url, HISTORY, tmp_path / "until")
    with closing(TrackingStore(database_url)) as store:
        run_all(store, until, 1)
        counts, coverage = store.answers.counts(), store.trends.coverage()
        summary = store.trends.summary()

    printed = capsys.readouterr().out
    assert all(query.name in printed for query in QUERIES)
    assert fill_once(database_url, HISTORY, tmp_path / "until") == until
    assert counts.scores == counts.done == sum(one.n for one in summary) == sum(one.scored for one in coverage)
    assert 19_900 <= counts.scores <= 20_000
    assert counts.failed == len(SCORERS) * -(-counts.captured // FAILED)
    for one in coverage:
        assert one.seen == one.scored + sum(one.skipped.values()) + sum(one.failed.values())
