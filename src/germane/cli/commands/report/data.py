"""The data of a report, with its verdict, as JSON and as table rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize
from germane.cli.core.render import (
    ESTIMATE_FIELDS,
    backlog_as_dict,
    comparison_as_dict,
    labeled_as_dict,
    learning_as_dicts,
)
from germane.insights import (
    MEAN_HEADINGS,
    InsightContext,
    ViewParams,
    choose_scorer,
    choose_service,
    load_fleet,
    load_labeled_window,
    mean_cells,
    people_sentence,
    recent_changes,
    report_sentence,
)
from germane.records import select
from germane.score import MIN_SAMPLES
from germane.settings import parse_timezone

if TYPE_CHECKING:
    from germane.annotation import Marker
    from germane.calibration import Calibration
    from germane.insights import LabeledWindow
    from germane.settings import Settings
    from germane.statistics import Comparisons
    from germane.storage import BaselineVersion, Coverage, OutstandingWork, RouteSummary, TrackingStore

HEADINGS: Final = ("route", "scorer", *MEAN_HEADINGS, "scored")
CORRECTION_NOTE: Final = (
    "corrected: adjusted using a free proxy score for all answers; r is its correlation with the scores. "
    "The answers SQL view contains the uncorrected scores."
)
_ROUTE_FIELDS: Final = ("service", "route", "scorer", "fingerprint", "newest")
MIN_CHART_WINDOW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """The data that a report shows."""

    service: str | None
    """The service that the report covers, or None for all services."""
    route: str | None
    """The route that the report covers, or None for all routes."""
    since: datetime
    until: datetime
    """End of the window. The window contains answers with ``since <= started_at < until``."""
    loaded_at: datetime
    summaries: list[RouteSummary]
    coverages: list[Coverage]
    calibrations: list[Calibration]
    """Calibrations for the embedder of the newest scores. They determine labels, and which scores count as low."""
    backlog: OutstandingWork
    learning: list[BaselineVersion]
    judge_changes: list[str]
    """Sentences about judges that have recently changed."""
    labeled: LabeledWindow | None
    """What people say about the answers of the newest window of which answers were drawn; None without labels."""
    comparisons: Comparisons | None = None
    """Comparison with the preceding window, if requested."""
    marker: Marker | None = None
    """Marker between the two windows of the comparison, if any."""

    @property
    def window(self) -> str:
        """The window in words, such as "since 2026-11-19 10:30 UTC". Its end is included unless it is now."""
        end = "" if self.until == self.loaded_at else f" and before {self.until:%Y-%m-%d %H:%M} UTC"
        return f"since {self.since:%Y-%m-%d %H:%M} UTC{end}"

    @property
    def notes(self) -> list[str]:
        """Notes on how to read the means."""
        notes = [CORRECTION_NOTE] if any(summary.correlation is not None for summary in self.summaries) else []
        return (
            self.judge_changes
            + notes
            + [
                f"Labels and the low-score cutoff for {sanitize.line(calibration.scorer, 40)} use calibrated values: "
                f"{calibration}. "
                "Means use raw values."
                for calibration in self.calibrations
            ]
        )

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Table rows for :data:`HEADINGS`. Names are sanitized for terminals, not for HTML."""
        rows = []
        for summary in self.summaries:
            same_route = [other for other in self.summaries if other.route == summary.route]
            has_services = len({other.service for other in same_route}) > 1
            service = f" ({sanitize.line(summary.service, 40)})" if has_services else ""
            key = (summary.service, summary.scorer)
            has_fingerprints = sum((other.service, other.scorer) == key for other in same_route) > 1
            newest = " (newest)" if summary.newest else ""
            fingerprint = f" {sanitize.line(summary.fingerprint)}{newest}" if has_fingerprints else ""
            rows.append(
                (
                    sanitize.line(summary.route, 40) + service,
                    sanitize.line(summary.scorer, 40) + fingerprint,
                    *mean_cells(summary, scorer=summary.scorer),
                    f"{summary.coverage.scored} of {summary.coverage.seen}",
                )
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dict for JSON output."""
        content: dict[str, Any] = {
            "since": self.since,
            "until": self.until,
            "min_samples": MIN_SAMPLES,
            "routes": [
                select(summary, *_ROUTE_FIELDS, *ESTIMATE_FIELDS, "correlation", "coverage")
                for summary in self.summaries
            ],
            "coverage": self.coverages,
            "calibrations": self.calibrations,
            "backlog": backlog_as_dict(self.backlog),
            "learning": learning_as_dicts(self.learning),
            "people": None if self.labeled is None else labeled_as_dict(self.labeled),
        }
        if self.comparisons is not None:
            content["comparison"] = comparison_as_dict(self.comparisons, self.marker)
        return content


def load_report(
    store: TrackingStore, since: datetime, until: datetime | None = None, *, service: str | None, route: str | None
) -> ReportData:
    """Load the data of a report, except the comparison."""

    def matches(row: Coverage | RouteSummary) -> bool:
        return service in {None, row.service} and route in {None, row.route}

    window: dict[str, Any] = {"since": since, "until": until}
    now = store.now()
    summaries = [summary for summary in store.trends.summary(**window, histograms=False) if matches(summary)]
    calibrations = {(each.embedder, each.scorer): each for each in store.labels.list_calibrations()}
    used: dict[str, Calibration] = {}
    for summary in summaries if calibrations else ():
        if summary.newest:
            scored = store.answers.worst(scorer=summary.scorer, fingerprint=summary.fingerprint, since=since, limit=1)
            known = [calibrations.get((each.score.embedder or "", summary.scorer)) for each in scored]
            used |= {calibration.scorer: calibration for calibration in known if calibration}
    return ReportData(
        service=service,
        route=route,
        since=since,
        until=until or now,
        loaded_at=now,
        summaries=summaries,
        coverages=[
            coverage for coverage in store.trends.coverage(**window) if matches(coverage) and coverage.has_exchanges
        ],
        calibrations=list(used.values()),
        backlog=store.backlog.load_outstanding(),
        learning=[version for version in store.baselines.list_learning() if service in {None, version.key.service}],
        judge_changes=list(recent_changes(store, now)),
        labeled=load_labeled_window(
            store, scorer=choose_scorer([one for one in summaries if one.newest]), service=service, route=route
        ),
    )


def report_view(settings: Settings, report: ReportData) -> ViewParams:
    newest = [summary for summary in report.summaries if summary.newest]
    scorer = choose_scorer(newest)
    service = choose_service([summary for summary in newest if summary.scorer == scorer], report.service)
    since = min(report.since, report.until - MIN_CHART_WINDOW)
    zone = parse_timezone(settings.timezone)
    return ViewParams(window="", since=since, until=report.until, scorer=scorer, service=service, zone=zone)


def load_verdict(store: TrackingStore, settings: Settings, report: ReportData) -> tuple[str, str]:
    """Return the dashboard's verdict at the end of the report's window: a sentence and its tone."""
    context = InsightContext(store=store, settings=settings, now=lambda: report.until, read_only=True)
    view = replace(report_view(settings, report), scorer=None, service=report.service)
    verdict = load_fleet(context, view, report.until).verdict
    return report_sentence(verdict), verdict.tone


def describe_labels(settings: Settings, report: ReportData) -> str:
    """Return what people say about the answers; empty without labels."""
    return "" if report.labeled is None else people_sentence(report.labeled, report_view(settings, report))
