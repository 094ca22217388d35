"""Charts of means over time as SVG: large charts with single answers, intervals and markers, and small charts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Final, Literal

from markupsafe import Markup

from germane.insights.charts.point import (
    ChartMarker,
    Dot,
    Plot,
    Point,
    Split,
    axis_floor,
    describe_points,
    merge_points,
    split_by_fingerprint,
)
from germane.insights.charts.svg import (
    Picture,
    PlacedLabel,
    axis_ticks,
    concat,
    fit_text,
    format_number,
    place_labels,
    safe_id,
    tag,
)
from germane.insights.formatting import format_number as format_score
from germane.insights.formatting import shorten

JUDGE_CHANGED: Final = "judge changed"
WIDE_FROM: Final = 700
"""Minimum width at which text fits next to the chart."""
_ROW_HEIGHT: Final = 17
BARS_HEIGHT: Final = 34
FOOT_HEIGHT: Final = 42
"""Height of the dates and the time zone below the bars."""
MAX_MARKS: Final = 800
"""Maximum number of marks for dots of one kind, which limits the size of the picture. The charts of a page share it."""
_DOT_SIZE: Final = 4
_MIN_SCALE: Final = 2
"""Minimum range of the axis of small charts, in tenths."""
_LABEL_PRIORITY: Final = {"alert": 0, "judge": 1, "deploy": 2}
"""Order in which kinds of markers get labels. Within a kind, newer markers come first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Margins and label sizes for a chart width."""

    left: float
    right: float
    font_size: float
    """Maximum font size. The style sheet may set a smaller one."""
    rows: int
    tick_width: float


WIDE: Final = Layout(left=36, right=86, font_size=15, rows=3, tick_width=84)


NARROW: Final = Layout(left=30, right=57, font_size=13, rows=2, tick_width=62)


@dataclass(frozen=True, slots=True)
class Flag:
    """A marker in a chart: a vertical line, with a label above the plot if there is space."""

    marker: ChartMarker
    label: PlacedLabel | None

    def draw_line(self, plot: Plot, strip: Plot) -> Markup:
        """Draw the line from the label, or from the top of the plot, to the bottom of the bars."""
        x, y1 = plot.x(self.marker.at), plot.top if self.label is None else 5.0 + _ROW_HEIGHT * self.label.row
        return tag("line", class_=f"mark {self.marker.kind}", x1=x, x2=x, y1=y1, y2=strip.bottom)

    def draw_label(self, root: str) -> Markup:
        """Draw the label, as a link if the marker has one."""
        if self.label is None:
            return Markup("")
        y = 16 + _ROW_HEIGHT * self.label.row
        text = tag("text", self.label.text, class_=self.marker.kind, x=self.label.x, y=y, text_anchor=self.label.anchor)
        return tag("a", text, href=f"{root}{self.marker.href}") if self.marker.href else text


def place_flags(markers: Iterable[ChartMarker], plot: Plot, layout: Layout, *, right: float) -> list[Flag]:
    """Return the flags of the markers in the window. The most important markers get labels first."""
    inside = [marker for marker in markers if plot.since <= marker.at <= plot.until]
    inside.sort(key=lambda marker: (_LABEL_PRIORITY[marker.kind], -marker.at.timestamp()))
    wanted = [(plot.x(marker.at), marker.label) for marker in inside]
    labels = place_labels(wanted, plot.left, right, rows=layout.rows, size=layout.font_size)
    return [Flag(marker, label) for marker, label in zip(inside, labels, strict=True)]


@dataclass(frozen=True, slots=True)
class LabeledBand:
    """The interval of the mean label of a window, as people see the answers."""

    since: datetime
    until: datetime
    low: float
    high: float
    mean: float
    is_outdated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendChart:
    """A chart of means over time."""

    points: Sequence[Point]
    """The means. Points outside the window are omitted, and time without a point is a gap."""
    since: datetime
    until: datetime
    bucket: timedelta
    title: str
    """The accessible name."""
    name: str
    """Id of the chart, unique on the page."""
    zone: tzinfo | None = None
    """Time zone for dates, or None for the time zone of this machine."""
    baseline: float | None = None
    """Level of the baseline, drawn as a dashed line."""
    baseline_name: str = "baseline"
    """One word, optionally followed by a version and a period, as in "baseline 2, 13 Nov to 18 Nov"."""
    markers: Sequence[ChartMarker] = ()
    root: str = ""
    """Prefix of every link."""
    points_name: str = "mean"
    answers: str = ""
    """Path and query of the list of answers behind the points, without a time range. Empty for no links."""
    failing: Sequence[Point] = ()
    """The points of the route that fell most, drawn over the service's points."""
    failing_name: str = ""
    second_kind: Literal["failing", "earlier"] = "failing"
    """Style of the second series: a route that fell, or the old version in a comparison."""
    dots: Sequence[Dot] = ()
    has_dots: bool = False
    """Whether single answers are drawn, instead of bars for the number of scores."""
    is_sample: bool = False
    """Whether the dots are only a sample of the answers and the lowest ones."""
    max_marks: int = MAX_MARKS
    """Maximum number of marks for dots of one kind."""
    split: Split | None = None
    labeled: LabeledBand | None = None
    is_secondary: bool = False
    """Whether the chart is drawn once, for half the width of a page, instead of for wide and for narrow screens."""

    @property
    def short_baseline_name(self) -> str:
        """The first word of the baseline's name."""
        return self.baseline_name.partition(",")[0].partition(" ")[0]

    def within_window(self) -> TrendChart:
        """Return the chart without what is outside its window."""
        points, failing = (
            [point for point in some if point.start < self.until and point.until(self.bucket) > self.since]
            for some in (self.points, self.failing)
        )
        dots = [dot for dot in self.dots if self.since <= dot.at < self.until]
        return replace(self, points=points, failing=failing, dots=dots)


