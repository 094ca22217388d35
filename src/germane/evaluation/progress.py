"""How far a run is, for a person who looks: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from germane.evaluation.spending import Spending

Tell = Callable[[Spending], None]
"""Called when a row is done, with what was spent so far."""
PARTS = 10
"""How many lines are written where there is no bar."""


@contextmanager
def progress(
    wanted: bool | None,  # noqa: FBT001 - handed through from the argument of evaluate
    rows: int,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Tell]:
    """Show how far a run is while it lasts: always, never, or (None) on a terminal and in a notebook."""
    out = sys.stderr if stream is None else stream
    if not rows or wanted is False or (wanted is None and not out.isatty() and not _in_notebook()):
        yield lambda _spending: None
    elif out.isatty():
        with _bar(rows, out, clock) as tell:
            yield tell
    else:
        yield _lines(rows, out, clock)


def told(rows: int, seconds: float, spending: Spending) -> str:
    """Return rate and cost so far."""
    rate = f"{rows / seconds:.1f} rows/s" if seconds > 0 else ""
    return ", ".join(part for part in (rate, "" if spending.cost is None else f"${spending.cost:.4f}") if part)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


@contextmanager
def _bar(rows: int, out: TextIO, clock: Callable[[], float]) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn())
    started, done = clock(), 0
    with Progress(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("", total=rows, told="")

        def tell(spending: Spending) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done, told=told(done, clock() - started, spending))

        yield tell


def _lines(rows: int, out: TextIO, clock: Callable[[], float]) -> Tell:
    """Write a line for each tenth."""
    started, done = clock(), 0

    def tell(spending: Spending) -> None:
        nonlocal done
        done += 1
        if done * PARTS // rows > (done - 1) * PARTS // rows:
            seconds = clock() - started
            left = f", {seconds / done * (rows - done):.0f} s left" if done < rows else ""
            out.write(f"germane: {done} of {rows} rows, {told(done, seconds, spending)}{left}\n")
            out.flush()

    return tell
