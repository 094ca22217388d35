"""Building blocks of sentences: linked pieces, and means with their interval and n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from germane.alert import ScoreLevel
from germane.insights.context import ViewParams
from germane.insights.formatting import DateFormatter, format_interval, format_number, route_path
from germane.insights.situation import ComparisonPeriod
from germane.storage import MIN_SAMPLES, Estimate


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence."""

    text: str
    kind: Literal["text", "strong", "route", "link"] = "text"
    href: str = ""
    """A path of the dashboard, for a route or a link."""


def strong(text: str) -> Piece:
    """Return emphasized text."""
    return Piece(text, "strong")


def link(text: str, path: str) -> Piece:
    """Return a link within the dashboard."""
    return Piece(text, "link", path)


def route_or_service(route: str | None) -> Piece:
    """Return a link to a route, or the words for the whole service."""
    return strong("the service as a whole") if route is None else Piece(route, "route", route_path(route))


def describe_mean(estimate: Estimate | ScoreLevel) -> str:
    """Return "0.48 (95 % interval 0.42-0.54, n=57)", or "not enough data" below 20 scores."""
    if estimate.n < MIN_SAMPLES:
        return not_enough_data(estimate)
    interval = "" if estimate.interval is None else f"95 % interval {format_interval(estimate.interval)}, "
    return f"{format_number(estimate.mean)} ({interval}n={estimate.n:,})"


def not_enough_data(estimate: Estimate | ScoreLevel) -> str:
    """Return "not enough data (n=7, need 20)"."""
    return f"not enough data (n={estimate.n}, need {MIN_SAMPLES})"


def describe_reference(estimate: Estimate | ScoreLevel, period: ComparisonPeriod | None, dates: DateFormatter) -> str:
    """Return "0.78 before (15 Nov to 18 Nov, n=803)", or "0.78 in baseline 2 (15 Nov to 18 Nov, n=803)"."""
    mean = format_number(estimate.mean)
    if period is None:
        return f"{mean} before (n={estimate.n:,})"
    name = "before" if period.baseline is None else f"in baseline {period.baseline}"
    return f"{mean} {name} ({dates.date_range(period.since, period.until)}, n={estimate.n:,})"


def describe_period(period: ComparisonPeriod, view: ViewParams) -> str:
    """Return "baseline 2, 13 Nov to 18 Nov" or "before, 13 Nov to 18 Nov" in the visitor's time zone."""
    dates = DateFormatter(view.until, view.zone).date_range(period.since, period.until)
    return f"before, {dates}" if period.baseline is None else f"baseline {period.baseline}, {dates}"


def more_routes(count: int) -> str:
    """Return "1 more route" or "2 more routes"."""
    return "1 more route" if count == 1 else f"{count} more routes"