def trend_svg(
    chart: TrendChart, *, css_class: str = "", width: int = 1100, height: int = 320, has_values: bool = True
) -> Markup:
    """Return a chart of means over time, which the page scales. Charts at least 700 wide have text next to the plot.

    The script shows values next to the crosshair, which only one picture of a figure has.
    """
    layout, chart = WIDE if width >= WIDE_FROM else NARROW, chart.within_window()
    edge = Plot(left=layout.left, right=width - layout.right, top=0, bottom=0, since=chart.since, until=chart.until)
    changes = [ChartMarker(point.start, JUDGE_CHANGED, "judge") for point in chart.points if point.judge_changed]
    flags = place_flags((*chart.markers, *changes), edge, layout, right=width - 2)
    rows = max((flag.label.row + 1 for flag in flags if flag.label), default=0) + (chart.split is not None)
    strip_height = BARS_HEIGHT * (not chart.has_dots or any(dot.is_refusal for dot in chart.dots))
    strip = replace(edge, top=height - FOOT_HEIGHT - strip_height, bottom=height - FOOT_HEIGHT)
    floor = axis_floor([*chart.points, *chart.failing], chart.baseline, chart.dots)
    plot = replace(edge, top=10 + _ROW_HEIGHT * rows, bottom=strip.top - 12, floor=floor)
    shades, levels = draw_split(chart.split, f"{chart.name}-{css_class}", plot, strip)
    bands, lines = draw_steps(chart.points, plot, chart.bucket)
    second = draw_steps(merge_points(chart.failing, chart.bucket), plot, chart.bucket)[1]
    picture = Picture(
        width=width,
        height=height,
        title=chart.title,
        description=describe_points(
            chart.points, chart.baseline, chart.markers, name=chart.short_baseline_name, split=chart.split
        ),
        name=f"{chart.name}-{css_class}",
        css_class=css_class,
        has_links=any(flag.marker.href and flag.label for flag in flags),
    )
    return picture.render(
        shades,
        draw_labeled_band(chart.labeled, plot),
        bands,
        draw_time_axis(plot, strip, layout, chart.zone),
        Markup("") if chart.has_dots else draw_bars(chart.points, strip, chart.bucket, layout),
        draw_grid(plot, plot.levels),
        draw_dots(chart.dots, plot, strip, chart.max_marks),
        *(flag.draw_line(plot, strip) for flag in flags),
        _draw_labeled_baseline(plot, chart.baseline, chart.short_baseline_name, layout),
        levels,
        lines,
        tag("g", second, class_=chart.second_kind) if second else second,
        *(flag.draw_label(chart.root) for flag in flags),
        data=_point_data(chart) if has_values else None,
        data_failing=shorten(chart.failing_name, 60) if chart.failing else None,
        data_plot=f"{plot.left:g},{plot.right:g},{chart.since.timestamp():.0f},{chart.until.timestamp():.0f},"
        f"{plot.top:g},{plot.bottom:g},{plot.floor:g}",
        data_answers=f"{chart.root}{chart.answers}" if chart.answers else None,
    )


