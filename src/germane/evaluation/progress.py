"""How far a run is, for a person who looks: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO, TypeVar

from germane.score import Score

if TYPE_CHECKING:
    from germane.scorers import Meter


Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run took: nothing for what the cache held, and once for equal rows."""

    seconds: float = 0.0
    requests: int = 0
    """Asked of judge and embedder; those that scorers of your own make are not seen."""
    input_tokens: int | None = None
    """None where no server told."""
    output_tokens: int | None = None
    cost: float | None = None
    """US dollars; None where no price is known."""

    def plus(self, score: Score) -> Spending:
        """Return the sum with what a score took."""
        return replace(
            self,
            input_tokens=_sum(self.input_tokens, score.input_tokens),
            output_tokens=_sum(self.output_tokens, score.output_tokens),
            cost=_sum(self.cost, score.cost),
        )

    def with_meter(self, meter: Meter) -> Spending:
        """Return the sum with what judge and embedder took: failures too."""
        return replace(
            self,
            requests=self.requests + meter.requests + meter.embedding_requests,
            input_tokens=_sum(self.input_tokens, meter.input_tokens or None),
            output_tokens=_sum(self.output_tokens, meter.output_tokens or None),
            cost=_sum(self.cost, meter.cost or None),
        )


def _sum(one: Number | None, other: Number | None) -> Number | None:
    return other if one is None else one if other is None else one + other


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
