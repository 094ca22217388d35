"""Charts as HTML figures: a legend, images for wide and narrow screens, and a table of the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Final

from markupsafe import Markup

from germane.insights.charts.histogram import BARS, bar_shares, histogram_svg
from germane.insights.charts.svg import tag
from germane.insights.charts.trend import TrendChart, trend_svg
from germane.insights.formatting import DASH, format_interval, format_number, format_percent, link_window, shorten
from germane.score import LOW_SCORE

_LEGEND_SYMBOLS: Final = {
    "mean": tag("path", class_="line", d="M1 6H23"),
    "95% interval": tag("rect", class_="band", width=24, height=12, rx=2),
    "baseline": tag("path", class_="baseline", d="M0 6H24"),
    "n": tag("rect", class_="bar-n", x=6, width=12, height=12),
    "thin": tag("path", class_="line thin", d="M1 6H23"),
    "answer": tag("path", class_="dots", d="M6 4v0M12 8v0M18 5v0", stroke_width=4),
    "low": tag("path", class_="dots low", d="M6 4v0M12 8v0M18 5v0", stroke_width=4),
    "failing": tag("g", tag("path", class_="line", d="M1 6H23"), class_="failing"),
    "earlier": tag("g", tag("path", class_="line", d="M1 6H23"), class_="earlier"),
    "second": tag("g", tag("path", class_="line", d="M1 6H23"), class_="second"),
    "total": tag("rect", class_="total", x=6, width=12, height=12),
    "now": tag("rect", class_="now", x=6, width=12, height=12),
    "before": tag("path", class_="before", d="M1 11V3H23V11"),
}


def trend_figure(chart: TrendChart) -> Markup:
    """Return a time-series chart as an HTML figure."""
    sizes = (("half", 440, 260),) if chart.is_secondary else (("wide", 1100, 320), ("narrow", 420, 290))
    pictures = [
        trend_svg(chart, css_class=css_class, width=width, height=height, has_values=not number)
        for number, (css_class, width, height) in enumerate(sizes)
    ]
    keys = [("mean", chart.points_name), ("95% interval", "95% interval")]
    if chart.has_dots:
        keys[0] = ("mean", f"{chart.points_name} per {describe_bucket(chart.bucket)} or longer")
        sampled = ", sampled" if chart.is_sample else ""
        keys += [("answer", f"answer{sampled}"), ("low", f"low answer{sampled and ', the lowest and a sample'}")]
    if chart.baseline is not None:
        keys.append(("baseline", f"{chart.baseline_name}: {format_number(chart.baseline)}"))
    if chart.failing:
        keys.append((chart.second_kind, shorten(chart.failing_name, 60)))
    if not chart.has_dots:
        keys.append(("n", f"n scored per {describe_bucket(chart.bucket)}"))
    if any(not point.has_min_samples for point in (*chart.points, *chart.failing)):
        keys.append(("thin", "n below 20"))
    if any(point.judge_changed for point in chart.points):
        keys.append(("earlier", "earlier judge"))
    return tag("figure", legend(keys), *pictures, _trend_table(chart), class_="chart", data_chart="")


def describe_bucket(bucket: timedelta) -> str:
    """Return the length of a bucket in words, such as "6 h", "day", "3 days" or "week"."""
    hours = bucket / timedelta(hours=1)
    if hours < 24 or hours % 24:
        return f"{hours:g} h"
    days = round(hours / 24)
    return {1: "day", 7: "week"}.get(days, f"{days} days")


def legend(keys: Iterable[tuple[str, str]]) -> Markup:
    """Return a legend from pairs of symbol and name."""
    entries = [tag("span", tag("svg", _LEGEND_SYMBOLS[key], width=24, height=12), name) for key, name in keys]
    return tag("div", *entries, class_="legend", aria_hidden="true")


def _trend_table(chart: TrendChart) -> Markup:
    rows = []
    for point in sorted(chart.points, key=lambda point: point.start, reverse=True):
        judge = " (judge changed)" if point.judge_changed else ""
        few = "" if point.has_min_samples else " (few)"
        interval = None if point.low is None or point.high is None else (point.low, point.high)
        seen = DASH if point.seen is None else f"{point.scored or 0:,} of {point.seen:,}"
        cells = (format_number(point.mean), format_interval(interval), f"{point.n:,}{few}", seen)
        start = format_time(point.start, chart.zone)
        if chart.answers:
            window = link_window(point.start, point.until(chart.bucket))
            start = tag("a", start, href=f"{chart.root}{chart.answers}&{window}")
        head = tag("th", start, judge, scope="row")
        rows.append(tag("tr", head, *(tag("td", cell) for cell in cells)))
    items = []
    for marker in chart.markers:
        name = tag("bdi", marker.label)
        linked = tag("a", name, href=f"{chart.root}{marker.href}") if marker.href else name
        items.append(tag("li", format_time(marker.at, chart.zone), " ", linked))
    markers = tag("ul", *items, class_="plain note") if items else Markup("")
    headings = ("From", "Mean", "95% interval", "n", "Scored / seen")
    return details(markers, table(chart.title, headings, rows))


def details(*content: Markup) -> Markup:
    """Return a collapsed element for the table of a chart's values."""
    return tag("details", tag("summary", "Show as table"), *content, class_="twin")


def format_time(moment: datetime, zone: tzinfo | None) -> str:
    """Return a short date and time."""
    local = moment.astimezone(zone)
    return f"{local:%a} {local.day} {local:%b %H:%M %Z}"


def table(caption: str, headings: Sequence[str], rows: Sequence[Markup]) -> Markup:
    """Return a table of a chart's values that scrolls within the page."""
    first, *others = headings
    cells = [tag("th", heading, scope="col") for heading in others]
    head = tag("thead", tag("tr", tag("th", first, scope="col"), *cells))
    table = tag("table", tag("caption", caption, class_="hidden"), head, tag("tbody", *rows), class_="dense")
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"{caption}, as a table")


def histogram_figure(
    now: Sequence[float],
    before: Sequence[float] = (),
    *,
    title: str,
    name: str,
    names: tuple[str, str] = ("now", "baseline"),
    low_below: float | None = LOW_SCORE,
) -> Markup:
    """Return a histogram as an HTML figure.

    Args:
        now: Weights of 100 bins of equal width over [0, 1].
        before: Weights for the reference period. Empty if there is none.
        title: The accessible name.
        name: Id of the figure, unique on the page.
        names: Names of the two periods.
        low_below: Values below this are low. None if labels do not depend on the raw value alone.
    """
    keys = [("now", names[0])] + ([("before", names[1])] if any(before) else [])
    rows = []
    for bar, shares in enumerate(zip(bar_shares(now), bar_shares(before), strict=True)):
        head = tag("th", f"{bar / BARS:.2f}{DASH}{(bar + 1) / BARS:.2f}", scope="row")
        rows.append(tag("tr", head, *(tag("td", format_percent(share)) for share in shares[: len(keys)])))
    picture = histogram_svg(now, before, title=title, name=name, low_below=low_below)
    values = details(table(title, ("Score", *names[: len(keys)]), rows))
    return tag("figure", legend(keys), picture, values, class_="chart")
