"""Charts of amounts over time, such as durations and costs, on an axis from 0 to a round number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Final, Literal

from markupsafe import Markup

from germane.insights.charts.figure import describe_bucket, details, format_time, legend, table
from germane.insights.charts.point import Plot, Point
from germane.insights.charts.svg import Picture, concat, tag
from germane.insights.charts.trend import (
    BARS_HEIGHT,
    FOOT_HEIGHT,
    NARROW,
    draw_bars,
    draw_columns,
    draw_grid,
    draw_steps,
    draw_time_axis,
)
from germane.insights.formatting import link_window
from germane.score import MIN_SAMPLES

_LEFT: Final = 68.0
"""Width of the axis labels, which have units."""
_SIZE: Final = (440, 230)
"""Width and height of the view box, which the page scales to half its width, or to a narrow screen."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in one bucket."""

    start: datetime
    """Start of the bucket, with a time zone."""
    value: float
    """At least 0."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountChart:
    """A chart of one or two amounts over time."""

    series: Sequence[tuple[str, Sequence[Amount]]]
    """Names and amounts. The first series has the counts; a second one is drawn dashed."""
    kind: Literal["lines", "bars"]
    """Lines are for percentiles, bars are for sums."""
    since: datetime
    until: datetime
    bucket: timedelta
    title: str
    name: str
    format_amount: Callable[[float], str]
    counted: str
    """What n counts, such as "answers"."""
    zone: tzinfo | None = None
    answers: str = ""
    """URL of the list of answers behind the amounts, without a time range."""


def amount_figure(chart: AmountChart) -> Markup:
    """Return a chart of amounts over time as an HTML figure."""
    symbols = ("total",) if chart.kind == "bars" else ("mean", "second")
    keys = [(symbol, name) for symbol, (name, _) in zip(symbols, chart.series, strict=False)]
    keys.append(("n", f"n {chart.counted} per {describe_bucket(chart.bucket)}"))
    amounts = chart.series[0][1]
    if chart.kind == "lines" and any(amount.n < MIN_SAMPLES for amount in amounts):
        keys.append(("thin", f"n below {MIN_SAMPLES}"))
    rows = []
    for index, amount in reversed(list(enumerate(amounts))):
        window = link_window(amount.start, amount.start + chart.bucket)
        start = format_time(amount.start, chart.zone)
        linked = tag("a", start, href=f"{chart.answers}&{window}") if chart.answers else start
        cells = [*(chart.format_amount(each[index].value) for _, each in chart.series), f"{amount.n:,}"]
        rows.append(tag("tr", tag("th", linked, scope="row"), *(tag("td", cell) for cell in cells)))
    headings = ("From", *(name for name, _ in chart.series), "n")
    values = details(table(chart.title, headings, rows))
    return tag("figure", legend(keys), _draw(chart), values, class_="chart")


def round_up(value: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not less than a positive value."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value * (1 - 1e-9))


def _draw(chart: AmountChart) -> Markup:
    width, height = _SIZE
    top = round_up(max((amount.value for _, amounts in chart.series for amount in amounts), default=0.0))
    edge = Plot(left=_LEFT, right=width - NARROW.right, top=0, bottom=0, since=chart.since, until=chart.until)
    plot = replace(edge, top=12, bottom=height - FOOT_HEIGHT - BARS_HEIGHT - 12)
    strip = replace(edge, top=height - FOOT_HEIGHT - BARS_HEIGHT, bottom=height - FOOT_HEIGHT)
    lines = [_points(amounts, top, edge, chart.bucket) for _, amounts in chart.series]
    if chart.kind == "bars":
        bars = [(point, plot.bottom - plot.y(point.mean)) for point in lines[0]]
        marks = draw_columns(bars, plot, chart.bucket, "total")
    else:
        first, *others = [draw_steps(line, plot, chart.bucket)[1] for line in lines]
        marks = concat(*(tag("g", line, class_="second") for line in others), first)
    picture = Picture(
        width=width,
        height=height,
        title=chart.title,
        description=_describe(chart),
        name=f"{chart.name}-chart",
        css_class="half",
    )
    return picture.render(
        draw_time_axis(plot, strip, NARROW, chart.zone),
        draw_bars(lines[0], strip, chart.bucket, NARROW),
        draw_grid(plot, (0.0, 0.5, 1.0), lambda share: chart.format_amount(share * top)),
        marks,
    )


def _points(amounts: Sequence[Amount], top: float, plot: Plot, bucket: timedelta) -> list[Point]:
    """Return the amounts as points between 0 and 1, which the functions for scores can draw."""
    points = [
        Point(
            start=amount.start,
            mean=amount.value / top,
            low=None,
            high=None,
            n=amount.n,
            has_min_samples=amount.n >= MIN_SAMPLES,
        )
        for amount in amounts
    ]
    return [point for point in points if plot.shows(point, bucket)]


def _describe(chart: AmountChart) -> str:
    """Return the text alternative: the last and the highest amount of each series."""
    sentences = []
    for name, amounts in chart.series:
        if amounts:
            last, highest = amounts[-1], max(amounts, key=lambda amount: amount.value)
            described = f"{name}: last {chart.format_amount(last.value)} (n={last.n})"
            sentences.append(f"{described}, highest {chart.format_amount(highest.value)} (n={highest.n}).")
    return " ".join(sentences) or "No data in this window."
