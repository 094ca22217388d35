"""The verdict on all services and routes, with the data on which it is based.

All pages, reports and metrics get their verdict from here. Those about one service or route select a part of it, so
that they never disagree. The verdict does not depend on the window that a page shows, and the number of queries does
not depend on the number of services.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Any, Final

from germane.alert import Alert
from germane.insights.context import WINDOWS, InsightContext, ViewParams, choose_scorer, existing_or_none
from germane.insights.health import HealthSummary, load_health
from germane.insights.last_day import LastDay, at_baseline_levels, find_min_drop, next_hour
from germane.insights.onset import explain_drop
from germane.insights.situation import (
    DAY,
    FLEET_LEVEL,
    HOUR,
    NOTIFIED_STATES,
    ComparisonPeriod,
    Situation,
)
from germane.insights.verdict import Verdict, build_verdict
from germane.statistics import Comparison, Comparisons, mark_significant_drops
from germane.storage import (
    BaselineKey,
    BaselineVersion,
    Coverage,
    WindowSummary,
    compare_summaries,
)

WEEK: Final = timedelta(days=7)
LONGEST: Final = max(WINDOWS.values())
LONGEST_SPAN: Final = timedelta(hours=48)
"""The longest period that is compared for routes with too few scores in a day."""
RECENT_LEVEL: Final = 3 * FLEET_LEVEL
"""Like :data:`FLEET_LEVEL`, for all periods other than the last day."""
MIN_REFERENCE_PERIOD: Final = HOUR
"""Minimum length of a reference period."""
_Place = tuple[str, str | None, str]
"""Service, route and fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All services, or the selected one: their last day, and whether their answers got worse."""

    now: datetime
    services: Sequence[str]
    """Names of all services, including those that are not selected."""
    days: Sequence[LastDay]
    """The selected services, by name. Not empty."""
    situations: Sequence[Situation]
    """The situations of these services, in the same order."""
    verdict: Verdict
    health: HealthSummary
    alerts: Sequence[Alert]
    """All open alerts about which channels were notified, of all services."""

    @property
    def day(self) -> LastDay | None:
        """The last day of the selected or only service, or None if there are several."""
        return self.days[0] if len(self.days) == 1 else None

    @property
    def service(self) -> str | None:
        """The selected or only service, or None if there are several."""
        return None if self.day is None else self.day.service

    @property
    def scorer(self) -> str | None:
        """The scorer of all selected services, or None if they have different ones or no scores."""
        scorers = {day.scorer for day in self.days if day.scorer is not None}
        return scorers.pop() if len(scorers) == 1 else None

    @property
    def scorers(self) -> list[str]:
        """Names of the scorers of the selected services."""
        return sorted({scorer for day in self.days for scorer in day.scorers})

    @property
    def alerts_elsewhere(self) -> list[Alert]:
        """Open alerts of services that are not selected."""
        selected = {"", *(day.service for day in self.days)}
        return [alert for alert in self.alerts if alert.service not in selected]

    @property
    def coverage(self) -> list[Coverage]:
        """Outcomes of the last day's exchanges of the selected services, by route, for their scorers."""
        return [counts for day in self.days for counts in day.summary.coverage if counts.scorer == day.scorer]


def load_fleet(context: InsightContext, view: ViewParams, now: datetime) -> Fleet:
    """Load the last day of all services, and return the verdict on the service that the view selects, or on all.

    Raises:
        StorageError: The database is unreachable, or its schema version does not match this code.
    """
    fleet = load_unexplained_fleet(context, view, now)
    return replace(fleet, verdict=_explained(context, fleet.verdict))


def load_unexplained_fleet(context: InsightContext, view: ViewParams, now: datetime) -> Fleet:
    """Load the fleet without the onset and the cause of the drop."""
    health = load_health(context)
    alerts = [alert for alert in context.store.alerts.list_open() if alert.state in NOTIFIED_STATES]
    loading = _Loading(context, view, now, alerts)
    days = loading.load_days()
    situations = _build_situations(loading, days, health)
    selected = [index for index, day in enumerate(days) if view.service in {None, day.service}]
    situations = [situations[index] for index in selected]
    return Fleet(
        now=now,
        services=[day.service for day in days if day.service is not None],
        days=[days[index] for index in selected],
        situations=situations,
        verdict=build_verdict(*situations),
        health=health,
        alerts=alerts,
    )


