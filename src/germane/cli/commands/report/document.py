"""Report data as JSON, as table rows, and as a document with a verdict, charts and the worst answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize
from germane.cli.core.render import (
    COMPARISON_HEADINGS,
    backlog_as_dict,
    comparison_as_dict,
    comparison_rows,
    comparison_title,
    coverage_as_dict,
    describe_learning,
    describe_missing_scores,
    describe_result,
    find_baseline_mean,
    learning_as_dicts,
)
from germane.insights import (
    DEFAULT_WINDOW,
    LOADED_PER_ANSWER,
    MAX_REFUSALS,
    MEAN_HEADINGS,
    NONCOMMITTAL,
    WINDOWS,
    Document,
    DocumentTable,
    InsightContext,
    Section,
    TrendChart,
    ViewParams,
    WorstAnswer,
    alert_concerns_route,
    as_worst_answers,
    chart_markers,
    chart_points,
    choose_scorer,
    choose_service,
    humanize,
    load_overview,
    mean_cells,
    trend_figure,
)
from germane.score import LOWEST_BAND, MIN_SAMPLES
from germane.settings import parse_timezone

if TYPE_CHECKING:
    from germane.annotation import Marker
    from germane.calibration import Calibration
    from germane.settings import Settings
    from germane.storage import (
        BaselineVersion,
        Bucket,
        Comparisons,
        Coverage,
        OutstandingWork,
        RouteSummary,
        TrackingStore,
    )

HEADINGS: Final = ("route", "scorer", *MEAN_HEADINGS, "scored")
CORRECTION_NOTE: Final = (
    "corrected: adjusted using a free proxy score for all answers; r is its correlation with the scores. "
    "The answers SQL view contains the uncorrected scores."
)
MAX_WORST_ANSWERS: Final = 10
MAX_CHARTS: Final = 8
MAX_TREND_ROWS: Final = 31
"""Maximum number of rows in a trend table. Longer trends are shown with one row per day, for the newest days."""
MAX_EVENTS: Final = 50
"""Maximum number of alerts, and of markers, on a chart."""
MAX_TEXT_LENGTH: Final = 400
"""Maximum length of a displayed question or answer, in characters."""
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
    """End of the window, which contains the answers with ``since <= started_at < until``."""
    loaded_at: datetime
    summaries: list[RouteSummary]
    coverages: list[Coverage]
    calibrations: list[Calibration]
    """Calibrations for the embedder of the newest scores, which determine labels and which scores count as low."""
    backlog: OutstandingWork
    learning: list[BaselineVersion]
    comparisons: Comparisons | None = None
    """Comparison with the preceding window, if requested."""
    marker: Marker | None = None
    """Marker between the two windows of the comparison, if any."""

    @property
    def window(self) -> str:
        """The window, such as "since 2026-11-19 10:30 UTC", with its end if that is not now."""
        end = "" if self.until == self.loaded_at else f" and before {self.until:%Y-%m-%d %H:%M} UTC"
        return f"since {self.since:%Y-%m-%d %H:%M} UTC{end}"

    @property
    def notes(self) -> list[str]:
        """Notes on how to read the means."""
        notes = [CORRECTION_NOTE] if any(summary.correlation is not None for summary in self.summaries) else []
        return notes + [
            f"Labels and the low-score cutoff for {sanitize.line(calibration.scorer, 40)} use calibrated values: "
            f"{calibration}. "
            "Means use raw values."
            for calibration in self.calibrations
        ]

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
                    *mean_cells(summary),
                    f"{summary.coverage.scored} of {summary.coverage.seen}",
                )
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dict for JSON output."""
        comparison = {} if self.comparisons is None else comparison_as_dict(self.comparisons, self.marker)
        return {
            "since": self.since,
            "until": self.until,
            "min_samples": MIN_SAMPLES,
            "routes": [
                {
                    "service": summary.service,
                    "route": summary.route,
                    "scorer": summary.scorer,
                    "fingerprint": summary.fingerprint,
                    "newest": summary.newest,
                    "n": summary.n,
                    "has_min_samples": summary.has_min_samples,
                    "mean": summary.mean,
                    "interval": summary.interval,
                    "correlation": summary.correlation,
                    "low_share": summary.low_share,
                    "noncommittal_share": summary.noncommittal_share,
                    "coverage": coverage_as_dict(summary.coverage),
                }
                for summary in self.summaries
            ],
            "coverage": list(map(coverage_as_dict, self.coverages)),
            "calibrations": list(map(asdict, self.calibrations)),
            "backlog": backlog_as_dict(self.backlog),
            "learning": learning_as_dicts(self.learning),
            **({"comparison": comparison} if comparison else {}),
        }


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
        backlog=store.queue.load_outstanding(),
        learning=[version for version in store.baselines.list_learning() if service in {None, version.key.service}],
    )