def draw_split(split: Split | None, name: str, plot: Plot, strip: Plot) -> tuple[Markup, Markup]:
    """Shade the time before and since, with a soft edge over the interval of the moment, and write the means above."""
    if split is None:
        return Markup(""), Markup("")
    first, last = (plot.x(moment) for moment in split.interval or (split.at, split.at))
    place, id_ = {"y": plot.top, "height": strip.bottom - plot.top}, f"{safe_id(name)}-edge"
    worse = " worse" if split.is_worse else ""
    shaded = [tag("rect", class_="side old", x=plot.left, width=first - plot.left, **place)]
    shaded.append(tag("rect", class_="side new", x=last, width=plot.right - last, **place))
    if last > first:
        stops = [tag("stop", offset=number, class_=name) for number, name in enumerate(("old", "new"))]
        shaded.append(tag("linearGradient", *stops, id=id_))
        shaded.append(tag("rect", fill=f"url(#{id_})", x=first, width=last - first, **place))
    written, x = [], plot.x(split.at)
    for level, ends, anchor in ((split.before, (plot.left, x), "start"), (split.since, (x, plot.right), "end")):
        if level is not None:
            y, at = plot.y(level.mean), ends[anchor == "end"]
            written.append(tag("line", class_="level", x1=ends[0], x2=ends[1], y1=y, y2=y))
            text = f"{level.name} {format_score(level.mean)} (n={level.n:,})"
            written.append(tag("text", text, class_=f"level {anchor}", x=at, y=plot.top - 6, text_anchor=anchor))
    return tag("g", *shaded, class_=f"split{worse}"), tag("g", *written, class_=f"levels{worse}")


def draw_labeled_band(band: LabeledBand | None, plot: Plot) -> Markup:
    """Draw the interval of the mean label over the labeled window, if it overlaps the chart's window."""
    if band is None or band.until <= plot.since or band.since >= plot.until:
        return Markup("")
    left, right = plot.x(max(band.since, plot.since)), plot.x(min(band.until, plot.until))
    top, bottom, y = (plot.y(value) for value in (band.high, band.low, band.mean))
    text = tag("text", "according to people", x=left + 3, y=top - 4 if top > plot.top + 14 else bottom + 13)
    area = tag("rect", x=left, width=right - left, y=top, height=max(1.0, bottom - top))
    line = tag("line", x1=left, x2=right, y1=y, y2=y)
    return tag("g", area, line, text, class_="people outdated" if band.is_outdated else "people")


def draw_dots(dots: Sequence[Dot], plot: Plot, strip: Plot, max_marks: int) -> Markup:
    """Draw single answers, the low ones above the others. Refusals have a line of their own below the scores."""
    kinds: dict[str, list[tuple[float, float]]] = {"dots": [], "dots low": [], "dots refusal": []}
    y, width, length = strip.bottom - 9, plot.right - plot.left, plot.until - plot.since
    for dot in dots:  # thousands, all of which are in the window
        kind = "dots refusal" if dot.is_refusal else "dots low" if dot.is_low else "dots"
        x = plot.left + width * ((dot.at - plot.since) / length)
        kinds[kind].append((x, y if dot.is_refusal else plot.y(dot.value)))
    refusals = kinds.pop("dots refusal")
    parts = [draw_marks(points, kind, max_marks) for kind, points in kinds.items()]
    if refusals:
        parts.append(draw_marks(refusals, "dots refusal", max_marks, y=y))
        parts.append(tag("text", "refusals", x=strip.left + 3, y=strip.top + 10))
    return concat(*parts)


def draw_marks(
    points: Sequence[tuple[float, float]], css_class: str, max_marks: int, *, y: float | None = None
) -> Markup:
    """Draw points as one path. Points in the same cell of a grid are drawn once, neighboring cells as one line.

    The grid is as fine as ``max_marks`` allows, so that the picture has a limited size, and no point is omitted.
    """
    size = 2
    while len(runs := _vertical_runs(points, size)) > max_marks:
        size *= 2
    path, at = "", (0.0, 0.0)
    for column, row, count in runs:
        left, top = column * size + size // 2, row * size + size // 2 if y is None else y
        height = (count - 1) * size if y is None else 0
        path += f"m{left - at[0]:g}{top - at[1]:+g}v{height}"  # relative to the previous mark, which is shorter
        at = left, top + height
    return tag("path", class_=css_class, d=path, stroke_width=max(_DOT_SIZE, size)) if path else Markup("")