def _explained(context: InsightContext, verdict: Verdict) -> Verdict:
    """Return the verdict with the onset and the cause of the largest drop."""
    if not verdict.is_worse:
        return verdict
    first, *others = verdict.movements
    situation = explain_drop(context, first)
    return replace(verdict, situation=situation, movements=(replace(first, situation=situation), *others))


@dataclass(frozen=True, slots=True)
class _Loading:
    """Loads the summaries of all services, each with one query."""

    context: InsightContext
    view: ViewParams
    now: datetime
    alerts: Sequence[Alert]

    def summarize(self, since: datetime, until: datetime, scorers: Iterable[str | None] = ()) -> WindowSummary:
        """Return the summary of a period, restricted to a scorer if there is only one."""
        names = set(scorers)
        scorer = names.pop() if len(names) == 1 else None
        return self.context.store.trends.window_summary(since=since, until=until, scorer=scorer)

    def load_days(self) -> list[LastDay]:
        """Return the last day of each service, with the levels that it is compared with."""
        today = self.summarize(self.now - DAY, self.now)
        # Queries over whole hours can use rollups, which is much faster.
        until = (self.now - DAY).replace(minute=0, second=0, microsecond=0)
        week = self.summarize(next_hour(self.now - WEEK), until)
        recent = [today, week]
        if not today.services and not week.services:
            recent.append(self.summarize(self.now - LONGEST, self.now))
        parts = [split_by_service(summary) for summary in recent]
        names = {name for part in parts for name in part} | {alert.service for alert in self.alerts} - {""}
        names |= {self.view.service} if self.view.service else set()
        days = [self._choose(name, [part[name] for part in parts if name in part], today) for name in sorted(names)]
        days = days or [LastDay(service=None, scorer=None, summary=today)]
        return self._with_references(days, parts[1], ComparisonPeriod(since=week.since, until=week.until))

    def _choose(self, service: str, parts: Sequence[WindowSummary], today: WindowSummary) -> LastDay:
        """Choose the scorer of a service: the requested one, or the usual one of the newest period with scores."""
        groups = next((part.services for part in parts if part.services), ())
        scorers = {group.scorer for part in parts for group in part.services}
        scorer = choose_scorer(groups, existing_or_none(self.view.scorer, scorers))
        summary = next((part for part in parts if part.since == today.since), None)
        return LastDay(
            service=service,
            scorer=scorer,
            scorers=sorted(scorers),
            scored_at=max(
                (one.latest for part in parts for one in part.services if one.scorer == scorer), default=None
            ),
            summary=summary or replace(today, routes=(), services=(), coverage=()),
        )

    def _with_references(
        self, days: Sequence[LastDay], week: Mapping[str, WindowSummary], period: ComparisonPeriod
    ) -> list[LastDay]:
        """Add the levels of each service's baseline, or those of the preceding days if there is no baseline."""
        found = [_with_reference(day, period, week.get(day.service or "")) for day in days]
        active = {
            version.key: version
            for version in self.context.store.baselines.list_versions()
            if version.status == "active" and not version.is_provisional and version.baseline is not None
        }
        learned: dict[int, tuple[BaselineVersion, ComparisonPeriod]] = {}
        for index, day in enumerate(days):
            current = day.current
            if current is None:
                continue
            version = active.get(BaselineKey(current.service, current.scorer, current.fingerprint))
            if version is not None:
                until = min(next_hour(version.until), period.until)
                of_baseline = ComparisonPeriod(since=next_hour(version.since), until=until, baseline=version.number)
                if of_baseline.until - of_baseline.since >= MIN_REFERENCE_PERIOD:
                    learned[index] = version, of_baseline
        for shared, indices in share_periods({index: one for index, (_, one) in learned.items()}):
            summaries = split_by_service(self.summarize(*shared, (days[index].scorer for index in indices)))
            for index in indices:
                (version, of_baseline), day = learned[index], days[index]
                found[index] = (
                    _with_baseline(day, version, of_baseline, summaries.get(day.service or "")) or found[index]
                )
        return found

    def compare(self, days: Sequence[LastDay]) -> tuple[Comparisons, dict[_Place, timedelta]]:
        """Compare all routes with their reference periods, over the last day and over other periods.

        A route that dropped significantly only in another period is compared over that one.

        Returns:
            The comparisons, and the lengths of these other periods.
        """
        before = [group for day in days for group in day.earlier_routes]
        after = [group for day in days for group in day.routes]
        first = min((day.reference_period.since for day in days if day.reference_period), default=self.now - WEEK)
        windows = ((first, self.now - DAY), (self.now - DAY, self.now))
        full = compare_summaries(before, after, windows, level=FLEET_LEVEL)
        dropped = {_place(line) for line in full.routes if line.finding == "dropped"}
        found: dict[_Place, Comparison] = {}
        spans: dict[_Place, timedelta] = {}
        recent = self._compare_recent(days, full.routes)
        for line, span in sorted(recent, key=lambda pair: -(pair[0].interval or (0.0, 0.0))[1]):
            if _place(line) not in dropped:
                found[_place(line)], spans[_place(line)] = line, span  # the largest certain drop comes last
        lines = [found.get(_place(line), line) for line in full.routes]
        return replace(full, routes=lines), spans

    def _compare_recent(
        self, days: Sequence[LastDay], lines: Sequence[Comparison]
    ) -> Iterator[tuple[Comparison, timedelta]]:
        """Yield the significant drops over other periods, in which a drop that began hours ago is not diluted.

        Periods of more than a day are for routes with too few scores in a day.
        """
        newest = {(day.service, day.current.fingerprint) for day in days if day.current}
        usual = {_place(line): line for line in lines if (line.service, line.fingerprint) in newest and line.before}
        tested: list[tuple[Comparison, timedelta]] = []
        since = self.now - _longest_span(usual.values())
        for scorer in {day.scorer for day in days if day.current and day.scorer}:
            for mean in self.context.store.trends.recent_means(scorer=scorer, since=since, until=self.now):
                line, span = usual.get((mean.service, mean.route, mean.fingerprint)), self.now - mean.since
                if line is not None and line.scorer == scorer and (span < DAY or not line.is_comparable):
                    tested.append((replace(line, after=mean.estimate).measured(), span))
        marked = mark_significant_drops((line for line, _ in tested), 0.0, RECENT_LEVEL)
        for line, (_, span) in zip(marked, tested, strict=True):
            min_drop = find_min_drop(self.context.settings, line.scorer)
            if line.finding == "dropped" and -(line.difference or 0.0) >= min_drop:
                yield line, span


