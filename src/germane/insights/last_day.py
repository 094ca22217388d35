"""The last 24 hours for one service and scorer, compared with the baseline or the preceding period."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from germane.alert import Alert
from germane.alerting import Onset
from germane.baseline import Baseline, RouteBaseline
from germane.insights.context import (
    InsightContext,
    ViewParams,
    choose_scorer,
    choose_second_scorer,
    choose_service,
    existing_or_none,
)
from germane.insights.health import HealthSummary
from germane.insights.onset import load_onset
from germane.insights.situation import (
    DAY,
    DEFAULT_MIN_DROP,
    NOTIFIED_STATES,
    ComparisonPeriod,
    Situation,
)
from germane.insights.verdict import build_verdict
from germane.settings import Drop, Settings
from germane.statistics import Comparisons, WeightedSums, mean_interval
from germane.storage import (
    BaselineVersion,
    Coverage,
    RouteSummary,
    ServiceSummary,
    WindowSummary,
    compare_summaries,
)

WEEK: Final = timedelta(days=7)
HOUR: Final = timedelta(hours=1)
MIN_REFERENCE_PERIOD: Final = HOUR
"""Minimum length of a reference period."""
MAX_ONSETS: Final = 3
"""Maximum number of drops whose onset is estimated, largest first."""
_ALL_ANSWERS: Final = ""
"""The scope of a baseline that covers all answers."""
_Summary = TypeVar("_Summary", RouteSummary, ServiceSummary)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDay:
    """The scores of the last 24 hours, and of the period that they are compared with."""

    service: str | None
    """The selected service, or None if there are no exchanges."""
    scorer: str | None
    """The selected scorer, or None if there are no scores."""
    summary: WindowSummary
    """Summary of all services and scorers in the last 24 hours."""
    widest: WindowSummary
    """The summary of the last 24 hours, or of the view's window if nothing was scored in the last 24 hours."""
    reference_period: ComparisonPeriod | None = None
    """The period that the last day is compared with, or None if there are no scores."""
    reference_summary: WindowSummary | None = None
    """Summary of the service and scorer in the reference period."""

    @property
    def services(self) -> list[str]:
        """Names of all services."""
        groups: list[ServiceSummary | Coverage] = [*self.widest.services, *self.widest.coverage]
        return sorted({group.service for group in groups})

    @property
    def scorers(self) -> list[str]:
        """Names of the scorers of this service."""
        return sorted({group.scorer for group in self.widest.services if group.service == self.service})

    @property
    def fingerprints(self) -> list[ServiceSummary]:
        """Summaries of the whole service, one per fingerprint."""
        return [group for group in self.summary.services if (group.service, group.scorer) == self._key]

    @property
    def current(self) -> ServiceSummary | None:
        """The scores of the whole service with the newest fingerprint."""
        return next((group for group in self.fingerprints if group.newest), None)

    @property
    def reference(self) -> ServiceSummary | None:
        """The scores of the whole service with the same fingerprint in the reference period."""
        current = self.current
        if self.reference_summary is None or current is None:
            return None
        groups = self.reference_summary.services
        return next((group for group in groups if group.fingerprint == current.fingerprint), None)

    @property
    def routes(self) -> list[RouteSummary]:
        """Summaries of the service's routes, one per route and fingerprint."""
        return [group for group in self.summary.routes if (group.service, group.scorer) == self._key]

    @property
    def comparisons(self) -> Comparisons | None:
        """Comparisons of the routes with the reference period."""
        if self.reference_summary is None:
            return None
        earlier, now = self.reference_summary, self.summary
        return compare_summaries(earlier.routes, self.routes, ((earlier.since, earlier.until), (now.since, now.until)))

    @property
    def second(self) -> ServiceSummary | None:
        """The summary of the service for a second scorer, if there is one."""
        groups = [group for group in self.summary.services if group.service == self.service]
        scorer = choose_second_scorer(groups, self.scorer)
        return next((group for group in groups if group.scorer == scorer and group.newest), None)

    @property
    def coverage(self) -> list[Coverage]:
        """Outcomes of the service's exchanges, by route and scorer."""
        return [counts for counts in self.summary.coverage if counts.service == self.service]

    @property
    def _key(self) -> tuple[str | None, str | None]:
        return self.service, self.scorer


