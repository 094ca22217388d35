"""The page for one route: all scores over time, the distribution of scores, breakdowns and the worst answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from germane.alert import Alert
from germane.alerting import MAX_SCORES_READ
from germane.annotation import Marker
from germane.insights.cause_shares import CauseShare, load_cause_shares
from germane.insights.charts import MAX_MARKS, Split, histogram_figure
from germane.insights.context import (
    InsightContext,
    ViewParams,
    choose_scorer,
    choose_service,
    existing_or_none,
    from_one_snapshot,
    load_buckets,
)
from germane.insights.fleet import load_route_verdict
from germane.insights.formatting import humanize
from germane.insights.health import StatusBar
from germane.insights.labeled_window import LabeledWindow, labeled_band, load_labeled_window
from germane.insights.last_day import baseline_level, find_active_baseline
from germane.insights.score_chart import draw_score_chart, load_steps
from germane.insights.situation import (
    ComparisonPeriod,
    Situation,
    alert_began_at,
    alert_concerns_route,
    chart_markers,
    first_scored,
    onset_comparison_path,
)
from germane.insights.usage import Usage, load_usage
from germane.insights.verdict import Verdict
from germane.insights.wording import describe_period
from germane.insights.worst_answers import WorstAnswer, load_disagreement, load_worst_answers
from germane.score import COSINE_SCORERS, LOW_SCORE, MIN_SAMPLES
from germane.storage import BaselineVersion, Coverage, Disagreement, RouteMean, RouteSummary

MAX_CHARTS: Final = 12
"""Maximum number of scorers with a chart."""
MANY_CHARTS: Final = 3
"""Minimum number of scorers at which all charts but the first are small, so that the page stays small."""
SMALL_CHART_POINTS: Final = 10
"""Target for the number of points in a small chart."""
MAX_BREAKDOWN_ROWS: Final = 12
"""Maximum number of rows in a breakdown by model or another dimension."""
MAX_ALERTS: Final = 200
"""Maximum number of alerts that are searched for the route's alerts."""
_NO_CHART: Final = Markup()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBaselineLevel:
    """The baseline's level for a route."""

    mean: float
    n: int
    since: datetime
    """Start of the period that the baseline was learned from, in UTC."""
    until: datetime
    name: str
    """A name such as "baseline 2, 13 Nov to 18 Nov"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteScorer:
    """The scores of one scorer on a route."""

    scorer: str
    summary: RouteSummary
    """Summary of the scores with the newest fingerprint."""
    earlier: Sequence[RouteSummary] = ()
    """Summaries of the scores with other fingerprints in this window. They are never averaged with the newest."""
    baseline: RouteBaselineLevel | None = None
    chart: Markup = _NO_CHART

    @property
    def change(self) -> float | None:
        """The mean minus the baseline's mean, or None if there is no baseline or there are too few scores."""
        if self.baseline is None or not self.summary.has_min_samples:
            return None
        return self.summary.mean - self.baseline.mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """One scorer's means by model, prompt version or an attribute."""

    name: str
    means: Sequence[RouteMean]
    """Means of the scores with the newest fingerprint, sorted by number of scores, largest first."""
    hidden: int = 0
    """Number of rows that are not shown because they exceed the maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteInsight:
    """The content of a route's page."""

    route: str
    service: str | None
    services: Sequence[str] = ()
    scorer: str | None = None
    """The selected scorer."""
    scorers: Sequence[str] = ()
    lines: Sequence[RouteScorer] = ()
    """One entry per scorer, the selected scorer first."""
    coverage: Sequence[Coverage] = ()
    """Coverage by scorer, the selected scorer first. Includes scorers without scores."""
    histogram: Markup = _NO_CHART
    breakdowns: Sequence[Breakdown] = ()
    worst: Sequence[WorstAnswer] = ()
    disagreement: Disagreement | None = None
    """Disagreement between human labels and the judge in this window, or None if no answer has a label."""
    alerts: Sequence[Alert] = ()
    markers: Sequence[Marker] = ()
    situation: Situation | None = None
    """The last 24 hours on this route, which the verdict is about, or None if the window has no scores."""
    verdict: Verdict | None = None
    onset_comparison: str | None = None
    """Path of the comparison of the time before and after the onset of the drop, if there is one."""
    cause_shares: Sequence[CauseShare] = ()
    """Shares of answers with symptoms of a cause, before and since the onset of the drop, if there is one."""
    labeled: LabeledWindow | None = None
    """What people say about the route's answers, or None without labels of the route."""
    usage: Usage | None = None
    """Response times, and costs of the selected scorer."""
    status: StatusBar | None = None

    @property
    def events(self) -> list[tuple[datetime, Alert | None, Marker | None]]:
        """The alerts and markers with their times, newest first."""
        alerts: list[tuple[datetime, Alert | None, Marker | None]] = [
            (alert_began_at(alert), alert, None) for alert in self.alerts
        ]
        markers: list[tuple[datetime, Alert | None, Marker | None]] = [
            (marker.at, None, marker) for marker in self.markers
        ]
        return sorted([*alerts, *markers], key=lambda event: event[0], reverse=True)

    @property
    def coverage_of_day(self) -> Coverage | None:
        """Outcomes of the last day's exchanges on this route for the selected scorer."""
        counts = () if self.situation is None else self.situation.coverage
        return next((one for one in counts if one.scorer == self.scorer), None)

    @property
    def first(self) -> RouteScorer | None:
        """The entry for the selected scorer, or None if it has no scores in this window."""
        return next((line for line in self.lines if line.scorer == self.scorer), None)

    @property
    def has_many_charts(self) -> bool:
        """Whether there are too many scorers to draw each of them large."""
        return len(self.lines) >= MANY_CHARTS

    @property
    def seen(self) -> int:
        """Number of exchanges in the window."""
        return max((counts.seen for counts in self.coverage), default=0)