def _longest_span(lines: Iterable[Comparison]) -> timedelta:
    """Return the length of the longest period to compare: a day if all routes have enough scores in it."""
    return DAY if all(line.is_comparable for line in lines) else LONGEST_SPAN


def _place(line: Comparison) -> _Place:
    return line.service, line.route, line.fingerprint


def split_by_service(summary: WindowSummary) -> dict[str, WindowSummary]:
    """Return the part of a summary about each service."""
    parts: dict[str, dict[str, Any]] = {}
    for name in ("routes", "services", "coverage"):
        for group in getattr(summary, name):
            parts.setdefault(group.service, {"routes": [], "services": [], "coverage": []})[name].append(group)
    return {service: replace(summary, **groups) for service, groups in parts.items()}


def share_periods(periods: Mapping[int, ComparisonPeriod]) -> list[tuple[tuple[datetime, datetime], list[int]]]:
    """Group periods of which each contains a common part that is at least half as long, and return these parts.

    One query per group is enough, because the levels of a baseline are stored. The scores of its period only weight
    the routes.
    """
    groups: list[tuple[datetime, datetime, timedelta, list[int]]] = []
    for index, period in sorted(periods.items(), key=lambda item: (item[1].until, item[1].since)):
        length = period.until - period.since
        for number, (since, until, longest, members) in enumerate(groups):
            start, end, needed = max(since, period.since), min(until, period.until), max(longest, length) / 2
            if end - start >= needed:
                groups[number] = (start, end, max(longest, length), [*members, index])
                break
        else:
            groups.append((period.since, period.until, length, [index]))
    return [((since, until), members) for since, until, _, members in groups]


