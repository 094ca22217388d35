"""Small charts beside one another, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from markupsafe import Markup

from germane.insights.charts import layers
from germane.insights.charts.frame import Picture, Plot, described
from germane.insights.charts.point import Point, floor_of, series_of


def small_chart(
    points: Sequence[Point],
    *,
    since: datetime,
    until: datetime,
    bucket: timedelta,
    baseline: float | None = None,
    baseline_name: str = "baseline",
    title: str,
    description: str = "",
    width: int = 300,
    height: int = 84,
    name: str = "small",
    floor: float | None = None,
) -> Markup:
    """Return a small picture of means over time, as SVG; arguments as of :func:`trend_chart`.

    Charts beside one another have one scale: give all the same ``floor`` where one of them may have means under 0.
    """
    edge = Plot(left=26, right=width - 6, top=7, bottom=height - 7, since=since, until=until)
    inside = [one for one in points if edge.shows(one, bucket)]
    low = floor_of(inside, baseline) if floor is None else floor
    plot = Plot(left=edge.left, right=edge.right, top=edge.top, bottom=edge.bottom, since=since, until=until, floor=low)
    words = description or described(inside, baseline, name=baseline_name)
    picture = Picture(width=width, height=height, title=title, description=words, name=name)
    series = series_of(inside)
    return picture.of(
        layers.bands_of(series, plot, bucket),
        layers.grid_of(plot, (low, (low + 1) / 2, 1.0)),
        Markup("") if baseline is None else layers.baseline_of(plot, baseline),
        layers.lines_of(series, plot, bucket, 2.4),
    )