def _view(settings: Settings, report: ReportData) -> ViewParams:
    newest = [summary for summary in report.summaries if summary.newest]
    scorer = choose_scorer(newest)
    service = choose_service([summary for summary in newest if summary.scorer == scorer], report.service)
    since = min(report.since, report.until - MIN_CHART_WINDOW)
    zone = parse_timezone(settings.timezone)
    return ViewParams(window="", since=since, until=report.until, scorer=scorer, service=service, zone=zone)


def load_verdict(store: TrackingStore, settings: Settings, report: ReportData) -> tuple[str, str]:
    """Return the verdict of the dashboard's overview at the end of the report's window, as a sentence and its tone."""
    context = InsightContext(store=store, settings=settings, now=lambda: report.until, read_only=True)
    # Use the overview's default window, so that the report and the page give the same verdict.
    view = replace(_view(settings, report), since=report.until - WINDOWS[DEFAULT_WINDOW])
    verdict = load_overview(context, view).verdict
    # Links to dashboard pages do not work in a file.
    sentence = "".join(piece.text for piece in verdict.pieces if piece.kind != "link")
    return re.sub(r"(\s+or)*\s*$", "", sentence), verdict.tone


def create_document(store: TrackingStore, settings: Settings, report: ReportData) -> Document:
    """Create a document from the report's data and the stored verdict, trends, worst answers and open alerts."""
    newest = [summary for summary in report.summaries if summary.newest]
    scorer, view = choose_scorer(newest), _view(settings, report)
    sentence, tone = load_verdict(store, settings, report)
    sections = [
        Section(title="Routes", table=DocumentTable(headings=HEADINGS, rows=report.rows), items=report.notes)
        if report.summaries
        else Section(title="Routes", paragraphs=["No scores."])
    ]
    if report.comparisons is not None:
        rows = comparison_rows(report.comparisons)
        comparison = Section(
            title="Before and after",
            paragraphs=[comparison_title(report.comparisons, report.marker)],
            table=DocumentTable(headings=COMPARISON_HEADINGS, rows=rows) if rows else None,
            items=list(describe_result(report.comparisons)),
        )
        sections.append(comparison)
    sections += _trend_sections(store, report, view, newest)
    sections += _worst_sections(store, report, newest, scorer)
    alerts = [
        f"{alert.severity}, {alert.state}, since {alert.starts_at:%Y-%m-%d %H:%M} UTC: "
        f"{sanitize.line(alert.message or alert.rule, 600)}"
        for alert in store.alerts.list_open()
        if report.service in {None, alert.service}
    ]
    missing = describe_missing_scores(report.coverages, report.backlog)
    learning = [describe_learning(version, report.loaded_at) for version in report.learning]
    lists = {"Open alerts": alerts, "Without a score": missing, "Learning baselines": learning}
    sections += [Section(title=title, items=items) for title, items in lists.items() if items]
    return Document(
        title="germane report",
        summary=sentence,
        tone=tone,
        paragraphs=[f"Answers given {report.window}, as of {report.loaded_at:%Y-%m-%d %H:%M} UTC."],
        sections=sections,
    )


def load_style() -> str:
    """Return the dashboard's style sheet, which also styles charts."""
    return (files("germane.dashboard") / "static" / "style.css").read_text(encoding="utf-8")


