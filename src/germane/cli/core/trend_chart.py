"""Trend charts drawn as text, with one line per bucket or per group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Final

from germane import sanitize, storage
from germane.cli.core.output import Terminal, fit, wrap
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.storage import Bucket

BLOCKS: Final = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
"""Block characters from one eighth to eight eighths, used as bars."""
NUMBERS_WIDTH: Final = 30
"""Number of columns for the mean, its interval and n."""
MIN_NAME_WIDTH: Final = 12
"""Minimum number of columns for a group's name."""
MAX_GAP_LINES: Final = 2
"""Maximum number of consecutive buckets without scores that are drawn individually. A longer gap is drawn as one
line."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ChartAnnotation:
    """An event printed between two rows of the chart."""

    at: datetime
    text: str
    """Sanitized text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLayout:
    """The terminal, window and scale of a chart."""

    terminal: Terminal
    since: datetime
    until: datetime
    bucket: timedelta
    timezone: tzinfo = UTC
    baseline: float | None = None

    def bucket_starts(self) -> list[datetime]:
        """Return the starts of all buckets in the window, oldest first."""
        return list(self._grid.starts(self.since, self.until))

    def end_of(self, start: datetime) -> datetime:
        """Return the end of the bucket that begins at ``start``."""
        return self._grid.start(self._grid.number(start) + self._grid.length)

    def label(self, start: datetime) -> str:
        """Format the start of a bucket, without the time of day if buckets are whole days."""
        local = start.astimezone(self.timezone)
        return f"{local:%b %d}" if self.bucket % _DAY == timedelta() else f"{local:%b %d %H:%M}"

    @property
    def _grid(self) -> storage.BucketGrid:
        return storage.BucketGrid(int(self.bucket.total_seconds()), self.timezone)

    @property
    def plot_width(self) -> int:
        """Number of columns between the scores 0 and 1."""
        return self.terminal.width - len(self.label(self.since)) - NUMBERS_WIDTH - 4

    def column(self, value: float) -> int:
        """Return the index of the plot column for a mean."""
        return round(min(max(value, 0.0), 1.0) * (self.plot_width - 1))

    def empty_plot(self) -> list[str]:
        """Return the cells of a plot line that contains only the baseline."""
        cells = [" "] * self.plot_width
        if self.baseline is not None:
            cells[self.column(self.baseline)] = self.terminal.symbol("\u250a", ":")
        return cells