def _with_reference(day: LastDay, period: ComparisonPeriod, summary: WindowSummary | None) -> LastDay:
    """Return the day with the levels of the preceding days."""
    if day.current is None:
        return day
    if summary is None:
        summary = replace(day.summary, since=period.since, until=period.until, routes=(), services=(), coverage=())
    return replace(day, reference_period=period, reference_summary=_of_scorer(summary, day.scorer))


def _with_baseline(
    day: LastDay, version: BaselineVersion, period: ComparisonPeriod, summary: WindowSummary | None
) -> LastDay | None:
    """Return the day with the levels of a baseline, or None if its scores are not in the database.

    The scores of an imported baseline are not in this database, and those of an old one may have been deleted.
    """
    groups = () if summary is None else _of_scorer(summary, day.scorer).services
    known = any(group.fingerprint == version.key.fingerprint and group.has_min_samples for group in groups)
    if summary is None or version.baseline is None or not known:
        return None
    levels = at_baseline_levels(_of_scorer(summary, day.scorer), version.baseline)
    return replace(day, reference_period=period, reference_summary=levels)


def _of_scorer(summary: WindowSummary, scorer: str | None) -> WindowSummary:
    routes = [group for group in summary.routes if group.scorer == scorer]
    return replace(summary, routes=routes, services=[group for group in summary.services if group.scorer == scorer])


def _build_situations(loading: _Loading, days: Sequence[LastDay], health: HealthSummary) -> list[Situation]:
    """Return the data for the verdict on each service."""
    settings, store = loading.context.settings, loading.context.store
    compared, spans = loading.compare(days)
    lines: dict[str, dict[str, Any]] = {}
    for name, found in (("routes", compared.routes), ("services", compared.services)):
        for line in found:
            lines.setdefault(line.service, {"routes": [], "services": []})[name].append(line)
    lengths: dict[str, dict[str, timedelta]] = {}
    for (service, route, _), span in spans.items():
        lengths.setdefault(service, {})[route or ""] = span
    retries = [] if all(day.current for day in days) else store.health.list_retries()
    usual = Situation(
        scorer=None,
        now=loading.now,
        is_named=len(days) > 1,
        zone=loading.view.zone,
        answered_at=health.scoring.last_captured_at,
        # Importing the scorers, which know their defaults, would delay every report by a quarter of a second.
        has_judge=bool(
            settings.has_server or settings.scorers or settings.judge == "local" or find_spec("onnxruntime")
        ),
        has_worker=bool(health.running),
    )
    situations = []
    for day in days:
        service, none = day.service or "", {"routes": (), "services": ()}
        situations.append(
            replace(
                usual,
                service=day.service,
                scorer=day.scorer,
                current=day.current,
                reference=day.reference,
                reference_period=day.reference_period,
                comparisons=None if day.reference_summary is None else replace(compared, **lines.get(service, none)),
                spans=lengths.get(service, {}),
                min_drop=find_min_drop(settings, day.scorer),
                alerts=[alert for alert in loading.alerts if alert.service in {"", day.service}],
                coverage=day.summary.coverage,
                scored_at=day.scored_at,
                retry_reason=None if day.current else next((retry.reason.value for retry in retries), None),
            )
        )
    return situations


def load_route_verdict(
    context: InsightContext, view: ViewParams, route: str, *, service: str, scorer: str
) -> tuple[Fleet, Verdict]:
    """Return the last day of a service, and the verdict on one of its routes.

    Findings come from the tests across all routes of all services.
    """
    fleet = load_unexplained_fleet(context, replace(view, service=service, scorer=scorer), context.now())
    (day,), (situation,) = fleet.days, fleet.situations
    if day.scorer != scorer:  # no scores in the last week
        day = replace(day, scorer=scorer, reference_period=None, reference_summary=None)
        situation = replace(situation, scorer=scorer, comparisons=None)
    current = next((group for group in day.routes if group.route == route and group.newest), None)
    key = (route, current and current.fingerprint)
    reference = next((one for one in day.earlier_routes if (one.route, one.fingerprint) == key), None)
    verdict = build_verdict(situation.for_route(route, current, reference))
    return replace(fleet, days=[day]), _explained(context, verdict)