@from_one_snapshot
def load_route(context: InsightContext, view: ViewParams, route: str, root: str = "") -> RouteInsight | None:
    """Load the content of a route's page. Returns None if the route has never been declared or seen.

    ``root`` is the prefix of every link.
    """
    overall = context.store.trends.window_summary(since=view.since, until=view.until, route=route, histograms=True)
    summaries, coverage = overall.routes, overall.coverage
    if not summaries and not coverage and route not in {counts.route for counts in context.store.trends.coverage()}:
        return None
    service = choose_service(summaries, view.service)
    of_service = [group for group in summaries if service in {None, group.service}]
    scorer = choose_scorer(of_service, existing_or_none(view.scorer, (group.scorer for group in of_service)))
    alerts = _load_alerts(context, view, service, route)
    markers = context.store.trends.list_markers(since=view.since, until=view.until, service=service)
    insight = RouteInsight(
        route=route,
        service=service,
        services=sorted({group.service for group in summaries} | {counts.service for counts in coverage}),
        scorer=scorer,
        scorers=sorted({group.scorer for group in of_service}),
        lines=_load_lines(context, view, of_service, scorer),
        coverage=_select_coverage(coverage, service, scorer),
        alerts=alerts,
        markers=markers,
    )
    if insight.first is None:
        return insight
    return _with_charts(context, view, _with_verdict(context, view, insight, insight.first, root), root)


def _select_coverage(coverage: Iterable[Coverage], service: str | None, scorer: str | None) -> list[Coverage]:
    """Return the counts for a service, those of the selected scorer first."""
    counted = [counts for counts in coverage if service in {None, counts.service} and counts.seen]
    # Counts with an empty scorer are for exchanges that were dropped before a scorer was assigned.
    counted = [counts for counts in counted if counts.scorer] or counted
    return sorted(counted, key=lambda counts: (counts.scorer != scorer, counts.scorer))


