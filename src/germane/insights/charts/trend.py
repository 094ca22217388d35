"""The mean over time: line, 95 % band, baseline, how many were scored, and what happened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

from germane.insights.charts import layers
from germane.insights.charts.axes import Placed, fitted, placed, ticks
from germane.insights.charts.frame import Picture, Plot, described
from germane.insights.charts.point import ChartMark, Point, floor_of, series_of
from germane.insights.charts.svg import joined, tag

JUDGE: Final = "judge changed"
_ROW: Final = 17
"""Height of a row of labels."""
_STRIP: Final = 34
"""Height of the bars."""
_FOOT: Final = 42
"""Height of what is under them: moments, and the zone."""
_FIRST: Final = {"alert": 0, "judge": 1, "deploy": 2}
"""Who gets a label first; of one kind the newest."""
Flag = tuple[float, ChartMark]


@dataclass(frozen=True, slots=True)
class _Room:
    """What a width has room for."""

    left: float
    right: float
    letter: float
    """Height of letters at the most; a style sheet may choose smaller ones."""
    rows: int
    tick: float
    """Width for the name of a moment."""


_WIDE: Final = _Room(left=36, right=86, letter=15, rows=3, tick=84)
_NARROW: Final = _Room(left=30, right=44, letter=13, rows=2, tick=62)
_BROAD: Final = 700
"""From this width on there is room for words."""


def trend_chart(
    points: Sequence[Point],
    *,
    since: datetime,
    until: datetime,
    bucket: timedelta,
    zone: ZoneInfo | None = None,
    baseline: float | None = None,
    baseline_name: str = "baseline",
    marks: Sequence[ChartMark] = (),
    title: str,
    description: str = "",
    width: int = 1100,
    height: int = 320,
    name: str = "trend",
    floor: float | None = None,
    kind: str = "",
) -> Markup:
    """Return a picture of means over time, as SVG.

    Args:
        points: Means; what lies outside the window is left out. A bucket without one leaves a gap.
        since: Left edge.
        until: Right edge.
        bucket: How much time one point stands for.
        zone: In which moments are written; None for this machine's.
        baseline: Where the dashed line lies; None without one.
        baseline_name: What that is, in a word.
        marks: Moments to be seen.
        title: What it is, for who cannot see it.
        description: What it shows; by default a few words made from the points.
        width: Of the view box; the page stretches it. From 700 on there is room for words.
        height: Of the view box.
        name: Its id, its own on the page.
        floor: Where the axis begins, 0 or -1; by default -1 where a mean lies under 0.
        kind: A class of the style sheet.
    """
    room = _WIDE if width >= _BROAD else _NARROW
    edge = Plot(left=room.left, right=width - room.right, top=0, bottom=0, since=since, until=until)
    inside = [one for one in points if edge.shows(one, bucket)]
    flags = _flags(inside, marks, edge)
    labels = placed([(x, one.label) for x, one in flags], edge.left, width - 2, rows=room.rows, size=room.letter)
    above = 10 + _ROW * max((one.row + 1 for one in labels if one), default=0)
    low = floor_of(inside, baseline) if floor is None else floor
    plot = replace(edge, top=above, bottom=height - _FOOT - _STRIP - 12, floor=low)
    strip = replace(edge, top=height - _FOOT - _STRIP, bottom=height - _FOOT)
    bars, most = layers.bars_of(inside, strip, bucket)
    words = description or described(inside, baseline, marks, name=baseline_name)
    picture = Picture(width=width, height=height, title=title, description=words, name=name, kind=kind)
    series = series_of(inside)
    return picture.of(
        layers.bands_of(series, plot, bucket),
        _axes(plot, strip, room, zone),
        bars,
        _most(strip, most, room),
        layers.grid_of(plot, plot.levels),
        *(_flag_line(*flag, label, plot, strip) for flag, label in zip(flags, labels, strict=True)),
        _baseline(plot, baseline, baseline_name, room),
        layers.lines_of(series, plot, bucket, 3.2),
        *(_label(label, flag[1]) for label, flag in zip(labels, flags, strict=True) if label),
        data=_data(inside, plot, bucket),
    )


def _flags(points: Sequence[Point], marks: Sequence[ChartMark], plot: Plot) -> list[Flag]:
    changes = [ChartMark(one.start, JUDGE, "judge") for one in points if one.begins]
    inside = [one for one in (*marks, *changes) if plot.since <= one.at <= plot.until]
    return [(plot.x(one.at), one) for one in sorted(inside, key=lambda one: (_FIRST[one.kind], -one.at.timestamp()))]


def _flag_line(x: float, mark: ChartMark, label: Placed | None, plot: Plot, strip: Plot) -> Markup:
    top = plot.top if label is None else 5.0 + _ROW * label.row
    return tag("line", class_=f"mark {mark.kind}", x1=x, x2=x, y1=top, y2=strip.bottom)


def _label(label: Placed, mark: ChartMark) -> Markup:
    return tag("text", label.text, class_=mark.kind, x=label.x, y=16 + _ROW * label.row, text_anchor=label.anchor)


def _baseline(plot: Plot, level: float | None, called: str, room: _Room) -> Markup:
    if level is None:
        return Markup("")
    y = plot.y(level)
    figure = tag("text", f"{level:.2f}".replace("-", "\u2212"), x=plot.right + 6, y=y + 4)
    name = tag("text", called, x=plot.right + 6, y=y - 11) if room is _WIDE else Markup("")
    return joined(layers.baseline_of(plot, level), name, figure)


def _most(strip: Plot, most: int, room: _Room) -> Markup:
    name = tag("text", "n", x=strip.left - 7, y=strip.bottom - 2, text_anchor="end")
    text = f"\u2264 {_compact(most)}"
    return joined(name, tag("text", fitted(text, room.right - 8, room.letter), x=strip.right + 6, y=strip.top + 10))


def _compact(count: int) -> str:
    """Return "58", "12k" or "3.4M"."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return str(count)


