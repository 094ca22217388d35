"""Time ranges: splits a window into whole weeks, days and hours plus a remainder, so that few rows have to be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

HOUR: Final = 3_600
DAY: Final = 86_400
WEEK: Final = 604_800
"""Length of a week in seconds."""
ARCHIVED_DAY: Final = -DAY
"""The ``span`` of the rollup of a day whose rows were moved to the archive. The rollup stays in the database."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A Thursday, so weekly rollups start on Thursdays. Buckets of whole weeks start on Mondays and use daily rollups."""
BEGINNING: Final = EPOCH - timedelta(weeks=100_000)
"""Default start of a window."""
END: Final = EPOCH + timedelta(weeks=400_000)
"""Default end of a window."""
TimeRange = tuple[datetime, datetime]
"""Start (inclusive) and end (exclusive)."""


@dataclass(frozen=True, slots=True)
class WindowParts:
    """Disjoint parts that together cover a window."""

    rolled: Sequence[tuple[int, TimeRange]]
    """Ranges of whole weeks, days or hours to read from rollups, each with the length of its rollups in seconds."""
    raw: Sequence[TimeRange]
    """Ranges to read from rows."""
    excluded: Collection[datetime] = ()
    """Days whose rollups are not read, because the archive's files are read instead, or because they are not in the
    archive."""


def split_window(
    since: datetime, until: datetime, due: Sequence[datetime], spans: Sequence[int] = (WEEK, DAY, HOUR)
) -> WindowParts:
    """Split a window into ranges to read from rollups and ranges to read from rows.

    Hours that are ``due``, oldest first, are read from rows, because they have no up-to-date rollup or belong to two
    buckets. ``spans`` are the lengths of the rollups to read in seconds, longest first.
    """
    first, last = up(since, HOUR), down(until, HOUR)
    if first >= last or not spans:
        return WindowParts((), [(since, until)] if since < until else ())
    dirty = [(hour, after(hour, HOUR)) for hour in due if first <= hour < last]
    # The ranges between dirty hours are read from rollups of whole weeks, then days, then hours.
    uncovered: list[TimeRange] = []
    start = first
    for begin, end in [*dirty, (last, last)]:
        if start < begin:
            uncovered.append((start, begin))
        start = end
    rolled: list[tuple[int, TimeRange]] = []
    for span in spans:
        rest: list[TimeRange] = []
        for start, stop in uncovered:
            begin, end = up(start, span), down(stop, span)
            if begin < end:
                rolled.append((span, (begin, end)))
                rest += [(start, begin), (end, stop)]
            else:
                rest.append((start, stop))
        uncovered = rest
    # Adjacent ranges of rows are read as one range.
    raw: list[TimeRange] = []
    for begin, end in [(since, first), *dirty, (last, until)]:
        if begin < end:
            joined = raw.pop()[0] if raw and raw[-1][1] == begin else begin
            raw.append((joined, end))
    return WindowParts(rolled, raw)


def down(moment: datetime, span: int) -> datetime:
    """Return the start of the hour, day or week that contains the given time."""
    whole = moment.replace(minute=0, second=0, microsecond=0)
    return whole if span == HOUR else whole - (whole - EPOCH) % timedelta(seconds=span)


def up(moment: datetime, span: int) -> datetime:
    """Return the first start of an hour, day or week at or after the given time."""
    below = down(moment, span)
    return below if below == moment else after(below, span)


def after(start: datetime, span: int) -> datetime:
    """Return the end of the hour, day or week that starts at ``start``; ``span`` is its length in seconds."""
    return start + timedelta(seconds=span)