def _vertical_runs(points: Iterable[tuple[float, float]], size: int) -> list[tuple[int, int, int]]:
    """Return the cells of a grid that contain points, as column, first row, and number of adjacent rows."""
    runs: list[tuple[int, int, int]] = []
    for column, row in sorted({(int(x // size), int(y // size)) for x, y in points}):
        if runs and runs[-1][0] == column and runs[-1][1] + runs[-1][2] == row:
            runs[-1] = (column, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((column, row, 1))
    return runs


def shared_scale(charts: Iterable[TrendChart]) -> tuple[float, float]:
    """Return the ends of the axis of adjacent small charts: all their means and baselines, in steps of 0.1."""
    values = [point.mean for chart in charts for point in merge_points(chart.points, chart.bucket)]
    values += [chart.baseline for chart in charts if chart.baseline is not None]
    low, high = math.floor(10 * min(values, default=0) + 1e-6), math.ceil(10 * max(values, default=1) - 1e-6)
    while high - low < _MIN_SCALE:
        low, high = (low - 1, high) if low > 0 or high == 10 else (low, high + 1)
    return low / 10, high / 10


def sparkline_svg(chart: TrendChart, *, scale: tuple[float, float]) -> Markup:
    """Return a small chart of means over time, shaded where it differs from the baseline.

    Adjacent charts have the same scale, the lower and upper end of the axis; see :func:`shared_scale`.
    """
    width, height, (floor, ceiling) = 300, 84, scale
    edge = Plot(left=30, right=width - 6, top=8, bottom=height - 8, since=chart.since, until=chart.until)
    plot = replace(edge, floor=floor, ceiling=ceiling)
    inside = merge_points(chart.within_window().points, chart.bucket)
    areas: dict[str, list[str]] = {"above": [], "below": []}
    for point in inside if chart.baseline is not None else ():
        left, right = map(format_number, plot.sides(point, chart.bucket))
        base, y = (format_number(plot.y(value)) for value in (chart.baseline or 0.0, point.mean))
        side = "below" if point.mean < (chart.baseline or 0.0) else "above"
        areas[side].append(f"M{left} {base}H{right}V{y}H{left}Z")
    text = describe_points(inside, chart.baseline, name=chart.short_baseline_name, scale=scale)
    return Picture(width=width, height=height, title=chart.title, description=text, name=chart.name).render(
        *(tag("path", class_=f"area {side}", d="".join(d)) for side, d in areas.items() if d),
        draw_grid(plot, (floor, ceiling)),
        Markup("") if chart.baseline is None else draw_baseline(plot, chart.baseline),
        draw_steps(inside, plot, chart.bucket)[1],
    )


def _draw_labeled_baseline(plot: Plot, level: float | None, name: str, layout: Layout) -> Markup:
    """Draw the baseline, if any, as a dashed line, labeled with its level and, on a wide chart, its name."""
    if level is None:
        return Markup("")
    y = plot.y(level)
    number = tag("text", f"{level:z.2f}".replace("-", "\u2212"), x=plot.right + 6, y=y + 4)
    name_y = y - 11 if y >= 22 else y + 19  # near the upper edge, the name goes below the number
    word = tag("text", name, x=plot.right + 6, y=name_y) if layout is WIDE else Markup("")
    return concat(draw_baseline(plot, level), word, number)


def draw_time_axis(plot: Plot, strip: Plot, layout: Layout, zone: tzinfo | None) -> Markup:
    """Draw the time axis below the bars, with dates and the end of the window."""
    limit = int((plot.right - plot.left) // layout.tick_width)
    parts, path = [], f"M{format_number(plot.left)} {format_number(strip.bottom)}H{format_number(plot.right)}"
    for at, label, is_day in axis_ticks(plot.since, plot.until, zone, limit):
        x = plot.x(at)
        if x < layout.tick_width / 2 - 6:  # the label would extend past the left edge of the picture
            continue
        path += f"M{format_number(x)} {format_number(strip.bottom)}v4"
        parts.append(tag("text", label, class_="day" if is_day else None, x=x, y=strip.bottom + 18))
    local = plot.until.astimezone(zone)
    end = f"until {local.day} {local:%b %Y, %H:%M %Z}"
    until = tag("text", end, x=plot.right, y=strip.bottom + 36, text_anchor="end")
    return concat(tag("path", class_="edge", d=path), tag("g", *parts, text_anchor="middle"), until)


def _point_data(chart: TrendChart) -> str:
    """Return the values that the script shows next to the crosshair, as JSON rows of numbers.

    Each row begins with the seconds from the start of the chart to that of the point, and with the point's length.
    """
    of_route = {(point.start, point.fingerprint): (round(point.mean, 4), point.n) for point in chart.failing}
    since = round(chart.since.timestamp())
    rows = [
        (
            round(point.start.timestamp()) - since,
            round((point.until(chart.bucket) - point.start).total_seconds()),
            round(point.mean, 4),
            None if point.low is None else round(point.low, 4),
            None if point.high is None else round(point.high, 4),
            point.n,
            *of_route.get((point.start, point.fingerprint), ()),
        )
        for point in sorted(chart.points, key=lambda point: (point.start, point.fingerprint))
    ]
    return json.dumps(rows, separators=(",", ":"))


def draw_steps(points: Iterable[Point], plot: Plot, bucket: timedelta) -> tuple[Markup, Markup]:
    """Return the 95% intervals, which go below everything else, and the means as steps.

    Steps of adjacent buckets are connected. Those with few scores are drawn thin, and those of earlier judges dimmed.
    """
    bands, lines = [], []
    series = split_by_fingerprint(points)
    for line in series:
        areas: dict[str, list[str]] = {"": [], " thin": []}
        paths: dict[str, list[str]] = {"": [], " thin": []}
        pen = ("", "")
        for previous, point in zip([None, *line], line, strict=False):
            left, right = map(format_number, plot.sides(point, bucket))
            y, few = format_number(plot.y(point.mean)), "" if point.has_min_samples else " thin"
            is_adjacent = previous is not None and point.start <= previous.until(bucket)
            before = format_number(plot.y(previous.mean)) if previous and is_adjacent else y
            begin = "" if pen == (few, f"{left} {before}") else f"M{left} {before}"
            paths[few].append(begin + (f"V{y}" if is_adjacent else "") + f"H{right}")
            pen = few, f"{right} {y}"
            if point.low is not None and point.high is not None:
                top, bottom = (format_number(plot.y(value)) for value in (point.high, point.low))
                areas[few].append(f"M{left} {top}H{right}V{bottom}H{left}Z")
        bands += [tag("path", class_=f"band{each}", d="".join(d)) for each, d in areas.items() if d]
        drawn = concat(*(tag("path", class_=f"line{each}", d="".join(d)) for each, d in paths.items() if d))
        lines.append(drawn if line is series[-1] else tag("g", drawn, class_="earlier"))
    return concat(*bands), concat(*lines)


def draw_bars(points: Iterable[Point], plot: Plot, bucket: timedelta, layout: Layout) -> Markup:
    """Draw bars for the number of scores in each bucket, labeled with "n" and the largest, such as "58" or "3.4M"."""
    counts: dict[Point, int] = {}
    first_at: dict[object, Point] = {}
    for point in points:
        first = first_at.setdefault(point.start, point)
        counts[first] = counts.get(first, 0) + point.n
    largest = max(counts.values(), default=0)
    parts = [tag("text", "n", x=plot.left - 7, y=plot.bottom - 2, text_anchor="end")]
    bars = [(point, (plot.bottom - plot.top) * (count / largest)) for point, count in counts.items() if largest]
    parts.append(draw_columns(bars, plot, bucket, "bar-n"))
    size_, unit = next(((size, unit) for size, unit in ((1_000_000, "M"), (1_000, "k")) if largest >= size), (1, ""))
    compact = f"{largest / size_:.{int(largest < 10 * size_)}f}".removesuffix(".0") + unit
    text = fit_text(f"\u2264{compact}", layout.right - 8, layout.font_size)
    return concat(*parts, tag("text", text, x=plot.right + 6, y=plot.top + 10))


def draw_columns(bars: Iterable[tuple[Point, float]], plot: Plot, bucket: timedelta, css_class: str) -> Markup:
    """Draw bars of the given heights, at least one unit high, as one path."""
    path = ""
    for point, height in bars:
        left, right = plot.sides(point, bucket)
        inset, up = min((right - left) * 0.14, 6.0), format_number(max(1.0, height))
        width = format_number(right - left - 2 * inset)
        path += f"M{format_number(left + inset)} {format_number(plot.bottom)}v-{up}h{width}v{up}"
    return tag("path", class_=css_class, d=path) if path else Markup("")


def _name_level(level: float) -> str:
    return (f"{level:g}" if level == int(level) else f"{level:.1f}").replace("-", "\u2212")


def draw_grid(plot: Plot, levels: Iterable[float], name: Callable[[float], str] = _name_level) -> Markup:
    """Draw horizontal lines, each labeled with its name."""
    path, names = "", []
    for level in levels:
        y = plot.y(level)
        path += f"M{format_number(plot.left)} {format_number(y)}H{format_number(plot.right)}"
        names.append(tag("text", name(level), x=plot.left - 7, y=y + 4))
    return concat(tag("path", class_="grid", d=path), tag("g", *names, text_anchor="end"))


def draw_baseline(plot: Plot, level: float) -> Markup:
    """Draw the baseline as a dashed line."""
    y = plot.y(level)
    return tag("line", class_="baseline", x1=plot.left, x2=plot.right, y1=y, y2=y)