def _with_verdict(
    context: InsightContext, view: ViewParams, insight: RouteInsight, line: RouteScorer, root: str
) -> RouteInsight:
    """Add the verdict and the details of the selected scorer, which has scores in the window."""
    summary = line.summary
    compared: dict[str, Any] = {"route": insight.route, "scorer": summary.scorer, "service": summary.service}
    fleet, verdict = load_route_verdict(context, view, **compared)
    situation, period = verdict.situation, fleet.days[0].reference_period
    comparison, shares = None, []
    if verdict.began is not None:
        buckets = load_buckets(context.store, view, **compared)
        first = first_scored(buckets, None if situation.reference is None else period)
        comparison = onset_comparison_path(view, verdict.began, context.now(), first=first, **compared)
        shares = load_cause_shares(context.store, verdict.began, context.now(), **compared)
    return replace(
        insight,
        situation=situation,
        verdict=verdict,
        onset_comparison=comparison,
        cause_shares=shares,
        status=StatusBar(open_alerts=len(fleet.alerts), health=fleet.health),
        histogram=_load_histogram(context, view, line),
        breakdowns=list(_load_breakdowns(context, view, summary)),
        labeled=load_labeled_window(context.store, **compared),
        usage=load_usage(
            context,
            replace(view, max_points=SMALL_CHART_POINTS) if insight.has_many_charts else view,
            **compared,
            root=root,
        ),
        worst=load_worst_answers(context.store, [summary], view.since, view.until),
        disagreement=load_disagreement(context.store, summary, view.since, view.until),
    )


def list_routes(context: InsightContext, limit: int = 100) -> list[str]:
    """Return the names of up to ``limit`` routes that have been declared or seen, in alphabetical order."""
    return sorted({counts.route for counts in context.store.trends.coverage()})[:limit]


def _load_alerts(context: InsightContext, view: ViewParams, service: str | None, route: str) -> list[Alert]:
    """Return the route's alerts that began in the window or are open, open alerts first."""
    recent = context.store.alerts.search(since=view.since, limit=MAX_ALERTS)
    ids = {alert.id for alert in recent}
    alerts = [*recent, *(alert for alert in context.store.alerts.list_open() if alert.id not in ids)]
    relevant = [alert for alert in alerts if alert_concerns_route(alert, service, route)]
    in_window = [alert for alert in relevant if alert_began_at(alert) < view.until]
    return sorted(in_window, key=lambda alert: (not alert.is_open, -alert.starts_at.timestamp()))


def _load_lines(
    context: InsightContext, view: ViewParams, summaries: Sequence[RouteSummary], scorer: str | None
) -> list[RouteScorer]:
    versions = context.store.baselines.list_versions()
    newest = [group for group in summaries if group.newest]
    newest.sort(key=lambda group: (group.scorer != scorer, group.scorer, group.service))
    lines = []
    for summary in newest[:MAX_CHARTS]:
        key = (summary.service, summary.scorer)
        earlier = [group for group in summaries if not group.newest and (group.service, group.scorer) == key]
        baseline = find_route_baseline(versions, summary, view)
        lines.append(RouteScorer(scorer=summary.scorer, summary=summary, earlier=earlier, baseline=baseline))
    return lines


