"""A chart as a page shows it: legend, picture for wide and for narrow screens, and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

from germane.insights.charts.distribution import BARS, histogram_chart, shares_of
from germane.insights.charts.point import ChartMark, Point
from germane.insights.charts.svg import tag
from germane.insights.charts.trend import trend_chart
from germane.insights.text import interval, number, percent

_KEYS: Final = {
    "mean": tag("path", class_="line", d="M1 6H23"),
    "95 % interval": tag("rect", class_="band", width=24, height=12, rx=2),
    "baseline": tag("path", class_="baseline", d="M0 6H24"),
    "n": tag("rect", class_="bar-n", x=6, width=12, height=12),
    "few": tag("circle", class_="dot thin", cx=12, cy=6, r=3.6),
    "earlier": tag("g", tag("path", class_="line", d="M1 6H23"), class_="earlier"),
    "now": tag("rect", class_="now", x=6, width=12, height=12),
    "before": tag("path", class_="before", d="M1 11V3H23V11"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What a chart of time is made from; fields as the arguments of :func:`trend_chart`."""

    points: Sequence[Point]
    since: datetime
    until: datetime
    bucket: timedelta
    title: str
    name: str
    zone: ZoneInfo | None = None
    baseline: float | None = None
    baseline_name: str = "baseline"
    """A word, and perhaps which one and the time that it was learned from: "baseline 2, 13 Nov to 18 Nov"."""
    marks: Sequence[ChartMark] = ()
    root: str = ""
    """Before every link."""


def trend_figure(trend: Trend) -> Markup:
    """Return a chart of time with its legend and its table: a ``figure`` of HTML."""
    charts = (_chart(trend, "wide", 1100, 320), _chart(trend, "narrow", 420, 290))
    return tag("figure", _legend(_keys(trend)), *charts, _twin(trend), class_="chart", data_chart="")


def _chart(trend: Trend, kind: str, width: int, height: int) -> Markup:
    return trend_chart(
        trend.points,
        since=trend.since,
        until=trend.until,
        bucket=trend.bucket,
        zone=trend.zone,
        baseline=trend.baseline,
        baseline_name=trend.baseline_name.partition(",")[0].partition(" ")[0],
        marks=trend.marks,
        title=trend.title,
        width=width,
        height=height,
        name=f"{trend.name}-{kind}",
        kind=kind,
    )


def _keys(trend: Trend) -> Iterator[tuple[str, str]]:
    yield "mean", "mean"
    yield "95 % interval", "95 % interval"
    if trend.baseline is not None:
        yield "baseline", f"{trend.baseline_name}: {number(trend.baseline)}"
    yield "n", f"n scored per {length_of(trend.bucket)}"
    if any(not one.enough for one in trend.points):
        yield "few", "n under 20"
    if any(one.begins for one in trend.points):
        yield "earlier", "by an earlier judge"


def length_of(bucket: timedelta) -> str:
    """Return "6 h", "day", "3 days" or "week"."""
    hours = bucket / timedelta(hours=1)
    if hours < 24 or hours % 24:
        return f"{hours:g} h"
    days = round(hours / 24)
    return {1: "day", 7: "week"}.get(days, f"{days} days")


def _legend(keys: Iterator[tuple[str, str]]) -> Markup:
    return tag("div", *(tag("span", _key(key), name) for key, name in keys), class_="legend", aria_hidden="true")


def _key(key: str) -> Markup:
    return tag("svg", _KEYS[key], width=24, height=12, viewBox="0 0 24 12")


def _twin(trend: Trend) -> Markup:
    heads = ("From", "Mean", "95 % interval", "n", "Scored of seen")
    rows = [_row(one, trend) for one in sorted(trend.points, key=lambda one: one.start, reverse=True)]
    marks = [_mark(one, trend) for one in trend.marks]
    listed = tag("ul", *marks, class_="plain note") if marks else Markup("")
    return tag("details", tag("summary", "Show as table"), listed, _table(trend.title, heads, rows), class_="twin")


def _row(point: Point, trend: Trend) -> Markup:
    judge = " (judge changed)" if point.begins else ""
    few = "" if point.enough else " (few)"
    ends = None if point.low is None or point.high is None else (point.low, point.high)
    seen = "\u2013" if point.seen is None else f"{point.scored or 0:,} of {point.seen:,}"
    cells = (number(point.mean), interval(ends), f"{point.n:,}{few}", seen)
    return tag(
        "tr",
        tag("th", _time(point.start, trend.zone), judge, scope="row"),
        *(tag("td", cell, class_="end") for cell in cells),
    )


def _mark(mark: ChartMark, trend: Trend) -> Markup:
    name = tag("bdi", mark.label)
    linked = tag("a", name, href=f"{trend.root}{mark.href}") if mark.href else name
    return tag("li", _time(mark.at, trend.zone), " ", linked)


def _time(moment: datetime, zone: ZoneInfo | None) -> Markup:
    local = moment.astimezone(zone)
    return tag("time", f"{local:%a} {local.day} {local:%b %H:%M %Z}", datetime=moment.isoformat())


def _table(caption: str, heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    first, *others = heads
    head = tag("tr", tag("th", first, scope="col"), *(tag("th", one, scope="col", class_="end") for one in others))
    table = tag(
        "table", tag("caption", caption, class_="hidden"), tag("thead", head), tag("tbody", *rows), class_="dense"
    )
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"{caption}, as a table")


def spread_figure(
    now: Sequence[float],
    before: Sequence[float] = (),
    *,
    title: str,
    name: str,
    names: tuple[str, str] = ("now", "baseline"),
) -> Markup:
    """Return a histogram with its legend and its table: a ``figure`` of HTML.

    Args:
        now: Weights of 100 bins over [0, 1].
        before: The same of the time that is compared with; empty without one.
        title: What it is, for who cannot see it.
        name: Its id, its own on the page.
        names: Of the two times.
    """
    keys = [("now", names[0])] + ([("before", names[1])] if any(before) else [])
    chart = histogram_chart(now, before, title=title, name=name, kind="spread")
    pairs = zip(shares_of(now), shares_of(before), strict=True)
    rows = [
        tag(
            "tr",
            tag("th", f"{number / BARS:.2f}\u2013{(number + 1) / BARS:.2f}", scope="row"),
            *(tag("td", percent(share), class_="end") for share in shares[: len(keys)]),
        )
        for number, shares in enumerate(pairs)
    ]
    twin = tag(
        "details", tag("summary", "Show as table"), _table(title, ("Score", *names[: len(keys)]), rows), class_="twin"
    )
    return tag("figure", _legend(iter(keys)), chart, twin, class_="chart")