def _axes(plot: Plot, strip: Plot, room: _Room, zone: ZoneInfo | None) -> Markup:
    most = int((plot.right - plot.left) // room.tick)
    named = [tick for tick in ticks(plot.since, plot.until, zone, most) if _has_room(plot.x(tick.at), room)]
    parts = [tag("line", class_="edge", x1=plot.left, x2=plot.right, y1=strip.bottom, y2=strip.bottom)]
    for at, label, is_day in named:
        x = plot.x(at)
        parts.append(tag("line", class_="edge", x1=x, x2=x, y1=strip.bottom, y2=strip.bottom + 4))
        kind = "day" if is_day else None
        parts.append(tag("text", label, class_=kind, x=x, y=strip.bottom + 18, text_anchor="middle"))
    local = plot.until.astimezone(zone)
    ends = f"until {local.day} {local:%b %Y, %H:%M %Z}"
    parts.append(tag("text", ends, x=plot.right, y=strip.bottom + 36, text_anchor="end"))
    return joined(*parts)


def _has_room(x: float, room: _Room) -> bool:
    """Whether the name of a moment there does not run out on the left; on the right there is room."""
    return x >= room.tick / 2 - 6


def _data(points: Sequence[Point], plot: Plot, bucket: timedelta) -> str:
    """Return what the script shows beside the crosshair: moments, places, numbers, and no text."""
    rows = [
        (
            round(one.start.timestamp()),
            round((one.start + bucket).timestamp()),
            round(plot.middle(one, bucket), 1),
            round(plot.y(one.mean), 1),
            round(one.mean, 4),
            None if one.low is None else round(one.low, 4),
            None if one.high is None else round(one.high, 4),
            one.n,
            int(one.enough),
        )
        for one in sorted(points, key=lambda one: (one.start, one.fingerprint))
    ]
    return json.dumps(rows, separators=(",", ":"))
