"""How a window is put together of whole weeks, days and hours and the rest, so that little has to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

HOUR: Final = 3_600
DAY: Final = 86_400
WEEK: Final = 604_800
"""Seconds."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A Thursday: weeks begin on Thursdays, because buckets begin at multiples of their length since then."""
BEGINNING: Final = EPOCH - timedelta(weeks=100_000)
END: Final = EPOCH + timedelta(weeks=400_000)
"""Before and after all answers."""
Run = tuple[datetime, datetime]
"""From the first moment on, up to but not including the second."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Parts of one window, which do not overlap and leave nothing out."""

    rolled: Sequence[tuple[int, Run]]
    """Whole weeks, days and hours, each run after the length of its spans in seconds: to be read from rollups."""
    raw: Sequence[Run]
    """What is to be read from the rows themselves."""


def spans(since: datetime, until: datetime, due: Sequence[datetime], bucket: int | None = None) -> Spans:
    """Cut a window up.

    Args:
        since: UTC.
        until: UTC.
        due: Hours that are not rolled up, oldest first.
        bucket: Seconds, where the window is to be cut into buckets that begin at multiples of it; None for one piece.
    """
    first, last = up(since, HOUR), down(until, HOUR)
    if first >= last or (bucket or HOUR) % HOUR:
        return Spans((), [(since, until)] if since < until else ())
    odd = [(hour, after(hour, HOUR)) for hour in due if first <= hour < last]
    rolled, left = list[tuple[int, Run]](), list(_between(first, last, odd))
    for span in (WEEK, DAY, HOUR):
        if (bucket or span) % span == 0:
            wholes = [_whole(run, span) for run in left]
            rolled += [(span, (begin, end)) for begin, end in wholes if begin < end]
            left = [part for run in left for part in _beside(run, span)]
    return Spans(rolled, _merged([(since, first), *odd, (last, until)]))


def _whole(run: Run, span: int) -> Run:
    """Return the whole spans of a run; a run that does not begin where there is none."""
    return up(run[0], span), down(run[1], span)


def _beside(run: Run, span: int) -> list[Run]:
    begin, end = _whole(run, span)
    if begin >= end:
        return [run]
    return [part for part in ((run[0], begin), (end, run[1])) if part[0] < part[1]]


def _between(first: datetime, last: datetime, taken: Iterable[Run]) -> Iterator[Run]:
    """Return what is left between two moments beside runs that are sorted and do not overlap."""
    for begin, end in taken:
        if first < begin:
            yield first, begin
        first = end
    if first < last:
        yield first, last


def _merged(runs: Iterable[Run]) -> list[Run]:
    found: list[Run] = []
    for begin, end in runs:
        if begin < end:
            begin = found.pop()[0] if found and found[-1][1] == begin else begin
            found.append((begin, end))
    return found


def down(moment: datetime, span: int) -> datetime:
    """Return the beginning of the hour, day or week that the moment lies in."""
    whole = moment.replace(minute=0, second=0, microsecond=0)
    return whole if span == HOUR else whole - (whole - EPOCH) % timedelta(seconds=span)


def up(moment: datetime, span: int) -> datetime:
    """Return the first beginning of an hour, day or week that is not before the moment."""
    below = down(moment, span)
    return below if below == moment else after(below, span)


def after(start: datetime, span: int) -> datetime:
    """Return the end of an hour, day or week."""
    return start + timedelta(seconds=span)