def _trend_sections(
    store: TrackingStore, report: ReportData, view: ViewParams, newest: Sequence[RouteSummary]
) -> Iterator[Section]:
    """Yield one section with a chart per service and scorer that has scores in the window.

    The service and scorer shown on the overview come first.
    """
    pairs = {(summary.service, summary.scorer) for summary in newest}
    first = (view.service, view.scorer)
    ordered = sorted(pairs, key=lambda pair: (pair != first, pair[0] != view.service, pair))
    window: dict[str, Any] = {"since": view.since, "until": view.until}
    zone = view.zone or UTC
    for service, scorer in ordered[:MAX_CHARTS]:
        buckets = store.trends.over_time(
            scorer=scorer,
            service=service,
            route=report.route,
            **window,
            bucket=view.bucket,
            histograms=False,
            timezone=zone,
        )
        if not buckets:
            continue
        fingerprint = max(buckets, key=lambda bucket: bucket.start).fingerprint
        alerts = [
            alert
            for alert in store.alerts.search(since=view.since, limit=MAX_EVENTS)
            if alert.service == service and alert.scorer in {None, scorer}
            if report.route is None or alert_concerns_route(alert, service, report.route)
        ]
        markers = store.trends.list_markers(**window, service=service, limit=MAX_EVENTS)
        events = chart_markers(alerts, markers, route=report.route)
        route = "" if report.route is None else f", route {report.route}"
        trend = TrendChart(
            points=chart_points(buckets),
            **window,
            bucket=view.bucket,
            title=f"{humanize(scorer)} for {service}{route}",
            name=f"trend-{service}-{scorer}",
            baseline=find_baseline_mean(store, scorer, fingerprint, service=service, route=report.route),
            markers=[replace(event, href="") for event in events if view.since <= event.at < view.until],
        )
        rows = buckets
        if len(buckets) > MAX_TREND_ROWS:
            rows = store.trends.over_time(
                scorer=scorer,
                service=service,
                route=report.route,
                **window,
                bucket=timedelta(days=1),
                histograms=False,
                timezone=zone,
            )
        headings = (f"from ({zone})", *MEAN_HEADINGS, "fingerprint")
        table = DocumentTable(headings=headings, rows=[_trend_row(bucket, zone) for bucket in rows[-MAX_TREND_ROWS:]])
        yield Section(title=trend.title, figure=trend_figure(trend), table=table)


def _trend_row(bucket: Bucket, zone: tzinfo) -> tuple[str, ...]:
    return f"{bucket.start.astimezone(zone):%Y-%m-%d %H:%M}", *mean_cells(bucket), bucket.fingerprint


def _worst_sections(
    store: TrackingStore, report: ReportData, newest: Sequence[RouteSummary], scorer: str | None
) -> Iterator[Section]:
    """Yield a section with the lowest scores that have the newest fingerprints, if there are any.

    All refusals score 0 and would fill the list, so only a few are shown if there are other low scores.
    """
    filters: dict[str, Any] = {"scorer": scorer, "service": report.service, "route": report.route}
    filters |= {"since": report.since, "until": report.until, "limit": LOADED_PER_ANSWER * MAX_WORST_ANSWERS}
    fingerprints = sorted({summary.fingerprint for summary in newest if summary.scorer == scorer})

    def load_lowest(label: str | None) -> list[WorstAnswer]:
        scored = [
            answer
            for fingerprint in fingerprints
            for answer in store.answers.worst(fingerprint=fingerprint, label=label, **filters)
        ]
        return as_worst_answers(sorted(scored, key=lambda answer: answer.score.value or 0.0))

    lowest = load_lowest(None)
    refusals = [answer for answer in lowest if answer.score.label == NONCOMMITTAL][:MAX_REFUSALS]
    others = [answer for answer in lowest if answer.score.label != NONCOMMITTAL] or load_lowest(LOWEST_BAND)
    shown = [*refusals, *others[: MAX_WORST_ANSWERS - len(refusals)]]
    rows = []
    for answer in sorted(shown, key=lambda answer: answer.score.value or 0.0):
        exchange, score = answer.exchange, answer.score
        question, text = (
            "(erased or not stored)" if captured is None else sanitize.line(captured, MAX_TEXT_LENGTH)
            for captured in (exchange.question, exchange.answer)
        )
        rows.append(
            (
                ("refusal" if score.label == NONCOMMITTAL else f"{score.value:.2f}")
                + (f", {answer.repetitions + 1} times" if answer.repetitions else ""),
                question,
                text,
                sanitize.line(answer.reads_like, MAX_TEXT_LENGTH) or "-",
                sanitize.line(exchange.route, 80),
                f"{exchange.started_at:%Y-%m-%d %H:%M}",
                exchange.id,
            )
        )
    if rows:
        headings = ("score", "question", "answer", "generated question or reason", "route", "given (UTC)", "exchange")
        table = DocumentTable(headings=headings, rows=rows)
        yield Section(title=f"Worst answers by {sanitize.line(scorer, 60)}", table=table)