def load_last_day(context: InsightContext, view: ViewParams, now: datetime) -> LastDay:
    """Load the last day and its reference period."""
    summary = widest = context.store.trends.window_summary(since=now - DAY, until=now)
    if not summary.services:
        widest = context.store.trends.window_summary(since=view.since, until=view.until)
    groups: list[ServiceSummary | Coverage] = [*widest.services, *widest.coverage]
    requested = existing_or_none(view.service, (group.service for group in groups))
    service = choose_service(widest.services, requested)
    service = service or next((counts.service for counts in widest.coverage), None)
    requested = existing_or_none(view.scorer, (group.scorer for group in groups if group.service == service))
    scorer = choose_scorer((group for group in widest.services if group.service == service), requested)
    day = LastDay(service=service, scorer=scorer, summary=summary, widest=widest)
    if day.current is None:
        return day
    period, reference = _load_reference(context, view, day.current, now)
    return replace(day, reference_period=period, reference_summary=reference)


def load_situation(
    context: InsightContext,
    view: ViewParams,
    last_day: LastDay,
    alerts: Sequence[Alert],
    health: HealthSummary,
) -> Situation:
    """Return the data for the verdict, without onsets.

    ``alerts`` are all open alerts about which channels were notified.
    """
    settings, current = context.settings, last_day.current
    key = (last_day.service, last_day.scorer)
    window_groups = [group for group in last_day.widest.services if (group.service, group.scorer) == key]
    retries = [] if current is not None else context.store.health.list_retries()
    return Situation(
        scorer=last_day.scorer,
        now=last_day.summary.until,
        zone=view.zone,
        current=current,
        reference=last_day.reference,
        reference_period=last_day.reference_period,
        comparisons=last_day.comparisons,
        min_drop=find_min_drop(settings, last_day.scorer),
        alerts=[alert for alert in alerts if alert.service in {"", last_day.service}],
        coverage=last_day.coverage,
        answered_at=health.scoring.last_captured_at,
        scored_at=max((group.latest for group in (*last_day.fingerprints, *window_groups)), default=None),
        retry_reason=next((retry.reason.value for retry in retries), None),
        has_judge=settings.has_server or bool(settings.scorers) or settings.judge == "local",
        has_worker=bool(health.running),
    )


def _load_reference(
    context: InsightContext, view: ViewParams, current: ServiceSummary, now: datetime
) -> tuple[ComparisonPeriod | None, WindowSummary | None]:
    """Return the reference period and its summary.

    The period is the learning period of the active baseline, or the preceding period if there is no baseline.
    """
    version = find_active_baseline(
        context.store.baselines.list_versions(), current.service, current.scorer, current.fingerprint
    )
    # Queries over whole hours can use rollups, which is much faster.
    until = (now - DAY).replace(minute=0, second=0, microsecond=0)
    since = view.since if view.since <= until - MIN_REFERENCE_PERIOD else now - WEEK
    periods = [ComparisonPeriod(since=_next_hour(since), until=until)]
    if version is not None:
        learned_until = min(_next_hour(version.until), until)
        learned = ComparisonPeriod(since=_next_hour(version.since), until=learned_until, baseline=version.number)
        periods = [learned, *periods] if learned.until - learned.since >= MIN_REFERENCE_PERIOD else periods
    for period in periods:
        summary = context.store.trends.window_summary(
            since=period.since, until=period.until, service=current.service, scorer=current.scorer
        )
        if period.baseline is None:
            return period, summary
        # The scores of an imported baseline are not in this database, and those of an old one may have been deleted.
        groups = [group for group in summary.services if group.fingerprint == current.fingerprint]
        if version is not None and version.baseline is not None and any(group.has_min_samples for group in groups):
            return period, at_baseline_levels(summary, version.baseline)
    return None, None


def _next_hour(moment: datetime) -> datetime:
    """Return a time rounded up to a whole hour."""
    floor = moment.replace(minute=0, second=0, microsecond=0)
    return floor if floor == moment else floor + HOUR


