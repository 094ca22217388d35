"""Response times of handlers and costs of the judge over time, on one route or on all routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from germane.insights.charts.amounts import Amount, AmountChart, amount_figure
from germane.insights.context import (
    InsightContext,
    ViewParams,
    choose_scorer,
    choose_service,
    existing_or_none,
    from_one_snapshot,
)
from germane.insights.formatting import format_run_time
from germane.storage import Coverage, NewestBuckets, ServiceSummary

_NO_CHART: Final = Markup()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChart:
    """A chart of the newest answers in a window."""

    chart: Markup
    """Empty if there is no data."""
    n: int
    """Number of answers or scores in the chart."""
    since: datetime
    """Start of the chart: the start of the window, or of the first whole bucket if only the newest rows were read."""
    is_truncated: bool
    """Whether only the newest rows were read."""
    answers: str
    """URL of the list of answers in the window, the slowest or most expensive first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Response times and judge costs in a window."""

    durations: UsageChart
    costs: UsageChart
    usd: float
    """Sum of the costs in the chart, in US dollars."""


def load_usage(
    context: InsightContext, view: ViewParams, *, scorer: str, route: str | None, service: str | None, root: str = ""
) -> Usage:
    """Load the charts of response times and of the costs of one scorer.

    A route or a service of None selects all. ``root`` is the prefix of every link.
    """
    trends = context.store.trends
    query: dict[str, Any] = {
        "since": view.since,
        "until": view.until,
        "timezone": view.zone or UTC,
        "route": route,
        "service": service,
    }
    link: dict[str, str | None] = {"scorer": scorer, "route": route, "service": service}
    place = "all routes" if route is None else route

    def fit(start: datetime | None) -> timedelta:
        """Return the length of buckets that fit the part of the window that was read."""
        return view.bucket if start is None or view.chosen_bucket is not None else replace(view, since=start).bucket

    durations = trends.durations_over_time(bucket=fit, **query)
    costs = trends.costs_over_time(bucket=fit, scorer=scorer, **query)
    return Usage(
        durations=_build_chart(
            durations,
            fit(durations.searched_back_to),
            view,
            series={"median": "median", "95th percentile": "p95"},
            link={**link, "sort": "slowest"},
            root=root,
            kind="lines",
            title=f"Response time on {place}",
            name="durations",
            format_amount=format_run_time,
            counted="answers",
        ),
        costs=_build_chart(
            costs,
            fit(costs.searched_back_to),
            view,
            series={"cost": "usd"},
            link={**link, "sort": "highest_cost"},
            root=root,
            kind="bars",
            title=f"Judge cost on {place}",
            name="costs",
            format_amount=format_usd,
            counted="scores",
        ),
        usd=sum(one.usd for one in costs.buckets),
    )


def _build_chart(
    found: NewestBuckets[Any],
    bucket: timedelta,
    view: ViewParams,
    *,
    series: Mapping[str, str],
    link: Mapping[str, str | None],
    root: str,
    **style: Any,
) -> UsageChart:
    """Build a chart with one line per label in ``series``, an attribute of the buckets."""
    answers = root + view.link("/answers", **link)
    is_truncated = found.searched_back_to is not None
    since = found.buckets[0].start if found.buckets and is_truncated else view.since
    if not found.buckets:
        return UsageChart(chart=_NO_CHART, n=0, since=since, is_truncated=is_truncated, answers=answers)
    chart = AmountChart(
        series=[
            (label, [Amount(one.start, getattr(one, attribute), one.n) for one in found.buckets])
            for label, attribute in series.items()
        ],
        since=since,
        until=view.until,
        bucket=bucket,
        zone=view.zone,
        answers=root + view.link_without_range("/answers", **link),
        **style,
    )
    n = sum(one.n for one in found.buckets)
    return UsageChart(chart=amount_figure(chart), n=n, since=since, is_truncated=is_truncated, answers=answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUsage:
    """The content of the page with the response times and costs of all routes."""

    service: str | None
    services: Sequence[str]
    scorer: str | None
    scorers: Sequence[str]
    usage: Usage | None
    """None if the window has no scores."""


@from_one_snapshot
def load_service_usage(context: InsightContext, view: ViewParams, root: str = "") -> ServiceUsage:
    """Load the response times and costs of all routes of the selected service."""
    overall = context.store.trends.window_summary(since=view.since, until=view.until)
    groups: list[ServiceSummary | Coverage] = [*overall.services, *overall.coverage]
    service = choose_service(overall.services, existing_or_none(view.service, (group.service for group in groups)))
    of_service = [group for group in overall.services if group.service == service]
    scorer = choose_scorer(of_service, existing_or_none(view.scorer, (group.scorer for group in groups)))
    return ServiceUsage(
        service=service,
        services=sorted({group.service for group in groups}),
        scorer=scorer,
        scorers=sorted({group.scorer for group in of_service}),
        usage=None
        if scorer is None
        else load_usage(context, view, scorer=scorer, route=None, service=service, root=root),
    )


def format_usd(value: float) -> str:
    """Format an amount of at least 0 in US dollars, such as "$12.30" or "$0.00042"."""
    if value >= 1:
        return f"${value:,.2f}"
    return "$" + (f"{value:.6f}".rstrip("0").rstrip(".") or "0")
