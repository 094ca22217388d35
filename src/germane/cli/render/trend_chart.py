"""A trend as lines of text: a line for each stretch of time, or a line for each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from germane.cli.core.output import harmless
from germane.cli.core.terminal import Terminal, fitted, wrapped
from germane.cli.render.comparison import ENOUGH

if TYPE_CHECKING:
    from germane.storage import Bucket

BLOCKS: Final = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
"""Eighths, for a line of many means."""
_NUMBERS: Final = 30
"""Columns of mean, interval and n."""
_NAME: Final = 12
"""Columns that a group's name has at least."""
_FEW_GAPS: Final = 2
"""So many stretches without a score have a line each; more of them share one."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened, to be told between two lines."""

    at: datetime
    text: str
    """Harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What a trend is drawn in."""

    terminal: Terminal
    since: datetime
    until: datetime
    bucket: timedelta
    baseline: float | None = None

    def starts(self) -> list[datetime]:
        """Return the beginnings of all stretches of the window, oldest first."""
        seconds = int(self.bucket.total_seconds())
        first = int(self.since.timestamp()) // seconds * seconds
        return [
            datetime.fromtimestamp(start, UTC) for start in range(first, _rounded_up(self.until.timestamp()), seconds)
        ]

    def label(self, start: datetime) -> str:
        """Return when a stretch begins, as short as its length allows."""
        return f"{start:%b %d}" if self.bucket >= _DAY else f"{start:%b %d %H:%M}"

    @property
    def plot(self) -> int:
        """Columns from 0 to 1."""
        return self.terminal.width - len(self.label(self.since)) - _NUMBERS - 4


