"""How a window is put together of whole days, whole hours and the rest, so that little has to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

HOUR: Final = 3_600
DAY: Final = 86_400
"""Seconds."""
BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)
END: Final = datetime.max.replace(tzinfo=UTC)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Run = tuple[datetime, datetime]
"""From the first moment on, up to but not including the second."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Parts of one window, which do not overlap and leave nothing out."""

    days: Sequence[Run]
    """Whole days (UTC), to be read from their rollups."""
    hours: Sequence[Run]
    """Whole hours, likewise."""
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
    if first >= last or (bucket or DAY) % HOUR:
        return Spans((), (), [(since, until)] if since < until else ())
    odd = [hour for hour in due if first <= hour < last]
    rest = _merged([(since, first), *((hour, after(hour, HOUR)) for hour in odd), (last, until)])
    days = [] if (bucket or DAY) % DAY else _whole_days(first, last, odd)
    return Spans(days, list(_between(first, last, sorted([*days, *rest]))), rest)


def _whole_days(first: datetime, last: datetime, odd: Iterable[datetime]) -> list[Run]:
    spoilt = sorted({down(hour, DAY) for hour in odd})
    return list(_between(up(first, DAY), down(last, DAY), [(day, after(day, DAY)) for day in spoilt]))


def _between(first: datetime, last: datetime, taken: Iterable[Run]) -> Iterator[Run]:
    """Return what is left between two moments beside runs that are sorted and do not overlap."""
    for begin, end in taken:
        if first < min(begin, last):
            yield first, min(begin, last)
        first = max(first, end)
    if first < last:
        yield first, last


def _merged(runs: Iterable[Run]) -> list[Run]:
    found: list[Run] = []
    for begin, end in runs:
        if begin >= end:
            continue
        if found and found[-1][1] == begin:
            begin = found.pop()[0]
        found.append((begin, end))
    return found


def down(moment: datetime, seconds: int) -> datetime:
    """Return the last whole hour or day that is not after the moment."""
    whole = moment.replace(minute=0, second=0, microsecond=0)
    return whole.replace(hour=0) if seconds == DAY else whole


def up(moment: datetime, seconds: int) -> datetime:
    """Return the first whole hour or day that is not before the moment."""
    below = down(moment, seconds)
    return below if below == moment else after(below, seconds)


def after(start: datetime, seconds: int) -> datetime:
    """Return the end of a span; of the last one of all, the last moment."""
    return END if END - start < timedelta(seconds=seconds) else start + timedelta(seconds=seconds)
