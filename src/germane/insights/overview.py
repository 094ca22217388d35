"""The overview page: whether answers got worse, on which routes, and which answers are the worst."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import Final

from germane.insights.charts import ChartMarker
from germane.insights.context import InsightContext, ViewParams, from_one_snapshot, load_buckets
from germane.insights.fleet import Fleet, load_fleet
from germane.insights.grid import Grid, GridRoute, build_grid, grid_length, grid_rows
from germane.insights.health import StatusBar
from germane.insights.judge import recent_changes
from germane.insights.labeled_window import LabeledWindow, load_labeled_window
from germane.insights.situation import DAY, alert_began_at, chart_markers, first_scored, onset_comparison_path
from germane.insights.verdict import Verdict
from germane.insights.watched_traces import WatchedSummary, load_watched_traces
from germane.insights.worst_answers import WorstAnswer, load_disagreement, load_worst_answers
from germane.score import NONCOMMITTAL
from germane.settings import SCORE_RULES
from germane.statistics import Comparison
from germane.storage import Bucket, Coverage, Disagreement, MatchCount, RouteSummary, ServiceSummary, compare_summaries

MAX_CARDS: Final = 6
"""Maximum number of routes with a chart. The grid shows the others."""
MAX_JUDGES: Final = 3
"""Maximum number of judges whose worst answers are listed together."""
_MAX_MARKERS: Final = 50
"""Maximum number of markers, and of alerts, on a chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCard:
    """A route's scores from the last day or the selected range, their change, and the route's trend."""

    service: str
    route: str
    current: RouteSummary | None
    """Summary of the period's scores with the newest fingerprint, or None if there are no scores."""
    comparison: Comparison | None
    """Comparison with the reference period, or None if the selected range overlaps that period."""
    buckets: Sequence[Bucket] = ()
    """Empty for a route without a chart."""
    dropped: bool
    """Whether scores dropped significantly, or an alert is open, and the drop had begun by the end of the period."""

    @property
    def difference(self) -> float | None:
        """The current mean minus the earlier mean, or None if they cannot be compared."""
        return None if self.comparison is None else self.comparison.difference

    @property
    def reference_mean(self) -> float | None:
        """The mean of the reference period, if it has enough scores."""
        before = None if self.comparison is None else self.comparison.before
        return before.mean if before is not None and before.has_min_samples else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRange:
    """The scored answers in the time range that the visitor has selected, for example in the chart."""

    current: ServiceSummary | None
    """Summary of the only service's scores with the newest fingerprint in the range, if there are any."""
    routes: Sequence[RouteSummary]
    comparisons: Sequence[Comparison]
    """Comparisons of the routes with the reference period. Empty if the range overlaps that period."""
    total: MatchCount
    """Number of scored answers."""
    route: str | None
    """The route that got worse, if the range contains answers since the onset and it is the only one."""
    service: str | None
    """The service of that route."""
    on_route: MatchCount | None
    """Number of scored answers on that route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The content of the overview page."""

    fleet: Fleet
    """The selected service or all services, with the verdict."""
    bucket: timedelta
    """Length of the buckets."""
    buckets: Sequence[Bucket]
    """Buckets for all routes together in the view's window. Empty if they are scored in different ways."""
    grid: Grid
    cards: Sequence[RouteCard]
    """Cards of the routes, largest significant drop first."""
    routes_without_card: Sequence[tuple[str, str]]
    """Services and names of the other routes."""
    markers: Sequence[ChartMarker]
    onset_comparison: str | None
    """Path of the comparison of the time before and after the onset of the largest drop, if there is one."""
    worst: Sequence[WorstAnswer]
    """The worst answers from the last day or the selected range."""
    selected: SelectedRange | None
    """The selected time range, or None for a window such as the last 7 days."""
    disagreement: Disagreement | None
    """Disagreement between human labels and the judge in the view's window, or None if no answer has a label."""
    labeled: LabeledWindow | None
    """What people say about the answers of the selected service or all services, or None without labels."""
    judge_changes: Sequence[str]
    """Sentences about judges that have recently changed."""
    status: StatusBar
    traces: WatchedSummary
    """The traces that were watched or received in the view's window, of all services unless one is selected."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the selected service or on all services."""
        return self.fleet.verdict

    @property
    def coverage(self) -> Coverage | None:
        """Outcomes of the last day's exchanges, for the scorer of each service."""
        day, by_route = self.fleet.day, self.fleet.coverage
        if day is not None and day.current is not None:
            return day.current.coverage
        if not by_route:
            return None
        counts = {name: sum(getattr(one, name) for one in by_route) for name in ("seen", "scored", "pending")}
        failed: Counter[str] = Counter()
        for one in by_route:
            failed.update(one.failed)
        return Coverage(service="", route="", scorer="", failed=failed, **counts)

    @property
    def has_refusals(self) -> bool:
        """Whether refusals are among the worst answers."""
        return any(answer.score.label == NONCOMMITTAL for answer in self.worst)

    @property
    def reference_name(self) -> str:
        """Name of the dashed lines: "baseline", or "before" if they show means of the preceding days."""
        periods = [day.reference_period for day in self.fleet.days if day.reference_period is not None]
        return "baseline" if periods and all(period.baseline is not None for period in periods) else "before"


