"""The benchmark of capture does what it says, on a small scale; its figures are for whoever runs it."""

from __future__ import annotations

from pathlib import Path

import capture
import pytest


def test_rows_and_calls_stay_flat_whatever_comes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A minute beyond the limit, once by half and once five times: nothing vanishes, and no more is stored."""
    assert capture.measure_stream(tmp_path, 1, rates=(9_000, 30_000), calls=1_000)
    assert "on the caller's thread" in capsys.readouterr().out


def test_the_three_ways_write_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else their rates could not be compared."""
    store = capture.Store(f"sqlite:///{tmp_path}/ways.db")
    store.migrate()
    exchanges = [capture.make(number) for number in range(700)]
    for way in capture.WAYS.values():
        with capture.emptied(store):
            assert way(store, exchanges) > 0
            found = store.exchanges(limit=1_000)
        assert sorted(found, key=lambda one: one.id) == sorted(exchanges, key=lambda one: one.id)
    store.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell how large a process is")
def test_memory_is_measured_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At each tenth."""
    capture.measure_memory(tmp_path, 1_000)
    printed = capsys.readouterr().out
    assert "1,000:" in printed
    assert "dropped 0" in printed
