"""The last 24 hours for one service and scorer, and the levels of the baseline or the preceding period."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from germane.baseline import Baseline, RouteBaseline
from germane.insights.context import choose_second_scorer
from germane.insights.situation import DEFAULT_MIN_DROP, HOUR, ComparisonPeriod
from germane.settings import Drop, Settings
from germane.statistics import WeightedSums, mean_interval
from germane.storage import BaselineVersion, RouteSummary, ServiceSummary, WindowSummary

_ALL_ANSWERS: Final = ""
"""The scope of a baseline that covers all answers."""
_Summary = TypeVar("_Summary", RouteSummary, ServiceSummary)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDay:
    """One service's scores of the last 24 hours, and of the period that they are compared with."""

    service: str | None
    """The service, or None if there are no exchanges."""
    scorer: str | None
    """The selected scorer, or None if there are no scores."""
    scorers: Sequence[str] = ()
    """Names of the scorers of this service."""
    scored_at: datetime | None = None
    """Time of the newest answer with a score of this scorer."""
    summary: WindowSummary
    """Summary of the service in the last 24 hours, by all scorers."""
    reference_period: ComparisonPeriod | None = None
    """The period that the last day is compared with, or None if there are no scores."""
    reference_summary: WindowSummary | None = None
    """Summary of the service and scorer in the reference period."""

    @property
    def fingerprints(self) -> list[ServiceSummary]:
        """Summaries of the whole service, one per fingerprint."""
        return [group for group in self.summary.services if group.scorer == self.scorer]

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
        return [group for group in self.summary.routes if group.scorer == self.scorer]

    @property
    def earlier_routes(self) -> list[RouteSummary]:
        """Summaries of the routes in the reference period."""
        return [] if self.reference_summary is None else list(self.reference_summary.routes)

    @property
    def second(self) -> ServiceSummary | None:
        """The summary of the service for a second scorer, if there is one."""
        scorer = choose_second_scorer(self.summary.services, self.scorer)
        return next((group for group in self.summary.services if group.scorer == scorer and group.newest), None)


def next_hour(moment: datetime) -> datetime:
    """Return a time rounded up to a whole hour."""
    floor = moment.replace(minute=0, second=0, microsecond=0)
    return floor if floor == moment else floor + HOUR


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
