"""Charts of means over time as SVG: large charts with intervals, counts and markers, and sparklines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from germane.insights.charts.point import (
    ChartMarker,
    Plot,
    Point,
    axis_floor,
    describe_points,
    split_at_gaps,
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
    tag,
)
from germane.insights.formatting import shorten

JUDGE_CHANGED: Final = "judge changed"
WIDE_FROM: Final = 700
"""Minimum width at which text fits next to the chart."""
_ROW_HEIGHT: Final = 17
BARS_HEIGHT: Final = 34
FOOT_HEIGHT: Final = 42
"""Height of the dates and the time zone below the bars."""
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


NARROW: Final = Layout(left=30, right=44, font_size=13, rows=2, tick_width=62)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendChart:
    """A chart of means over time."""

    points: Sequence[Point]
    """The means. Points outside the window are omitted, and buckets without a point are gaps."""
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
    answers: str = ""
    """Path and query of the list of answers behind the points, without a time range. Empty for no links."""
    failing: Sequence[Point] = ()
    """The points of the route that fell most, drawn over the service's points."""
    failing_name: str = ""

    @property
    def short_baseline_name(self) -> str:
        """The first word of the baseline's name."""
        return self.baseline_name.partition(",")[0].partition(" ")[0]


def trend_svg(chart: TrendChart, *, css_class: str = "", width: int = 1100, height: int = 320) -> Markup:
    """Return a chart of means over time, which the page scales. Charts at least 700 wide have text next to the plot."""
    layout = WIDE if width >= WIDE_FROM else NARROW
    edge = Plot(left=layout.left, right=width - layout.right, top=0, bottom=0, since=chart.since, until=chart.until)
    inside = [point for point in chart.points if edge.shows(point, chart.bucket)]
    changes = [ChartMarker(point.start, JUDGE_CHANGED, "judge") for point in inside if point.judge_changed]
    flags = place_flags((*chart.markers, *changes), edge, layout, right=width - 2)
    top = 10 + _ROW_HEIGHT * max((flag.label.row + 1 for flag in flags if flag.label), default=0)
    fallen = [point for point in chart.failing if edge.shows(point, chart.bucket)]
    low = axis_floor([*inside, *fallen], chart.baseline)
    plot = replace(edge, top=top, bottom=height - FOOT_HEIGHT - BARS_HEIGHT - 12, floor=low)
    strip = replace(edge, top=height - FOOT_HEIGHT - BARS_HEIGHT, bottom=height - FOOT_HEIGHT)
    bars, largest = draw_bars(inside, strip, chart.bucket)
    picture = Picture(
        width=width,
        height=height,
        title=chart.title,
        description=describe_points(inside, chart.baseline, chart.markers, name=chart.short_baseline_name),
        name=f"{chart.name}-{css_class}",
        css_class=css_class,
        has_links=any(flag.marker.href and flag.label for flag in flags),
    )
    series = split_by_fingerprint(inside)
    return picture.render(
        draw_bands(series, plot, chart.bucket),
        draw_time_axis(plot, strip, layout, chart.zone),
        bars,
        draw_count_axis(strip, largest, layout),
        draw_grid(plot, plot.levels),
        *(flag.draw_line(plot, strip) for flag in flags),
        Markup("")
        if chart.baseline is None
        else _draw_labeled_baseline(plot, chart.baseline, chart.short_baseline_name, layout),
        draw_lines(series, plot, chart.bucket, 3.2),
        tag("g", draw_lines(split_by_fingerprint(fallen), plot, chart.bucket, 2.4), class_="failing")
        if fallen
        else Markup(""),
        *(flag.draw_label(chart.root) for flag in flags),
        data=_point_data(inside, plot, chart.bucket, fallen),
        data_failing=shorten(chart.failing_name, 60) if fallen else None,
        data_plot=f"{plot.left:g},{plot.right:g},{chart.since.timestamp():.0f},{chart.until.timestamp():.0f}",
        data_answers=f"{chart.root}{chart.answers}" if chart.answers else None,
    )


