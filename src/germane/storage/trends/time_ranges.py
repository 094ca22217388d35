"""Splitting a window into whole weeks, days and hours and a remainder, so that few rows have to be read."""

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
"""A Thursday. Weeks start on Thursdays because buckets start at multiples of their length since the epoch."""
BEGINNING: Final = EPOCH - timedelta(weeks=100_000)
END: Final = EPOCH + timedelta(weeks=400_000)
"""Bounds of open windows."""
TimeRange = tuple[datetime, datetime]
"""Start (inclusive) and end (exclusive)."""


@dataclass(frozen=True, slots=True)
class WindowParts:
    """Disjoint parts that cover a window."""

    rolled: Sequence[tuple[int, TimeRange]]
    """Ranges of whole weeks, days or hours to read from rollups, each with its unit in seconds."""
    raw: Sequence[TimeRange]
    """Ranges to read from the rows."""


def split_window(since: datetime, until: datetime, due: Sequence[datetime], bucket: int | None = None) -> WindowParts:
    """Split a window.

    Args:
        since: Start; UTC.
        until: End; UTC.
        due: Hours without a current rollup, oldest first.
        bucket: Length of the requested buckets in seconds; None for the whole window as one.
    """
    first, last = up(since, HOUR), down(until, HOUR)
    if first >= last or (bucket or HOUR) % HOUR:
        return WindowParts((), [(since, until)] if since < until else ())
    odd = [(hour, after(hour, HOUR)) for hour in due if first <= hour < last]
    rolled, left = list[tuple[int, TimeRange]](), list(_between(first, last, odd))
    for span in (WEEK, DAY, HOUR):
        if (bucket or span) % span == 0:
            wholes = [_whole(run, span) for run in left]
            rolled += [(span, (begin, end)) for begin, end in wholes if begin < end]
            left = [part for run in left for part in _around(run, span)]
    return WindowParts(rolled, _merge([(since, first), *odd, (last, until)]))


def _whole(run: TimeRange, span: int) -> TimeRange:
    """Return the whole units within a range; start >= end if there are none."""
    return up(run[0], span), down(run[1], span)


def _around(run: TimeRange, span: int) -> list[TimeRange]:
    begin, end = _whole(run, span)
    if begin >= end:
        return [run]
    return [part for part in ((run[0], begin), (end, run[1])) if part[0] < part[1]]


def _between(first: datetime, last: datetime, taken: Iterable[TimeRange]) -> Iterator[TimeRange]:
    """Return the gaps between two times that sorted, disjoint ranges leave."""
    for begin, end in taken:
        if first < begin:
            yield first, begin
        first = end
    if first < last:
        yield first, last


def _merge(runs: Iterable[TimeRange]) -> list[TimeRange]:
    found: list[TimeRange] = []
    for begin, end in runs:
        if begin < end:
            begin = found.pop()[0] if found and found[-1][1] == begin else begin
            found.append((begin, end))
    return found


def down(moment: datetime, span: int) -> datetime:
    """Return the start of the hour, day or week that contains a time."""
    whole = moment.replace(minute=0, second=0, microsecond=0)
    return whole if span == HOUR else whole - (whole - EPOCH) % timedelta(seconds=span)


def up(moment: datetime, span: int) -> datetime:
    """Return the first start of an hour, day or week at or after a time."""
    below = down(moment, span)
    return below if below == moment else after(below, span)


def after(start: datetime, span: int) -> datetime:
    """Return the end of an hour, day or week."""
    return start + timedelta(seconds=span)
