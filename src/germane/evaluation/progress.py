"""Usage and progress of an evaluation run. Progress is a bar on a terminal, and occasional lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from germane.score import Score

if TYPE_CHECKING:
    from germane.scorers import UsageMeter

PROGRESS_LINES = 10
"""Number of progress lines written if the output is not a terminal."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Usage of an evaluation run. Cached scores are free, and identical rows count once."""

    seconds: float = 0.0
    requests: int = 0
    """Requests to the judge and the embedder, excluding requests that user-defined scorers send."""
    input_tokens: int | None = None
    """Input tokens; None if no server reported them."""
    output_tokens: int | None = None
    cost: float | None = None
    """Cost in US dollars; None if no price is known."""

    @property
    def tokens(self) -> int | None:
        """Input plus output tokens; None if no server reported them."""
        return _add(self.input_tokens, self.output_tokens)

    def plus(self, other: RunUsage) -> RunUsage:
        """Return the sum of two usages."""
        return RunUsage(
            seconds=self.seconds + other.seconds,
            requests=self.requests + other.requests,
            input_tokens=_add(self.input_tokens, other.input_tokens),
            output_tokens=_add(self.output_tokens, other.output_tokens),
            cost=_add(self.cost, other.cost),
        )

    def plus_score(self, score: Score) -> RunUsage:
        """Return this usage plus a score's tokens and cost."""
        return self.plus(RunUsage(0.0, 0, score.input_tokens, score.output_tokens, score.cost))

    def plus_meter(self, meter: UsageMeter) -> RunUsage:
        """Return this usage plus the usage of the judge and the embedder, including failed requests."""
        requests = meter.requests + meter.embedding_requests
        tokens = meter.input_tokens or None, meter.output_tokens or None
        return self.plus(RunUsage(0.0, requests, *tokens, meter.cost or None))


class ReportProgress(Protocol):
    """Reports that rows are done."""

    def __call__(self, usage: RunUsage, rows: int = 1) -> None:
        """Report the usage so far, and the number of rows that are done since the previous call."""


@contextmanager
def show_progress(
    wanted: bool | None,  # noqa: FBT001 - passed on from evaluate()
    total: int,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.perf_counter,
    noun: str = "rows",
) -> Iterator[ReportProgress]:
    """Show the progress of a run; if ``wanted`` is None, only on a terminal and in a notebook.

    Yield a callback to call as rows are done. ``noun`` is what is counted, and ``clock`` returns the time in seconds.
    """
    out = sys.stderr if stream is None else stream
    if not total or wanted is False or (wanted is None and not out.isatty() and "ipykernel" not in sys.modules):
        yield lambda usage, rows=1: None  # noqa: ARG005 - the callback's signature
        return
    started, done = clock(), 0

    def rate_and_cost(seconds: float, usage: RunUsage) -> str:
        rate = f"{done / seconds:,.1f} {noun}/s" if seconds > 0 else ""
        cost = "" if usage.cost is None else f"${usage.cost:.4f}"
        return ", ".join(part for part in (rate, cost) if part)

    if not out.isatty():

        def write_line(usage: RunUsage, rows: int = 1) -> None:
            nonlocal done
            before, done = done, done + rows
            if done * PROGRESS_LINES // total > before * PROGRESS_LINES // total:
                seconds = clock() - started
                remaining = f", {seconds / done * (total - done):.0f} s left" if done < total else ""
                out.write(f"germane: {done:,} of {total:,} {noun}, {rate_and_cost(seconds, usage)}{remaining}\n")
                out.flush()

        yield write_line
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("", total=total, text="")

        def update_bar(usage: RunUsage, rows: int = 1) -> None:
            nonlocal done
            done += rows
            bar.update(task, completed=done, text=rate_and_cost(clock() - started, usage))

        yield update_bar


def _add(first: Number | None, second: Number | None) -> Number | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second