def load_route_situation(
    context: InsightContext,
    view: ViewParams,
    route: str,
    *,
    service: str,
    scorer: str,
    health: HealthSummary,
) -> tuple[LastDay, Situation]:
    """Return the last day, and the data for the verdict about one route. Findings come from the service's verdict."""
    last_day = load_last_day(context, replace(view, service=service, scorer=scorer), context.now())
    if (last_day.service, last_day.scorer) != (service, scorer):  # nothing in the last day
        last_day = replace(last_day, service=service, scorer=scorer, reference_period=None, reference_summary=None)
    alerts = [alert for alert in context.store.alerts.list_open() if alert.state in NOTIFIED_STATES]
    situation = load_situation(context, view, last_day, alerts, health)
    current = next((group for group in last_day.routes if group.route == route and group.newest), None)
    reference = None
    if last_day.reference_summary is not None and current is not None:
        key = (route, current.fingerprint)
        groups = last_day.reference_summary.routes
        reference = next((group for group in groups if (group.route, group.fingerprint) == key), None)
    return last_day, with_onsets(context, service, situation.for_route(route, current, reference))


def with_onsets(context: InsightContext, service: str | None, situation: Situation) -> Situation:
    """Return a situation with the onsets of its largest drops."""
    verdict, onsets = build_verdict(situation), dict[str, Onset]()
    fingerprint = None if situation.current is None else situation.current.fingerprint
    if verdict.is_worse and service is not None and situation.scorer is not None:
        for move in verdict.movements[:MAX_ONSETS]:
            onset = load_onset(context, situation.scorer, service, move.route, fingerprint, move.alert)
            onsets |= {} if onset is None else {move.route or "": onset}
    return replace(situation, onsets=onsets)


def find_min_drop(settings: Settings, scorer: str | None) -> float:
    """Return the minimum change of the first active drop rule that covers all answers of a scorer, or the default."""
    rules = (rule for rule in settings.active_rules if isinstance(rule, Drop) and not rule.attributes)
    return next((rule.min_drop for rule in rules if rule.scorer in {None, scorer}), DEFAULT_MIN_DROP)


def find_active_baseline(
    versions: Iterable[BaselineVersion], service: str, scorer: str, fingerprint: str
) -> BaselineVersion | None:
    """Return the active baseline that covers all answers of a service, or None while it is being learned.

    Provisional baselines are ignored, because a single day may not be typical.
    """
    key = (service, scorer, fingerprint, _ALL_ANSWERS)
    active = (version for version in versions if version.status == "active" and not version.is_provisional)
    return next((version for version in active if version.key == key), None)


def baseline_level(baseline: Baseline, route: str | None) -> tuple[float, int] | None:
    """Return a baseline's mean and n for a route, or for the whole service if ``route`` is None.

    Returns None for a route without its own level.
    """
    level = baseline if route is None else baseline.routes.get(route)
    return None if level is None or route in baseline.pooled else (level.mean, level.n)


def at_baseline_levels(summary: WindowSummary, baseline: Baseline) -> WindowSummary:
    """Return the summary of a baseline's period with the levels that are stored in the baseline.

    Recomputed levels differ slightly from stored levels: scores arrive late or are recomputed, and if there are many
    scores, the detector uses only a sample. If the confidence intervals of the stored and the recomputed level do not
    overlap, they measure different quantities (a baseline clips negative scores to 0), and the recomputed level is
    kept. Routes are weighted by the number of scores in their level.
    """
    zeros = sum(level.n - level.committed for level in baseline.routes.values())
    services = [
        _at_level(group, baseline, zeros) if group.fingerprint == baseline.fingerprint else group
        for group in summary.services
    ]
    routes = []
    for group in summary.routes:
        level = None if group.route in baseline.pooled else baseline.routes.get(group.route)
        # The service's level is the mean of its routes' levels, weighted by scores, so comparisons use these weights.
        weight = max(1, round(group.n * baseline.sampling_rate)) if level is None else level.n
        weighted = replace(group, coverage=replace(group.coverage, seen=weight))
        if level is not None and group.fingerprint == baseline.fingerprint:
            weighted = _at_level(weighted, level, level.n - level.committed)
        routes.append(weighted)
    return replace(summary, services=services, routes=routes)


def _at_level(summary: _Summary, level: Baseline | RouteBaseline, zeros: int) -> _Summary:
    if level.n < 2 or summary.interval is None:
        return summary
    n, total = level.n, level.n * level.mean
    squares = (n - 1) * level.deviation**2 + n * level.mean**2
    sums = WeightedSums.of_equal_weights(n=n, n_zero=zeros, total=total, squares=squares)
    interval = mean_interval(sums, level.mean)
    if interval[0] > summary.interval[1] or summary.interval[0] > interval[1]:
        return summary
    return replace(summary, n=n, mean=level.mean, deviation=level.deviation, interval=interval, correlation=None)
