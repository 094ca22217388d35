"""A report as a document with a verdict, charts and the worst answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize
from germane.cli.commands.report.data import HEADINGS, ReportData, describe_labels, load_verdict, report_view
from germane.cli.core.render import (
    COMPARISON_HEADINGS,
    comparison_rows,
    comparison_title,
    describe_learning,
    describe_missing_scores,
    describe_result,
    find_baseline_mean,
)
from germane.insights import (
    MEAN_HEADINGS,
    Document,
    DocumentTable,
    Section,
    TrendChart,
    ViewParams,
    alert_concerns_route,
    chart_markers,
    chart_points,
    choose_scorer,
    humanize,
    load_buckets,
    load_worst_answers,
    mean_cells,
    trend_figure,
)
from germane.score import NONCOMMITTAL

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import (
        RouteSummary,
        ServiceSummary,
        TrackingStore,
    )

MAX_CHARTS: Final = 8
MAX_TREND_ROWS: Final = 31
"""Maximum number of rows in a trend table. Longer trends are shown with one row per day, for the newest days."""
MAX_EVENTS: Final = 50
"""Maximum number of alerts, and of markers, on a chart."""
MAX_TEXT_LENGTH: Final = 400
"""Maximum length of a displayed question or answer, in characters."""


def create_document(store: TrackingStore, settings: Settings, report: ReportData) -> Document:
    """Create a document from the report's data and the stored verdict, trends, worst answers and open alerts."""
    newest = [summary for summary in report.summaries if summary.newest]
    scorer, view = choose_scorer(newest), report_view(settings, report)
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
        paragraphs=[
            *filter(None, [describe_labels(settings, report)]),
            f"Answers given {report.window}, as of {report.loaded_at:%Y-%m-%d %H:%M} UTC.",
        ],
        sections=sections,
    )


def load_style() -> str:
    """Return the dashboard's style sheet, which also styles charts."""
    return (files("germane.dashboard") / "static" / "style.css").read_text(encoding="utf-8")


def _trend_sections(
    store: TrackingStore, report: ReportData, view: ViewParams, newest: Sequence[RouteSummary]
) -> Iterator[Section]:
    """Yield a section with a chart for each service and scorer with scores, the ones on the overview first."""
    pairs = {(summary.service, summary.scorer) for summary in newest}
    first = (view.service, view.scorer)
    ordered = sorted(pairs, key=lambda pair: (pair != first, pair[0] != view.service, pair))
    window: dict[str, Any] = {"since": view.since, "until": view.until}
    zone = view.zone or UTC
    for service, scorer in ordered[:MAX_CHARTS]:
        place: dict[str, Any] = {"scorer": scorer, "service": service, "route": report.route}
        buckets = load_buckets(store, view, **place)
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
            rows = load_buckets(store, view, **place, bucket=timedelta(days=1))
        headings = (f"from ({zone})", *MEAN_HEADINGS, "fingerprint")
        cells = [
            (f"{bucket.start.astimezone(zone):%Y-%m-%d %H:%M}", *mean_cells(bucket, scorer=scorer), bucket.fingerprint)
            for bucket in rows[-MAX_TREND_ROWS:]
        ]
        table = DocumentTable(headings=headings, rows=cells)
        yield Section(title=trend.title, figure=trend_figure(trend), table=table)


def _worst_sections(
    store: TrackingStore, report: ReportData, newest: Sequence[RouteSummary | ServiceSummary], scorer: str | None
) -> Iterator[Section]:
    """Yield a section with the worst answers by the scorer's newest fingerprints, if there are any."""
    if report.route is None:
        window = store.trends.window_summary(since=report.since, until=report.until, scorer=scorer)
        newest = [group for group in window.services if group.newest and report.service in {None, group.service}]
    found = [summary for summary in newest if summary.scorer == scorer]
    rows = []
    for answer in load_worst_answers(store, found, report.since, report.until):
        exchange, score = answer.exchange, answer.score
        question, text = (
            "(erased or not stored)" if captured is None else sanitize.line(captured, MAX_TEXT_LENGTH)
            for captured in (exchange.question, exchange.answer)
        )
        rows.append(
            (
                ("refusal" if score.label == NONCOMMITTAL else f"{score.value:z.2f}")
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