def sparkline_svg(chart: TrendChart, *, floor: float) -> Markup:
    """Return a small chart of means over time.

    Adjacent charts have the same scale if they have the same ``floor``, the lower end of the axis: 0, or -1 if a mean
    may be negative.
    """
    width, height = 300, 84
    edge = Plot(left=26, right=width - 6, top=7, bottom=height - 7, since=chart.since, until=chart.until)
    inside = [point for point in chart.points if edge.shows(point, chart.bucket)]
    plot = replace(edge, floor=floor)
    text = describe_points(inside, chart.baseline, name=chart.short_baseline_name)
    series = split_by_fingerprint(inside)
    return Picture(width=width, height=height, title=chart.title, description=text, name=chart.name).render(
        draw_bands(series, plot, chart.bucket),
        draw_grid(plot, (floor, (floor + 1) / 2, 1.0)),
        Markup("") if chart.baseline is None else draw_baseline(plot, chart.baseline),
        draw_lines(series, plot, chart.bucket, 2.4),
    )


def draw_count_axis(strip: Plot, largest: int, layout: Layout) -> Markup:
    """Label the bars with "n" and the largest number, such as "58", "12k" or "3.4M"."""
    compact = str(largest)
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if largest >= size:
            compact = f"{largest / size:.1f}".removesuffix(".0") + unit
            break
    name = tag("text", "n", x=strip.left - 7, y=strip.bottom - 2, text_anchor="end")
    text = fit_text(f"\u2264 {compact}", layout.right - 8, layout.font_size)
    return concat(name, tag("text", text, x=strip.right + 6, y=strip.top + 10))


def _draw_labeled_baseline(plot: Plot, level: float, name: str, layout: Layout) -> Markup:
    """Draw the baseline as a dashed line, labeled with its level and, on a wide chart, its name."""
    y = plot.y(level)
    number = tag("text", f"{level:.2f}".replace("-", "\u2212"), x=plot.right + 6, y=y + 4)
    name_y = y - 11 if y >= 22 else y + 19  # near the upper edge, the name goes below the number
    word = tag("text", name, x=plot.right + 6, y=name_y) if layout is WIDE else Markup("")
    return concat(draw_baseline(plot, level), word, number)