def _rounded_up(seconds: float) -> int:
    return -int(-seconds // 1)


def over_time(picture: Picture, buckets: Sequence[Bucket], notes: Iterable[Note]) -> Iterator[str]:
    """Return the axis, and a line for each stretch of time with what happened in it."""
    by_start = {start: list(some) for start, some in groupby(buckets, key=lambda one: one.start)}
    left, waiting = " " * len(picture.label(picture.since)), sorted(notes, key=lambda one: one.at)
    yield f"{left}  {_axis(picture)}"
    for known, starts in groupby(picture.starts(), key=lambda start: start in by_start):
        for lines, end in _stretches(picture, list(starts), by_start) if known else _gap(picture, list(starts)):
            yield from lines
            while waiting and waiting[0].at < end:
                yield from _noted(picture, waiting.pop(0))
    for one in waiting:
        yield from _noted(picture, one)


def _stretches(
    picture: Picture, starts: Sequence[datetime], by_start: Mapping[datetime, Sequence[Bucket]]
) -> Iterator[tuple[list[str], datetime]]:
    for start in starts:
        lines = []
        for place, bucket in enumerate(by_start[start]):
            if bucket.begins:
                lines.append(_changed(picture, bucket))
            label = picture.label(start) if not place else " " * len(picture.label(start))
            lines.append(f"{label}  {_whisker(picture, bucket)}  {_numbers(picture, bucket)}".rstrip())
        yield lines, start + picture.bucket


def _gap(picture: Picture, starts: Sequence[datetime]) -> Iterator[tuple[list[str], datetime]]:
    """Return a line for each of a few stretches without a score, one for all of many."""
    if len(starts) <= _FEW_GAPS:
        for start in starts:
            yield [_empty(picture, picture.label(start), "no score")], start + picture.bucket
        return
    end = starts[-1] + picture.bucket
    told = f"no score until {picture.label(end)}" if end < picture.until else "no score since"
    yield [_empty(picture, picture.label(starts[0]), told)], end


def _empty(picture: Picture, label: str, told: str) -> str:
    cells = _cells(picture)
    return f"{label}  {''.join(cells)}  {picture.terminal.styled(told, dim=True)}"


def _cells(picture: Picture) -> list[str]:
    """Return an empty line of the plot: only the baseline goes through it."""
    cells = [" "] * picture.plot
    if picture.baseline is not None:
        cells[_column(picture, picture.baseline)] = picture.terminal.chosen("\u250a", ":")
    return cells


def _whisker(picture: Picture, bucket: Bucket) -> str:
    """Return the mean on its interval; hollow where there are too few scores."""
    terminal, cells = picture.terminal, _cells(picture)
    if bucket.enough and bucket.interval is not None:
        low, high = (_column(picture, end) for end in bucket.interval)
        for column in range(low, high + 1):
            cells[column] = terminal.chosen("\u2500", "-")
        cells[low], cells[high] = terminal.chosen("\u251c", "|"), terminal.chosen("\u2524", "|")
    sign = terminal.chosen("\u25cf", "*") if bucket.enough else terminal.chosen("\u25cb", "o")
    cells[_column(picture, bucket.mean)] = terminal.styled(sign, **{"bold" if bucket.enough else "dim": True})
    return "".join(cells)


def _numbers(picture: Picture, bucket: Bucket) -> str:
    if not bucket.enough:
        return picture.terminal.styled(f"not enough data (n={bucket.n})", dim=True)
    return f"{bucket.mean:.2f}  {interval(picture.terminal, bucket)}  n {_count(bucket.n)}"


def _count(n: int) -> str:
    """Return a number of scores in five letters at most: many of them are rounded down."""
    if n < 100_000:
        return str(n)
    return f"{n // 1000}k" if n < 1_000_000 else f"{n // 1_000_000}M"


def interval(terminal: Terminal, bucket: Bucket) -> str:
    """Return "0.64-0.75"."""
    if bucket.interval is None:
        return "unknown"
    low, high = bucket.interval
    return f"{low:.2f}{terminal.chosen(chr(0x2013), '-') if low >= 0 else ' to '}{high:.2f}"


def _changed(picture: Picture, bucket: Bucket) -> str:
    told = f"the judge changed to {harmless(bucket.fingerprint, 40)}: not comparable with what was before"
    return picture.terminal.styled(told, fg="yellow")


def _noted(picture: Picture, note: Note) -> Iterator[str]:
    """Return what happened, in as many lines as it takes."""
    label, sign = picture.label(note.at), picture.terminal.chosen("\u25b8", ">")
    for text in wrapped(note.text, picture.terminal.width - len(label) - 4):
        yield f"{label}  {picture.terminal.styled(f'{sign} {text}', fg='cyan')}"
        label, sign = " " * len(label), " "


def _axis(picture: Picture) -> str:
    """Return the scale: the numbers stand where a mean of that much would."""
    cells = [" "] * (picture.plot + 2)
    for value, text in ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")):
        start = max(_column(picture, value) - len(text) // 2, 0)
        cells[start : start + len(text)] = text
    return "".join(cells).rstrip()


def _column(picture: Picture, value: float) -> int:
    return round(min(max(value, 0.0), 1.0) * (picture.plot - 1))


def by_group(picture: Picture, buckets: Sequence[Bucket]) -> Iterator[str]:
    """Return a line for each group: its means beside one another, and the latest one of enough scores.

    Of more stretches than fit the newest are shown.
    """
    groups: dict[str, dict[datetime, Bucket]] = {}
    for bucket in buckets:
        groups.setdefault(bucket.group or "", {})[bucket.start] = bucket
    starts = picture.starts()[-(picture.terminal.width - _NUMBERS - 4 - _NAME) :]
    width = picture.terminal.width - len(starts) - _NUMBERS - 4
    for name, found in sorted(groups.items(), key=lambda item: _latest_mean(item[1])):
        line = "".join(_block(picture.terminal, found.get(start)) for start in starts)
        enough = [bucket for bucket in found.values() if bucket.enough]
        last = _numbers(picture, enough[-1]) if enough else f"fewer than {ENOUGH} each time"
        yield f"{fitted(harmless(name) or '(none)', width)}  {line}  {last}"


def _latest_mean(found: Mapping[datetime, Bucket]) -> float:
    """Return what groups are sorted by: the lowest first, those of too few scores last."""
    return next((bucket.mean for bucket in reversed(list(found.values())) if bucket.enough), 2.0)


def _block(terminal: Terminal, bucket: Bucket | None) -> str:
    """Return one mean in one column: a bar of eighths, or a digit for tenths."""
    if bucket is None:
        return terminal.styled(terminal.chosen("\u00b7", "."), dim=True)
    if not bucket.enough:
        return terminal.styled(terminal.chosen("\u25cb", "o"), dim=True)
    share = min(max(bucket.mean, 0.0), 1.0)
    return terminal.chosen(BLOCKS[min(int(share * 8), 7)], str(min(int(share * 10), 9)))


def legend(picture: Picture, *, groups: bool) -> list[str]:
    """Return what the signs mean, in lines that fit."""
    chosen = picture.terminal.chosen
    few = f"{chosen(chr(0x25CB), 'o')} fewer than {ENOUGH} scores"
    if groups:
        bars = chosen(f"{BLOCKS[0]}{BLOCKS[3]}{BLOCKS[7]} mean from 0 to 1", "0-9 mean in tenths")
        nothing = f"{chosen(chr(0xB7), '.')} no score"
        return _packed([bars, few, nothing, "on the right: latest mean and 95 % interval"], picture.terminal.width)
    mean = f"{chosen(chr(0x25CF), '*')} mean"
    interval = f"{chosen(chr(0x251C) + chr(0x2500) + chr(0x2524), '|-|')} 95 % interval"
    line = [] if picture.baseline is None else [f"{chosen(chr(0x250A), ':')} baseline {picture.baseline:.2f}"]
    return _packed([mean, interval, few, *line], picture.terminal.width)


def _packed(signs: Sequence[str], width: int) -> list[str]:
    """Return signs in as few lines as fit; each takes one column a letter."""
    lines = [signs[0]]
    for sign in signs[1:]:
        longer = f"{lines[-1]}   {sign}"
        lines = [*lines[:-1], longer] if len(longer) <= width else [*lines, sign]
    return lines
