"""The overview page: whether answers got worse, on which routes, and which answers are the worst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.alert import Alert
from germane.insights.assessment import Assessment, load_assessment
from germane.insights.charts import ChartMarker
from germane.insights.context import InsightContext, ViewParams, from_one_snapshot
from germane.insights.health import StatusBar
from germane.insights.last_day import LastDay
from germane.insights.situation import (
    DAY,
    Situation,
    alert_began_at,
    chart_markers,
    first_scored,
    onset_comparison_path,
)
from germane.insights.verdict import Verdict
from germane.insights.watched_traces import WatchedSummary, load_watched_traces
from germane.insights.worst_answers import WorstAnswer, load_disagreement, load_worst_answers
from germane.score import NONCOMMITTAL
from germane.settings import SCORE_RULES
from germane.statistics import Comparison
from germane.storage import Bucket, Coverage, Disagreement, MatchCount, RouteSummary, ServiceSummary, compare_summaries

MAX_CARDS: Final = 12
"""Maximum number of routes with a chart. Other routes are only listed."""
_MAX_MARKERS: Final = 50
"""Maximum number of markers, and of alerts, on a chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCard:
    """A route's scores from the last day or the selected range, their change, and the route's trend."""

    route: str
    current: RouteSummary | None
    """Summary of the period's scores with the newest fingerprint, or None if there are no scores."""
    comparison: Comparison | None
    """Comparison with the reference period, or None if the selected range overlaps that period."""
    buckets: Sequence[Bucket]
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
    """Summary of the service's scores with the newest fingerprint in the range, or None if there are no scores."""
    routes: Sequence[RouteSummary]
    comparisons: Sequence[Comparison]
    """Comparisons of the routes with the reference period. Empty if the range overlaps that period."""
    total: MatchCount
    """Number of scored answers."""
    route: str | None
    """The route that got worse, if the range contains answers since the onset and it is the only one."""
    on_route: MatchCount | None
    """Number of scored answers on that route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The content of the overview page."""

    now: datetime
    last_day: LastDay
    situation: Situation
    verdict: Verdict
    alerts_elsewhere: Sequence[Alert]
    """Open alerts of other services."""
    bucket: timedelta
    """Length of the buckets."""
    buckets: Sequence[Bucket]
    """Buckets for the whole service in the view's window."""
    cards: Sequence[RouteCard]
    """Cards of the routes, largest significant drop first."""
    routes_without_card: Sequence[str]
    markers: Sequence[ChartMarker]
    onset_comparison: str | None
    """Path of the comparison of the time before and after the onset of the largest drop, if there is one."""
    worst: Sequence[WorstAnswer]
    """The worst answers from the last day or the selected range."""
    selected: SelectedRange | None
    """The selected time range, or None for a window such as the last 7 days."""
    dropped: Sequence[str]
    """Routes that got worse, largest drop first."""
    disagreement: Disagreement | None
    """Disagreement between human labels and the judge in the view's window, or None if no answer has a label."""
    status: StatusBar
    traces: WatchedSummary
    """The traces that were watched or received in the view's window, of all services unless one is selected."""

    @property
    def coverage(self) -> Coverage | None:
        """Outcomes of the last day's exchanges for the selected scorer."""
        current = self.last_day.current
        if current is not None:
            return current.coverage
        by_route = [counts for counts in self.last_day.coverage if counts.scorer == self.last_day.scorer]
        seen, scored = sum(counts.seen for counts in by_route), sum(counts.scored for counts in by_route)
        return Coverage(service="", route="", scorer="", seen=seen, scored=scored) if by_route else None

    @property
    def has_refusals(self) -> bool:
        """Whether refusals are among the worst answers."""
        return any(answer.score.label == NONCOMMITTAL for answer in self.worst)

    @property
    def reference_name(self) -> str:
        """Name of the dashed lines: "baseline", or "before" if they show the mean of the preceding period."""
        period = self.last_day.reference_period
        return "baseline" if period is not None and period.baseline is not None else "before"