@from_one_snapshot
def load_overview(context: InsightContext, view: ViewParams) -> Overview:
    """Load the overview.

    Raises:
        StorageError: The database is unreachable, or its schema version does not match this code.
    """
    store, now = context.store, context.now()
    fleet = load_fleet(context, view, now)
    verdict, day = fleet.verdict, fleet.day
    current = None if day is None else day.current
    dropped = verdict.places if verdict.is_worse else ()
    selected = None if view.window else _select_range(context, view, fleet, dropped)
    bucket = view.bucket_for(sum(one.current.n for one in fleet.days if one.current is not None), DAY)
    buckets = _load_buckets(context, view, fleet, bucket)
    cards = _cards(fleet, selected, dropped if selected is None or _includes_drop(view, verdict) else ())
    in_grid = _load_by_route(context, view, fleet, cards[: grid_rows(view)], grid_length(view))
    has_own_buckets = bucket != grid_length(view)
    by_route = _load_by_route(context, view, fleet, cards[:MAX_CARDS], bucket) if has_own_buckets else in_grid
    cards = [replace(card, buckets=by_route.get((card.service, card.route), ())) for card in cards]
    changed = verdict.places[0] if verdict.places else ("", "")
    return Overview(
        fleet=fleet,
        bucket=bucket,
        buckets=buckets,
        grid=_fill_grid(view, cards, in_grid),
        cards=cards[:MAX_CARDS],
        routes_without_card=[(card.service, card.route) for card in cards[MAX_CARDS:]],
        markers=_load_markers(context, view, fleet),
        onset_comparison=_onset_comparison(view, fleet, by_route.get((changed[0] or "", changed[1]), buckets)),
        worst=_load_worst(context, view, fleet, selected) if cards else [],
        selected=selected,
        disagreement=None if current is None else load_disagreement(store, current, view.since, view.until),
        labeled=load_labeled_window(store, scorer=fleet.scorer, service=fleet.service),
        judge_changes=list(recent_changes(store, now)),
        status=StatusBar(open_alerts=len(fleet.alerts), health=fleet.health),
        traces=load_watched_traces(store, since=view.since, until=view.until, service=view.service),
    )


def _load_worst(
    context: InsightContext, view: ViewParams, fleet: Fleet, selected: SelectedRange | None
) -> list[WorstAnswer]:
    """Load the worst answers of the last day or the selected range, with one query for each judge in use."""
    period = (fleet.now - DAY, fleet.now) if selected is None else (view.since, view.until)
    if fleet.day is not None:
        shown = fleet.day.current if selected is None else selected.current
        return [] if shown is None else load_worst_answers(context.store, [shown], *period)
    judges = {
        (one.current.scorer, one.current.fingerprint): one.current for one in fleet.days if one.current is not None
    }
    means = sorted(judges.values(), key=lambda mean: -mean.n)[:MAX_JUDGES]
    return load_worst_answers(context.store, [replace(mean, service="") for mean in means], *period)


def _load_buckets(context: InsightContext, view: ViewParams, fleet: Fleet, bucket: timedelta) -> Sequence[Bucket]:
    """Load the means of all routes over time. Services with different judges have no common mean."""
    fingerprints = {day.current.fingerprint for day in fleet.days if day.current is not None}
    if fleet.scorer is None or len(fingerprints) > 1:
        return ()
    return load_buckets(context.store, view, scorer=fleet.scorer, service=fleet.service, route=None, bucket=bucket)


def _load_by_route(
    context: InsightContext, view: ViewParams, fleet: Fleet, cards: Iterable[RouteCard], bucket: timedelta
) -> dict[tuple[str, str], list[Bucket]]:
    """Load the means of the given routes over time, by service and route, with one query for each scorer."""
    scorers = {day.service: day.scorer for day in fleet.days}
    routes: dict[str, set[str]] = {}
    for card in cards:
        routes.setdefault(scorers.get(card.service) or "", set()).add(card.route)
    found: dict[tuple[str, str], list[Bucket]] = {}
    for scorer, names in routes.items():
        for one in context.store.trends.routes_over_time(
            scorer=scorer, routes=names, bucket=bucket, since=view.since, until=view.until, timezone=view.zone or UTC
        ):
            if scorers.get(one.service) == scorer:
                found.setdefault((one.service or "", one.group or ""), []).append(one)
    return found


def _fill_grid(
    view: ViewParams, cards: Sequence[RouteCard], buckets: Mapping[tuple[str, str], Sequence[Bucket]]
) -> Grid:
    """Return the grid of the first routes."""
    shown = cards[: grid_rows(view)]
    routes = [
        GridRoute(
            service=card.service,
            route=card.route,
            dropped=card.dropped,
            level=card.reference_mean,
            fingerprint=None if card.comparison is None else card.comparison.fingerprint,
            buckets=buckets.get((card.service, card.route), ()),
        )
        for card in shown
    ]
    return build_grid(view, routes, len(cards) - len(shown))


