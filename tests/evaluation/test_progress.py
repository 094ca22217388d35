"""Progress of an evaluation run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

import germane
from germane.evaluation.progress import RunUsage, show_progress
from germane.score import Score

pytestmark = pytest.mark.usefixtures("bare")


class Terminal(io.StringIO):
    """Stream that pretends to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def clock(step: float = 1.0) -> Callable[[], float]:
    """Return a clock that advances by ``step`` seconds per call."""

    def times() -> Iterator[float]:
        now = 0.0
        while True:
            yield now
            now += step

    return times().__next__


def shown(stream: io.StringIO, wanted: bool | None, rows: int = 20) -> str:
    """Return the output of a run that costs one cent per row."""
    spending = RunUsage()
    with show_progress(wanted, rows, stream=stream, clock=clock(2.0)) as tell:
        for _ in range(rows):
            spending = spending.plus_score(Score(scorer="s", fingerprint="f", value=1.0, cost=0.01))
            tell(spending)
    return stream.getvalue()


def test_progress_is_hidden_without_a_terminal() -> None:
    """Progress is still shown if it is requested."""
    assert shown(io.StringIO(), None) == ""
    assert shown(Terminal(), False) == ""
    assert shown(io.StringIO(), True, rows=0) == ""


def test_progress_lines_show_rate_cost_and_remaining_time() -> None:
    """One line is written for each tenth of the rows."""
    lines = shown(io.StringIO(), True).splitlines()

    assert len(lines) == 10
    assert lines[0] == "germane: 2 of 20 rows, 1.0 rows/s, $0.0200, 18 s left"
    assert lines[-1].startswith("germane: 20 of 20 rows, ")
    assert "left" not in lines[-1]
    assert shown(io.StringIO(), True, rows=10_000).startswith("germane: 1,000 of 10,000 rows, ")


def test_a_run_with_few_rows_prints_one_progress_line_per_row() -> None:
    """There are never more lines than rows."""
    assert len(shown(io.StringIO(), True, rows=3).splitlines()) == 3


def test_a_terminal_shows_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar shows count, rate and cost, and disappears at the end."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")

    written = shown(Terminal(), None)

    assert "20/20" in written
    assert "rows/s, $0.2000" in written


def test_progress_is_written_to_stderr(
    capsys: pytest.CaptureFixture[str], evaluated: Callable[..., germane.Evaluation]
) -> None:
    """stdout is left to the caller."""
    evaluated(["0.5"] * 3, progress=True)
    asked = capsys.readouterr()
    evaluated(["0.5"] * 3)
    silent = capsys.readouterr()

    assert (asked.out, silent.out, silent.err) == ("", "", "")
    assert asked.err.count("\n") == 3