@from_one_snapshot
def load_overview(context: InsightContext, view: ViewParams) -> Overview:
    """Load the overview.

    Raises:
        StorageError: The database is unreachable, or its schema version does not match this code.
    """
    store, now = context.store, context.now()
    assessment = load_assessment(context, view, now)
    last_day, verdict, by_route = assessment.last_day, assessment.verdict, assessment.by_route
    current = last_day.current
    dropped = verdict.routes if verdict.is_worse else ()
    selected = None if view.window else _select_range(view, assessment, dropped)
    period = (now - DAY, now) if selected is None else (view.since, view.until)
    if selected is None:
        shown = current
        cards = _cards(last_day.routes, assessment.situation.routes, dropped, by_route)
    else:
        shown = selected.current
        since_onset = dropped if _includes_drop(view, verdict) else ()
        cards = _cards(selected.routes, selected.comparisons, since_onset, by_route)
    return Overview(
        now=now,
        last_day=last_day,
        situation=assessment.situation,
        verdict=verdict,
        alerts_elsewhere=[alert for alert in assessment.alerts if alert.service not in {"", last_day.service}],
        bucket=assessment.bucket,
        buckets=assessment.buckets,
        cards=cards[:MAX_CARDS],
        routes_without_card=[card.route for card in cards[MAX_CARDS:]],
        markers=_load_markers(context, view, last_day),
        onset_comparison=_onset_comparison(
            view,
            last_day,
            verdict,
            assessment.buckets if verdict.began_on is None else by_route.get(verdict.began_on, ()),
            now,
        ),
        worst=[] if shown is None else load_worst_answers(store, [shown], *period),
        selected=selected,
        dropped=dropped,
        disagreement=None if current is None else load_disagreement(store, current, view.since, view.until),
        status=StatusBar(open_alerts=len(assessment.alerts), health=assessment.health),
        traces=load_watched_traces(store, since=view.since, until=view.until, service=view.service),
    )


def _load_markers(context: InsightContext, view: ViewParams, last_day: LastDay) -> Sequence[ChartMarker]:
    """Load the markers, such as deploys, and the score alerts that began in the view's window."""
    markers = context.store.trends.list_markers(
        since=view.since, until=view.until, service=last_day.service, limit=_MAX_MARKERS
    )
    alerts = [
        alert
        for alert in context.store.alerts.search(since=view.since - DAY, limit=_MAX_MARKERS)
        if alert.service == last_day.service and alert.scorer in {None, last_day.scorer}
        if alert.type in SCORE_RULES and alert.fired_at is not None
        if view.since <= alert_began_at(alert) < view.until
    ]
    return chart_markers(alerts, markers, view=view)


def _onset_comparison(
    view: ViewParams, last_day: LastDay, verdict: Verdict, buckets: Sequence[Bucket], now: datetime
) -> str | None:
    """Return the path of the comparison of the time before and after the onset. The buckets are those that dropped."""
    if verdict.began is None:
        return None
    return onset_comparison_path(
        view,
        verdict.began,
        now,
        first=first_scored(buckets, None if last_day.reference is None else last_day.reference_period),
        route=verdict.began_on,
        scorer=last_day.scorer,
        service=last_day.service if len(last_day.services) > 1 else view.service,
    )


def _includes_drop(view: ViewParams, verdict: Verdict) -> bool:
    return verdict.began is None or verdict.began < view.until


def _select_range(view: ViewParams, assessment: Assessment, dropped: Sequence[str]) -> SelectedRange:
    """Return the answers in the selected time range."""
    summary, verdict = assessment.window, assessment.verdict
    comparisons: Sequence[Comparison] = ()
    earlier = assessment.last_day.reference_summary
    if earlier is not None and earlier.until <= view.since:
        windows = ((earlier.since, earlier.until), (view.since, view.until))
        comparisons = compare_summaries(earlier.routes, summary.routes, windows).routes
    current = next((group for group in summary.services if group.newest), None)
    route = dropped[0] if len(dropped) == 1 and _includes_drop(view, verdict) else None
    return SelectedRange(
        current=current,
        routes=summary.routes,
        comparisons=[line for line in comparisons if current is not None and line.fingerprint == current.fingerprint],
        total=_count_scores(summary.routes),
        route=route,
        on_route=None if route is None else _count_scores(group for group in summary.routes if group.route == route),
    )


def _count_scores(groups: Iterable[RouteSummary]) -> MatchCount:
    return MatchCount(count=sum(group.n for group in groups), is_capped=False)


def _cards(
    summaries: Sequence[RouteSummary],
    lines: Sequence[Comparison],
    dropped: Sequence[str],
    by_route: Mapping[str, Sequence[Bucket]],
) -> list[RouteCard]:
    """Return a card for each route: first the routes that dropped, in the verdict's order, then the others.

    The others are sorted by difference, and then by number of scores.
    """
    current = {group.route: group for group in summaries if group.newest}
    comparisons = {line.route: line for line in lines}
    cards = [
        RouteCard(
            route=route,
            current=current.get(route),
            comparison=comparisons.get(route),
            buckets=by_route.get(route, ()),
            dropped=route in dropped,
        )
        for route in sorted({*by_route, *current})
    ]

    def rank(card: RouteCard) -> tuple[int, float, int]:
        n = sum(bucket.n for bucket in card.buckets)
        position = dropped.index(card.route) if card.dropped else len(dropped)
        return position, math.inf if card.difference is None else card.difference, -n

    return sorted(cards, key=rank)