def _load_markers(context: InsightContext, view: ViewParams, fleet: Fleet) -> Sequence[ChartMarker]:
    """Load the markers, such as deploys, and the score alerts that began in the view's window."""
    scorers = {day.service: day.scorer for day in fleet.days}
    markers = context.store.trends.list_markers(
        since=view.since, until=view.until, service=fleet.service, limit=_MAX_MARKERS
    )
    alerts = [
        alert
        for alert in context.store.alerts.search(since=view.since - DAY, limit=_MAX_MARKERS)
        if alert.service in scorers and alert.scorer in {None, scorers[alert.service]}
        if alert.type in SCORE_RULES and alert.fired_at is not None
        if view.since <= alert_began_at(alert) < view.until
    ]
    return chart_markers(alerts, markers, view=view)


def _onset_comparison(view: ViewParams, fleet: Fleet, buckets: Sequence[Bucket]) -> str | None:
    """Return the path of the comparison of the time before and after the onset. The buckets are those that dropped."""
    verdict = fleet.verdict
    if verdict.began is None:
        return None
    situation = verdict.situation
    return onset_comparison_path(
        view,
        verdict.began,
        fleet.now,
        first=first_scored(buckets, None if situation.reference is None else situation.reference_period),
        route=verdict.began_on,
        scorer=situation.scorer,
        service=situation.service if situation.is_named else view.service,
    )


def _includes_drop(view: ViewParams, verdict: Verdict) -> bool:
    return verdict.began is None or verdict.began < view.until


def _select_range(
    context: InsightContext, view: ViewParams, fleet: Fleet, dropped: Sequence[tuple[str | None, str]]
) -> SelectedRange:
    """Return the answers in the selected time range."""
    scorers = {day.service: day.scorer for day in fleet.days}
    summary = context.store.trends.window_summary(
        since=view.since, until=view.until, service=fleet.service, scorer=fleet.scorer
    )
    routes = [group for group in summary.routes if scorers.get(group.service) == group.scorer]
    services = [group for group in summary.services if scorers.get(group.service) == group.scorer and group.newest]
    place = dropped[0] if len(dropped) == 1 and _includes_drop(view, fleet.verdict) else None
    on_route = [group for group in routes if (group.service, group.route) == place]
    return SelectedRange(
        current=services[0] if fleet.day is not None and services else None,
        routes=routes,
        comparisons=_compare_range(view, fleet, routes, services),
        total=_count_scores(routes),
        service=None if place is None else place[0],
        route=None if place is None else place[1],
        on_route=None if place is None else _count_scores(on_route),
    )


def _compare_range(
    view: ViewParams, fleet: Fleet, routes: Sequence[RouteSummary], services: Sequence[ServiceSummary]
) -> list[Comparison]:
    """Compare the routes in the selected range with the reference periods that end before it."""
    newest = {(group.service, group.fingerprint) for group in services}
    lines: list[Comparison] = []
    for day in fleet.days:
        earlier = day.reference_summary
        if earlier is not None and earlier.until <= view.since:
            windows = ((earlier.since, earlier.until), (view.since, view.until))
            later = [group for group in routes if group.service == day.service]
            lines += compare_summaries(earlier.routes, later, windows).routes
    return [line for line in lines if (line.service, line.fingerprint) in newest]


def _count_scores(groups: Iterable[RouteSummary]) -> MatchCount:
    return MatchCount(count=sum(group.n for group in groups), is_capped=False)


def _cards(fleet: Fleet, selected: SelectedRange | None, dropped: Sequence[tuple[str | None, str]]) -> list[RouteCard]:
    """Return a card for each route: those that dropped in the verdict's order, then others by difference and scores."""
    if selected is None:
        summaries: Sequence[RouteSummary] = [group for day in fleet.days for group in day.routes]
        lines: Sequence[Comparison] = [line for one in fleet.situations for line in one.routes]
    else:
        summaries, lines = selected.routes, selected.comparisons
    current = {(group.service, group.route): group for group in summaries if group.newest}
    comparisons = {(line.service, line.route): line for line in lines if line.route is not None}
    positions = {place: position for position, place in enumerate(dropped)}

    def rank(card: RouteCard) -> tuple[int, float, int]:
        position = positions.get((card.service, card.route), len(positions))
        n = 0 if card.current is None else card.current.n
        return position, math.inf if card.difference is None else card.difference, -n

    cards = [
        RouteCard(
            service=service,
            route=route or "",
            current=current.get((service, route or "")),
            comparison=comparisons.get((service, route)),
            dropped=(service, route) in positions,
        )
        for service, route in sorted({*comparisons, *current})
    ]
    return sorted(cards, key=rank)
