"""The overview page: whether answers got worse, on which routes, and which answers are the worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from germane.alert import Alert
from germane.insights.charts import ChartMarker
from germane.insights.context import InsightContext, ViewParams
from germane.insights.health import StatusBar, load_health
from germane.insights.last_day import LastDay, load_last_day, load_situation
from germane.insights.situation import (
    DAY,
    NOTIFIED_STATES,
    Situation,
    alert_began_at,
    chart_markers,
)
from germane.insights.verdict import Verdict, build_verdict
from germane.insights.worst_answers import WorstAnswer, load_disagreement, load_worst_answers
from germane.score import NONCOMMITTAL
from germane.settings import SCORE_RULES
from germane.storage import Bucket, Comparison, Coverage, Disagreement, RouteSummary

MAX_CARDS: Final = 12
"""Maximum number of routes with a chart. Other routes are only listed."""
_MAX_MARKERS: Final = 50
"""Maximum number of markers, and of alerts, on a chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCard:
    """A route's scores from the last day, their change from the reference period, and their trend."""

    route: str
    current: RouteSummary | None
    """Summary of the last day's scores with the newest fingerprint, or None if there are no scores."""
    comparison: Comparison | None
    buckets: Sequence[Bucket]
    dropped: bool
    """Whether scores dropped significantly, or an alert is open."""

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
    worst: Sequence[WorstAnswer]
    """The worst answers from the last day."""
    disagreement: Disagreement | None
    """Disagreement between human labels and the judge in the view's window, or None if no answer has a label."""
    status: StatusBar

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


def load_overview(context: InsightContext, view: ViewParams) -> Overview:
    """Load the overview in a few snapshots.

    Raises:
        StorageError: The database is unreachable, or its schema version does not match this code.
    """
    store, now = context.store, context.now()
    last_day = load_last_day(context, view, now)
    current = last_day.current
    alerts = [alert for alert in store.alerts.list_open() if alert.state in NOTIFIED_STATES]
    status = StatusBar(open_alerts=len(alerts), health=load_health(context))
    query: dict[str, Any] = {
        "scorer": last_day.scorer or "",
        "service": last_day.service,
        "bucket": last_day.bucket(view),
        "timezone": view.zone or UTC,
    }
    buckets, route_buckets = store.trends.overall_and_by_route(**query, since=view.since, until=view.until)
    by_route: dict[str, list[Bucket]] = {}
    for bucket in route_buckets:
        by_route.setdefault(bucket.group or "", []).append(bucket)
    situation = load_situation(context, view, last_day, alerts, by_route, status.health)
    verdict = build_verdict(situation)
    cards = _cards(last_day, situation, verdict, by_route)
    # Markers are deploys, and score alerts that began in the view's window.
    window: dict[str, Any] = {"since": view.since, "until": view.until}
    markers = store.trends.list_markers(**window, service=last_day.service, limit=_MAX_MARKERS)
    marked_alerts = [
        alert
        for alert in store.alerts.search(since=view.since - DAY, limit=_MAX_MARKERS)
        if alert.service == last_day.service and alert.scorer in {None, last_day.scorer}
        if alert.type in SCORE_RULES and alert.fired_at is not None
        if view.since <= alert_began_at(alert) < view.until
    ]
    return Overview(
        now=now,
        last_day=last_day,
        situation=situation,
        verdict=verdict,
        alerts_elsewhere=[alert for alert in alerts if alert.service not in {"", last_day.service}],
        bucket=query["bucket"],
        buckets=buckets,
        cards=cards[:MAX_CARDS],
        routes_without_card=[card.route for card in cards[MAX_CARDS:]],
        markers=chart_markers(marked_alerts, markers, view=view),
        worst=[] if current is None else load_worst_answers(store, current, now - DAY, now),
        disagreement=None if current is None else load_disagreement(store, current, view.since, view.until),
        status=status,
    )


def _cards(
    last_day: LastDay, situation: Situation, verdict: Verdict, by_route: Mapping[str, Sequence[Bucket]]
) -> list[RouteCard]:
    """Return a card for each route: first the routes that dropped, in the verdict's order, then the others.

    The others are sorted by difference, and then by number of scores.
    """
    dropped = verdict.routes if verdict.state in {"worse", "recovering"} else ()
    current = {group.route: group for group in last_day.routes if group.newest}
    comparisons = {line.route: line for line in situation.routes}
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
        return position, 3.0 if card.difference is None else card.difference, -n

    return sorted(cards, key=rank)
