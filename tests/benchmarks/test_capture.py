"""The capture benchmark on a small scale, without rate limits on its results."""

from __future__ import annotations

from pathlib import Path

import capture
import pytest
from common import Goals

pytestmark = pytest.mark.slow


def test_stored_rows_and_requests_do_not_grow_with_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At 1.5 and 5 times the limit for one minute, no exchange is lost and no additional rows are stored."""
    goals = Goals()
    capture.measure_stream(tmp_path, 1, goals, rates=(9_000, 30_000), calls=1_000)
    assert goals.missed == []
    assert "beyond the limit" in capsys.readouterr().out


def test_both_capture_methods_write_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their rates are comparable only if they store the same data."""
    store = capture.TrackingStore(f"sqlite:///{tmp_path}/ways.db")
    store.migrate()
    exchanges = [capture.new_exchange(number, contexts=3) for number in range(700)]
    for way in capture.WAYS.values():
        with capture.emptied(store):
            assert way(store, exchanges) > 0
            listed = store.answers.list_exchanges(limit=1_000)
        assert sorted(listed, key=lambda one: one.id) == sorted(exchanges, key=lambda one: one.id)
    store.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to measure memory")
def test_memory_is_measured_at_each_tenth_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run reports one measurement per tenth."""
    goals = Goals()
    capture.measure_memory(tmp_path, 1_000, goals)
    assert capsys.readouterr().out.count(" MB") == 10
    assert "memory: dropped exchanges" not in goals.missed
