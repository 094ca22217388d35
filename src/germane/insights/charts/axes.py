"""Labels that neither overlap nor run out of the picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from unicodedata import combining, east_asian_width
from zoneinfo import ZoneInfo

_NARROW: Final = 0.62
_WIDE: Final = 1.1
"""Width of a letter in parts of its height: more than most fonts take, for the visitor's is not known."""
GAP: Final = 8.0
"""Units between two labels, and half of it between a label and its line."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A label beside its line, on one of the rows over the plot."""

    text: str
    x: float
    anchor: Literal["start", "end"]
    row: int


def width_of(text: str, size: float) -> float:
    """Return about how wide a text is in letters of that size."""
    return sum(0.0 if combining(one) else _WIDE if _is_wide(one) else _NARROW for one in text) * size


def _is_wide(letter: str) -> bool:
    return east_asian_width(letter) in "WF" or letter > "\u2e80" or letter in "MW@%\u2014\u2026"


def fitted(text: str, width: float, size: float) -> str:
    """Return a text cut to a width."""
    if width_of(text, size) <= width:
        return text
    end = len(text)
    while end and width_of(f"{text[:end]}\u2026", size) > width:
        end -= 1
    return f"{text[:end].rstrip()}\u2026" if end else ""


def placed(
    wanted: Sequence[tuple[float, str]], left: float, right: float, *, rows: int, size: float
) -> list[Placed | None]:
    """Return where each label goes, in the order given; None where there is no room: its line stands alone.

    Args:
        wanted: Where the line lies, and the text.
        left: Where the room for labels begins.
        right: Its end.
        rows: How many lie one under another.
        size: Height of the letters.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    return [_place(x, text, left, right, taken, size) for x, text in wanted]


def _place(
    x: float, text: str, left: float, right: float, taken: list[list[tuple[float, float]]], size: float
) -> Placed | None:
    shown = fitted(text, (right - left) / 2 - GAP, size)
    width = width_of(shown, size)
    for row, spans in enumerate(taken):
        for begin in (x + GAP / 2, x - GAP / 2 - width):
            span, line = (begin - 1, begin + width + 1), (x - 1, x + 1)
            fits = shown and begin >= left and begin + width <= right and not _meets(span, spans)
            if fits and not any(_meets(line, below) for below in taken[row:]):
                spans.append(span)
                for below in taken[row:]:
                    below.append(line)
                return Placed(shown, begin, "start", row) if begin > x else Placed(shown, begin + width, "end", row)
    return None


def _meets(span: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    return any(span[0] < end and begin < span[1] for begin, end in others)


_STEPS: Final = tuple(timedelta(minutes=one) for one in (1, 5, 15, 30, 60, 120, 180, 360, 720))
_DAYS: Final = (1, 2, 7, 14)
_MONTHS: Final = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000)


class Tick(NamedTuple):
    """A moment, what is written under it, and whether that is a day."""

    at: datetime
    label: str
    is_day: bool


def ticks(since: datetime, until: datetime, zone: ZoneInfo | None, most: int) -> list[Tick]:
    """Return at most about ``most`` moments from ``since`` to ``until``, on whole hours, days or months of the zone."""
    walls, name = _walls(_wall(since, zone), _wall(until, zone), most)
    found: list[Tick] = []
    for wall in walls:
        at = wall.astimezone() if zone is None else wall.replace(tzinfo=zone)
        # Where clocks are put back, an hour by the clock on the wall may not be later than the one before.
        if since <= at <= until and (not found or at.timestamp() > found[-1].at.timestamp()):
            found.append(Tick(at, name(wall), name is not _hour or _is_midnight(wall)))
    return found


def _walls(first: datetime, last: datetime, most: int) -> tuple[Iterator[datetime], Callable[[datetime], str]]:
    """Return moments by the clock on the wall, and how they are written."""
    length = last - first
    for step in _STEPS:
        if length <= step * most:
            return _by_time(first, last, step), _hour
    for days in _DAYS:
        if length <= timedelta(days=days) * most:
            return _by_days(first, last, days), _day
    months = next((one for one in _MONTHS if length <= timedelta(days=30 * one) * most), _MONTHS[-1])
    return _by_months(first, last, months), _month


def _wall(moment: datetime, zone: ZoneInfo | None) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _is_midnight(moment: datetime) -> bool:
    return moment == _midnight(moment)


def _by_time(first: datetime, last: datetime, step: timedelta) -> Iterator[datetime]:
    moment = _midnight(first) + step * ((first - _midnight(first)) // step)
    while moment <= last:
        yield moment
        moment += step


def _by_days(first: datetime, last: datetime, days: int) -> Iterator[datetime]:
    day = _midnight(first)
    day -= timedelta(days=(day.toordinal() - 1) % days)  # weeks begin on Mondays, as the first day of all was one
    while day <= last:
        yield day
        day += timedelta(days=days)


def _by_months(first: datetime, last: datetime, months: int) -> Iterator[datetime]:
    begin = (first.year * 12 + first.month - 1) // months * months
    for number in range(begin, last.year * 12 + last.month, months):
        if number >= 12:
            yield _midnight(first).replace(year=number // 12, month=number % 12 + 1, day=1)


def _hour(moment: datetime) -> str:
    return _day(moment) if _is_midnight(moment) else f"{moment:%H:%M}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"


def _month(moment: datetime) -> str:
    return f"{moment:%b %Y}"
