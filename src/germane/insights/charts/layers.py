"""Layers of a chart over time: interval bands, baseline, lines, dots and bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise

from markupsafe import Markup

from germane.insights.charts.point import Plot, Point, split_at_gaps
from germane.insights.charts.svg import concat, format_attribute, tag


def draw_bands(series: Sequence[Sequence[Point]], plot: Plot, bucket: timedelta) -> Markup:
    """Return the 95 % intervals of all fingerprints, drawn below everything else."""
    return concat(*(_draw_run(run, plot, bucket) for line in series for run in split_at_gaps(line, bucket)))


def _draw_run(run: Sequence[Point], plot: Plot, bucket: timedelta) -> Markup:
    """Return areas between neighboring points with intervals, and whiskers for isolated points."""
    areas: list[tuple[bool, list[Point]]] = []
    for first, second in pairwise(run):
        if not (_has_interval(first) and _has_interval(second)):
            continue
        is_thin = not (first.has_min_samples and second.has_min_samples)
        if areas and areas[-1][0] == is_thin and areas[-1][1][-1] is first:
            areas[-1][1].append(second)
        else:
            areas.append((is_thin, [first, second]))
    parts = []
    for is_thin, points in areas:
        upper = [_coordinates(plot.middle(point, bucket), plot.y(point.high or 0.0)) for point in points]
        lower = [_coordinates(plot.middle(point, bucket), plot.y(point.low or 0.0)) for point in reversed(points)]
        parts.append(tag("path", class_="band thin" if is_thin else "band", d=f"M{' L'.join(upper + lower)}Z"))
    covered = {id(point) for _, points in areas for point in points}
    for point in run:
        if _has_interval(point) and id(point) not in covered:
            x = plot.middle(point, bucket)
            css_class = "whisker" if point.has_min_samples else "whisker thin"
            ends = {"y1": plot.y(point.high or 0.0), "y2": plot.y(point.low or 0.0)}
            parts.append(tag("line", class_=css_class, x1=x, x2=x, **ends))
    return concat(*parts)


def _has_interval(point: Point) -> bool:
    return point.low is not None and point.high is not None


def _coordinates(x: float, y: float) -> str:
    return f"{format_attribute(x)} {format_attribute(y)}"


def draw_lines(series: Sequence[Sequence[Point]], plot: Plot, bucket: timedelta, radius: float) -> Markup:
    """Return one line with dots per fingerprint. All but the newest are dimmed."""
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
    """Return bars with the number of scores per bucket, and the largest number."""
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
    """Return horizontal lines, each labeled with its score."""
    parts = []
    for level in levels:
        y = plot.y(level)
        parts.append(tag("line", class_="grid", x1=plot.left, x2=plot.right, y1=y, y2=y))
        name = f"{level:g}" if level == int(level) else f"{level:.1f}"
        parts.append(tag("text", name.replace("-", "\u2212"), x=plot.left - 7, y=y + 4, text_anchor="end"))
    return concat(*parts)


def draw_baseline(plot: Plot, level: float) -> Markup:
    """Return the dashed line."""
    y = plot.y(level)
    return tag("line", class_="baseline", x1=plot.left, x2=plot.right, y1=y, y2=y)