def draw_trend(layout: ChartLayout, buckets: Sequence[Bucket], annotations: Iterable[ChartAnnotation]) -> Iterator[str]:
    """Yield the axis, then the lines of each bucket, followed by the events in that bucket."""
    by_start = {start: list(group) for start, group in groupby(buckets, key=lambda bucket: bucket.start)}
    pending = sorted(annotations, key=lambda annotation: annotation.at)
    axis = [" "] * (layout.plot_width + 2)
    for value, text in ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")):
        start = max(layout.column(value) - len(text) // 2, 0)
        axis[start : start + len(text)] = text
    yield f"{' ' * len(layout.label(layout.since))}  {''.join(axis).rstrip()}"
    for has_scores, group in groupby(layout.bucket_starts(), key=lambda start: start in by_start):
        starts = list(group)
        parts = _draw_buckets(layout, starts, by_start) if has_scores else _draw_gap(layout, starts)
        for lines, end in parts:
            yield from lines
            while pending and pending[0].at < end:
                yield from _draw_annotation(layout, pending.pop(0))
    for annotation in pending:
        yield from _draw_annotation(layout, annotation)


def _draw_buckets(
    layout: ChartLayout, starts: Sequence[datetime], by_start: Mapping[datetime, Sequence[Bucket]]
) -> Iterator[tuple[list[str], datetime]]:
    """Yield, for each bucket, its lines (one per fingerprint) and its end."""
    for start in starts:
        lines, label = [], layout.label(start)
        for bucket in by_start[start]:
            if bucket.judge_changed:
                changed = (
                    f"judge changed to {sanitize.line(bucket.fingerprint, 40)}: not comparable with earlier scores"
                )
                lines.append(layout.terminal.style(changed, fg="yellow"))
            plot, numbers = _draw_interval(layout, bucket), _format_numbers(layout.terminal, bucket)
            lines.append(f"{label}  {plot}  {numbers}".rstrip())
            label = " " * len(label)
        yield lines, layout.end_of(start)


def _draw_gap(layout: ChartLayout, starts: Sequence[datetime]) -> Iterator[tuple[list[str], datetime]]:
    """Yield one line per bucket without scores, or a single line for a long gap."""
    plot = "".join(layout.empty_plot())
    if len(starts) <= MAX_GAP_LINES:
        for start in starts:
            yield (
                [f"{layout.label(start)}  {plot}  {layout.terminal.style('no scores', dim=True)}"],
                layout.end_of(start),
            )
        return
    end = layout.end_of(starts[-1])
    text = f"no scores until {layout.label(end)}" if end < layout.until else "no scores since"
    yield [f"{layout.label(starts[0])}  {plot}  {layout.terminal.style(text, dim=True)}"], end


def _draw_interval(layout: ChartLayout, bucket: Bucket) -> str:
    """Draw a mean on its interval, or a hollow point if there are too few scores."""
    terminal, cells = layout.terminal, layout.empty_plot()
    if bucket.has_min_samples and bucket.interval is not None:
        low, high = map(layout.column, bucket.interval)
        cells[low : high + 1] = terminal.symbol("\u2500", "-") * (high + 1 - low)
        cells[low], cells[high] = terminal.symbol("\u251c", "|"), terminal.symbol("\u2524", "|")
    if bucket.has_min_samples:
        point = terminal.style(terminal.symbol("\u25cf", "*"), bold=True)
    else:
        point = terminal.style(terminal.symbol("\u25cb", "o"), dim=True)
    cells[layout.column(bucket.mean)] = point
    return "".join(cells)


def _format_numbers(terminal: Terminal, bucket: Bucket) -> str:
    if not bucket.has_min_samples:
        return terminal.style(f"not enough data (n={bucket.n})", dim=True)
    interval = "unknown"
    if bucket.interval is not None:
        low, high = bucket.interval
        dash = terminal.symbol("\u2013", "-") if low >= 0 else " to "
        interval = f"{low:z.2f}{dash}{high:z.2f}"
    n = bucket.n
    count = str(n) if n < 100_000 else f"{n // 1000}k" if n < 1_000_000 else f"{n // 1_000_000}M"
    return f"{bucket.mean:z.2f}  {interval}  n {count}"


def _draw_annotation(layout: ChartLayout, annotation: ChartAnnotation) -> Iterator[str]:
    label, symbol = layout.label(annotation.at), layout.terminal.symbol("\u25b8", ">")
    for text in wrap(annotation.text, layout.terminal.width - len(label) - 4):
        yield f"{label}  {layout.terminal.style(f'{symbol} {text}', fg='cyan')}"
        label, symbol = " " * len(label), " "


def draw_groups(layout: ChartLayout, buckets: Sequence[Bucket]) -> Iterator[str]:
    """Yield one line per group: its means side by side, followed by the latest mean that has enough scores.

    Groups are sorted by their latest mean, lowest first. If the buckets do not fit the width, only the newest are
    shown.
    """
    terminal = layout.terminal
    groups: dict[str, dict[datetime, Bucket]] = {}
    for bucket in buckets:
        groups.setdefault(bucket.group or "", {})[bucket.start] = bucket
    starts = layout.bucket_starts()[-(terminal.width - NUMBERS_WIDTH - 4 - MIN_NAME_WIDTH) :]
    name_width = terminal.width - len(starts) - NUMBERS_WIDTH - 4

    def latest_mean(by_start: Mapping[datetime, Bucket]) -> float:
        means = (bucket.mean for bucket in reversed(list(by_start.values())) if bucket.has_min_samples)
        return next(means, 2.0)  # groups with too few scores come last

    for name, by_start in sorted(groups.items(), key=lambda group: latest_mean(group[1])):
        line = "".join(_draw_block(terminal, by_start.get(start)) for start in starts)
        sufficient = [bucket for bucket in by_start.values() if bucket.has_min_samples]
        numbers = _format_numbers(terminal, sufficient[-1]) if sufficient else f"fewer than {MIN_SAMPLES} scores each"
        yield f"{fit(sanitize.line(name) or '(none)', name_width)}  {line}  {numbers}"


def _draw_block(terminal: Terminal, bucket: Bucket | None) -> str:
    """Draw a mean in one column: a bar in eighths, or, in ASCII, a digit for the tenths."""
    if bucket is None:
        return terminal.style(terminal.symbol("\u00b7", "."), dim=True)
    if not bucket.has_min_samples:
        return terminal.style(terminal.symbol("\u25cb", "o"), dim=True)
    mean = min(max(bucket.mean, 0.0), 1.0)
    return terminal.symbol(BLOCKS[min(int(mean * 8), 7)], str(min(int(mean * 10), 9)))


def format_legend(layout: ChartLayout, *, is_grouped: bool) -> list[str]:
    """Return a legend of all symbols, as lines that fit the width."""
    symbol = layout.terminal.symbol
    too_few = f"{symbol(chr(0x25CB), 'o')} fewer than {MIN_SAMPLES} scores"
    if is_grouped:
        bars = symbol(f"{BLOCKS[0]}{BLOCKS[3]}{BLOCKS[7]} mean from 0 to 1", "0-9 mean in tenths")
        entries = [bars, too_few, f"{symbol(chr(0xB7), '.')} no scores", "right: latest mean and 95% interval"]
    else:
        interval = symbol("\u251c\u2500\u2524", "|-|")
        entries = [f"{symbol(chr(0x25CF), '*')} mean", f"{interval} 95% interval", too_few]
        if layout.baseline is not None:
            entries.append(f"{symbol(chr(0x250A), ':')} baseline {layout.baseline:z.2f}")
    lines = entries[:1]
    for entry in entries[1:]:
        longer = f"{lines[-1]}   {entry}"
        lines = [*lines[:-1], longer] if len(longer) <= layout.terminal.width else [*lines, entry]
    return lines