def _with_charts(context: InsightContext, view: ViewParams, insight: RouteInsight, root: str) -> RouteInsight:
    """Draw a chart for each scorer, divided at the onset of the drop. The charts share the marks of one."""
    onset = None if insight.verdict is None else insight.verdict.onset
    place = {"service": insight.lines[0].summary.service, "route": insight.route}
    sample = context.store.answers.sample_scores(
        [line.scorer for line in insight.lines], view.since, view.until, **place
    )
    split = None if onset is None else Split(at=onset.at, interval=onset.interval, is_worse=True)
    shared: dict[str, Any] = {
        "sample": sample,
        "split": split,
        "markers": chart_markers(insight.alerts, insight.markers, route=insight.route, view=view),
        "root": root,
        "max_marks": MAX_MARKS // len(insight.lines),
    }
    sizes = {line.scorer: line.summary.n for line in insight.lines[1:]} if insight.has_many_charts else {}

    def min_samples(name: str) -> int:
        return MIN_SAMPLES if view.chosen_bucket else max(MIN_SAMPLES, sizes.get(name, 0) // SMALL_CHART_POINTS)

    lines, parts = [], load_steps(context.store, view, split, min_samples=min_samples, **place)
    for index, line in enumerate(insight.lines):
        of_line = {**place, "scorer": line.scorer, "service": line.summary.service}
        chart = draw_score_chart(
            context.store,
            view,
            of_line,
            title=f"{humanize(line.scorer)} on {insight.route} over time",
            name=f"trend-{index}",
            baseline=None if line.baseline is None else line.baseline.mean,
            baseline_name="" if line.baseline is None else line.baseline.name,
            answers=view.link_without_range("/answers", **of_line),
            steps=[part.get(line.scorer, []) for part in parts],
            labeled=labeled_band(insight.labeled, line.scorer),
            is_secondary=line.scorer in sizes,
            **shared,
        )
        lines.append(replace(line, chart=chart))
    return replace(insight, lines=lines)


def find_route_baseline(
    versions: Iterable[BaselineVersion], mean: RouteMean, view: ViewParams
) -> RouteBaselineLevel | None:
    """Return the active baseline's level for a route, or None if there is none."""
    version = find_active_baseline(versions, mean.service, mean.scorer, mean.fingerprint)
    level = None if version is None or version.baseline is None else baseline_level(version.baseline, mean.route)
    if version is None or level is None:
        return None
    period = ComparisonPeriod(since=version.since, until=version.until, baseline=version.number)
    return RouteBaselineLevel(
        mean=level[0], n=level[1], since=version.since, until=version.until, name=describe_period(period, view)
    )


def _load_histogram(context: InsightContext, view: ViewParams, line: RouteScorer) -> Markup:
    """Return a histogram of the scores in the window, and in the baseline's period or the preceding window."""
    since, until = view.since - (view.until - view.since), view.since
    name = describe_period(ComparisonPeriod(since=since, until=until), view)
    if line.baseline is not None:
        since, until, name = line.baseline.since, line.baseline.until, line.baseline.name
    mean = line.summary
    means = context.store.trends.means(
        scorer=mean.scorer, since=since, until=until, route=mean.route, service=mean.service
    )
    before = next((group.histogram for group in means if group.fingerprint == mean.fingerprint), None)
    title = f"Distribution of {humanize(line.scorer).lower()} on {mean.route}"
    low_below = None if line.scorer in COSINE_SCORERS else LOW_SCORE
    window = f"last {view.window[:-1]} {view.window[-1]}" if view.window else "this window"
    weights = [() if one is None else one.weights for one in (mean.histogram, before)]
    return histogram_figure(*weights, title=title, name="spread", names=(window, name), low_below=low_below)


def _load_breakdowns(context: InsightContext, view: ViewParams, summary: RouteMean) -> Iterator[Breakdown]:
    # Until the worker has added a dimension to the rollups, a breakdown of many scores would take seconds.
    names = context.settings.breakdowns
    rolled = names if summary.n <= MAX_SCORES_READ else context.store.trends.list_rolled_dimensions()
    for name in filter(rolled.__contains__, names):
        means = context.store.trends.means(
            scorer=summary.scorer,
            since=view.since,
            until=view.until,
            route=summary.route,
            service=summary.service,
            by=name,
            histograms=False,
        )
        groups = sorted((mean for mean in means if mean.fingerprint == summary.fingerprint), key=lambda mean: -mean.n)
        if any(group.label for group in groups):
            hidden = max(0, len(groups) - MAX_BREAKDOWN_ROWS)
            yield Breakdown(name=name, means=groups[:MAX_BREAKDOWN_ROWS], hidden=hidden)