def draw_time_axis(plot: Plot, strip: Plot, layout: Layout, zone: tzinfo | None) -> Markup:
    """Draw the time axis below the bars, with dates and the end of the window."""
    limit = int((plot.right - plot.left) // layout.tick_width)
    parts = [tag("line", class_="edge", x1=plot.left, x2=plot.right, y1=strip.bottom, y2=strip.bottom)]
    for at, label, is_day in axis_ticks(plot.since, plot.until, zone, limit):
        x = plot.x(at)
        if x < layout.tick_width / 2 - 6:  # the label would extend past the left edge of the picture
            continue
        parts.append(tag("line", class_="edge", x1=x, x2=x, y1=strip.bottom, y2=strip.bottom + 4))
        css_class = "day" if is_day else None
        parts.append(tag("text", label, class_=css_class, x=x, y=strip.bottom + 18, text_anchor="middle"))
    local = plot.until.astimezone(zone)
    end = f"until {local.day} {local:%b %Y, %H:%M %Z}"
    parts.append(tag("text", end, x=plot.right, y=strip.bottom + 36, text_anchor="end"))
    return concat(*parts)


def _point_data(points: Sequence[Point], plot: Plot, bucket: timedelta, failing: Sequence[Point] = ()) -> str:
    """Return the values that the script shows next to the crosshair, as JSON rows of numbers."""
    of_route = {(point.start, point.fingerprint): (round(point.mean, 4), point.n) for point in failing}
    rows = [
        (
            round(point.start.timestamp()),
            round((point.start + bucket).timestamp()),
            round(plot.middle(point, bucket), 1),
            round(plot.y(point.mean), 1),
            round(point.mean, 4),
            None if point.low is None else round(point.low, 4),
            None if point.high is None else round(point.high, 4),
            point.n,
            int(point.has_min_samples),
            *of_route.get((point.start, point.fingerprint), ()),
        )
        for point in sorted(points, key=lambda point: (point.start, point.fingerprint))
    ]
    return json.dumps(rows, separators=(",", ":"))


def draw_bands(series: Sequence[Sequence[Point]], plot: Plot, bucket: timedelta) -> Markup:
    """Draw the 95% intervals of all series. They go below everything else."""
    return concat(*(_draw_run(run, plot, bucket) for line in series for run in split_at_gaps(line, bucket)))


def _draw_run(run: Sequence[Point], plot: Plot, bucket: timedelta) -> Markup:
    """Draw an area between adjacent points that have intervals, and whiskers for isolated points."""
    areas, parts = _band_areas(run), []
    for is_thin, points in areas:
        placed = [(plot.middle(point, bucket), point) for point in points]
        upper = [_coordinates(x, plot.y(point.high or 0.0)) for x, point in placed]
        lower = [_coordinates(x, plot.y(point.low or 0.0)) for x, point in reversed(placed)]
        parts.append(tag("path", class_="band thin" if is_thin else "band", d=f"M{' L'.join(upper + lower)}Z"))
    covered = {id(point) for _, points in areas for point in points}
    for point in run:
        if _has_interval(point) and id(point) not in covered:
            x = plot.middle(point, bucket)
            css_class = "whisker" if point.has_min_samples else "whisker thin"
            ends = {"y1": plot.y(point.high or 0.0), "y2": plot.y(point.low or 0.0)}
            parts.append(tag("line", class_=css_class, x1=x, x2=x, **ends))
    return concat(*parts)


def _band_areas(run: Sequence[Point]) -> list[tuple[bool, list[Point]]]:
    """Divide a run into areas of adjacent points with intervals, each with whether it has few scores."""
    areas: list[tuple[bool, list[Point]]] = []
    for first, second in pairwise(run):
        if not (_has_interval(first) and _has_interval(second)):
            continue
        is_thin = not (first.has_min_samples and second.has_min_samples)
        if areas and areas[-1][0] == is_thin and areas[-1][1][-1] is first:
            areas[-1][1].append(second)
        else:
            areas.append((is_thin, [first, second]))
    return areas


def _has_interval(point: Point) -> bool:
    return point.low is not None and point.high is not None


def _coordinates(x: float, y: float) -> str:
    return f"{format_number(x)} {format_number(y)}"


def draw_lines(series: Sequence[Sequence[Point]], plot: Plot, bucket: timedelta, radius: float) -> Markup:
    """Draw one line with dots per series. All but the newest series are dimmed."""
    lines = []
    for points in series:
        path = " ".join(
            "M" + " L".join(_coordinates(plot.middle(point, bucket), plot.y(point.mean)) for point in run)
            for run in split_at_gaps(points, bucket)
            if len(run) > 1
        )
        dots = [
            tag(
                "circle",
                class_="dot" if point.has_min_samples else "dot thin",
                cx=plot.middle(point, bucket),
                cy=plot.y(point.mean),
                r=radius,
            )
            for point in points
        ]
        lines.append(concat(tag("path", class_="line", d=path) if path else Markup(""), *dots))
    return concat(*(tag("g", line, class_="earlier") for line in lines[:-1]), *lines[-1:])


def draw_bars(points: Iterable[Point], plot: Plot, bucket: timedelta) -> tuple[Markup, int]:
    """Return bars for the number of scores in each bucket, and the largest number."""
    counts: dict[Point, int] = {}
    first_at: dict[object, Point] = {}
    for point in points:
        first = first_at.setdefault(point.start, point)
        counts[first] = counts.get(first, 0) + point.n
    largest = max(counts.values(), default=0)
    bars = []
    for point, count in counts.items() if largest else ():
        left, right = plot.sides(point, bucket)
        inset, height = min((right - left) * 0.14, 6.0), max(1.0, (plot.bottom - plot.top) * (count / largest))
        size = {"width": right - left - 2 * inset, "height": height}
        bars.append(tag("rect", class_="bar-n", x=left + inset, y=plot.bottom - height, **size))
    return concat(*bars), largest


def draw_grid(plot: Plot, levels: Iterable[float]) -> Markup:
    """Draw horizontal lines, each labeled with its score."""
    parts = []
    for level in levels:
        y = plot.y(level)
        parts.append(tag("line", class_="grid", x1=plot.left, x2=plot.right, y1=y, y2=y))
        name = f"{level:g}" if level == int(level) else f"{level:.1f}"
        parts.append(tag("text", name.replace("-", "\u2212"), x=plot.left - 7, y=y + 4, text_anchor="end"))
    return concat(*parts)


def draw_baseline(plot: Plot, level: float) -> Markup:
    """Draw the baseline as a dashed line."""
    y = plot.y(level)
    return tag("line", class_="baseline", x1=plot.left, x2=plot.right, y1=y, y2=y)
