"""What lies over one another in a chart of time: bands, baseline, lines, dots, bars, marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise

from markupsafe import Markup

from germane.insights.charts.frame import Plot
from germane.insights.charts.point import Point, runs_of
from germane.insights.charts.svg import joined, shown, tag


def bands_of(series: Sequence[Sequence[Point]], plot: Plot, bucket: timedelta) -> Markup:
    """Return the 95 % intervals of all fingerprints: they lie under everything else."""
    return joined(*(_bands(run, plot, bucket) for one in series for run in runs_of(one, bucket)))


def lines_of(series: Sequence[Sequence[Point]], plot: Plot, bucket: timedelta, radius: float) -> Markup:
    """Return one line per fingerprint with its dots; all but the newest are set back."""
    drawn = [_line_of(one, plot, bucket, radius) for one in series]
    earlier = [tag("g", one, class_="earlier") for one in drawn[:-1]]
    return joined(*earlier, *drawn[-1:])


def _line_of(points: Sequence[Point], plot: Plot, bucket: timedelta, radius: float) -> Markup:
    path = " ".join(_path(run, plot, bucket) for run in runs_of(points, bucket) if len(run) > 1)
    line = tag("path", class_="line", d=path) if path else Markup("")
    return joined(line, *(_dot(point, plot, bucket, radius) for point in points))


def _path(points: Iterable[Point], plot: Plot, bucket: timedelta) -> str:
    return "M" + " L".join(_at(plot.middle(one, bucket), plot.y(one.mean)) for one in points)


def _at(x: float, y: float) -> str:
    return f"{shown(x)} {shown(y)}"


def _dot(point: Point, plot: Plot, bucket: timedelta, radius: float) -> Markup:
    kind = "dot" if point.enough else "dot thin"
    return tag("circle", class_=kind, cx=plot.middle(point, bucket), cy=plot.y(point.mean), r=radius)


def _bands(run: Sequence[Point], plot: Plot, bucket: timedelta) -> Markup:
    """Return the 95 % intervals: areas between neighbours, and a stroke for who has none that knows its own."""
    areas: list[tuple[bool, list[Point]]] = []
    for first, second in pairwise(run):
        thin = not (first.enough and second.enough)
        if not (_known(first) and _known(second)):
            continue
        if areas and areas[-1][0] == thin and areas[-1][1][-1] is first:
            areas[-1][1].append(second)
        else:
            areas.append((thin, [first, second]))
    inside = {id(one) for _, points in areas for one in points}
    alone = (one for one in run if _known(one) and id(one) not in inside)
    drawn = (_area(points, plot, bucket, thin=thin) for thin, points in areas)
    return joined(*drawn, *(_whisker(one, plot, bucket) for one in alone))


def _known(point: Point) -> bool:
    return point.low is not None and point.high is not None


def _area(points: Sequence[Point], plot: Plot, bucket: timedelta, *, thin: bool) -> Markup:
    """Return a polygon: along the upper ends, and back along the lower ones."""
    above = [_at(plot.middle(one, bucket), plot.y(one.high or 0.0)) for one in points]
    below = [_at(plot.middle(one, bucket), plot.y(one.low or 0.0)) for one in reversed(points)]
    return tag("path", class_="band thin" if thin else "band", d=f"M{' L'.join(above + below)}Z")


def _whisker(point: Point, plot: Plot, bucket: timedelta) -> Markup:
    x = plot.middle(point, bucket)
    ends = {"y1": plot.y(point.high or 0.0), "y2": plot.y(point.low or 0.0)}
    return tag("line", class_="whisker" if point.enough else "whisker thin", x1=x, x2=x, **ends)


def bars_of(points: Iterable[Point], plot: Plot, bucket: timedelta) -> tuple[Markup, int]:
    """Return bars of how many were scored by bucket, and the largest number."""
    counts: dict[Point, int] = {}
    at_start: dict[object, Point] = {}
    for point in points:
        first = at_start.setdefault(point.start, point)
        counts[first] = counts.get(first, 0) + point.n
    most = max(counts.values(), default=0)
    return joined(*(_bar(one, count / most, plot, bucket) for one, count in counts.items() if most)), most


def _bar(point: Point, share: float, plot: Plot, bucket: timedelta) -> Markup:
    left, right = plot.sides(point, bucket)
    inset, height = min((right - left) * 0.14, 6.0), max(1.0, (plot.bottom - plot.top) * share)
    size = {"width": right - left - 2 * inset, "height": height}
    return tag("rect", class_="bar-n", x=left + inset, y=plot.bottom - height, **size)


def grid_of(plot: Plot, levels: Iterable[float], digits: int = 1) -> Markup:
    """Return lines across, each with its score."""
    parts = []
    for level in levels:
        y = plot.y(level)
        parts.append(tag("line", class_="grid", x1=plot.left, x2=plot.right, y1=y, y2=y))
        name = f"{level:g}" if level == int(level) else f"{level:.{digits}f}"
        parts.append(tag("text", name.replace("-", "\u2212"), x=plot.left - 7, y=y + 4, text_anchor="end"))
    return joined(*parts)


def baseline_of(plot: Plot, level: float) -> Markup:
    """Return the dashed line."""
    y = plot.y(level)
    return tag("line", class_="baseline", x1=plot.left, x2=plot.right, y1=y, y2=y)
