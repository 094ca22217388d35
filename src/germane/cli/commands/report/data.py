"""Data of a report, as JSON and as table rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize
from germane.cli.render.baseline import learning_as_dicts
from germane.cli.render.comparison import comparison_as_dict
from germane.cli.render.coverage import backlog_as_dict, coverage_as_dict, has_data
from germane.insights import MEAN_HEADINGS, mean_cells
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.annotation import Marker
    from germane.calibration import Calibration
    from germane.storage import BaselineVersion, Comparisons, Coverage, OutstandingWork, RouteSummary, TrackingStore

HEADINGS: Final = ("route", "scorer", *MEAN_HEADINGS, "scored")
CORRECTION_NOTE: Final = (
    "corrected: adjusted by a free local score of all answers, which correlates with the scores by r. "
    "The SQL view answers contains the scores without this correction."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """What a report shows."""

    service: str | None
    """None for all services."""
    route: str | None
    """None for all routes."""
    since: datetime
    until: datetime
    """The window is since <= time of the answer < until."""
    loaded_at: datetime
    summaries: list[RouteSummary]
    coverages: list[Coverage]
    calibrations: list[Calibration]
    """Calibrations of the embedder of the newest scores, by which low answers and labels are determined."""
    backlog: OutstandingWork
    learning: list[BaselineVersion]
    comparisons: Comparisons | None = None
    """Comparison with the window before, if requested."""
    marker: Marker | None = None
    """Marker at which the comparison splits."""

    @property
    def window(self) -> str:
        """The window, such as "since 2026-11-19 10:30 UTC", with its end if that is not now."""
        end = "" if self.until == self.loaded_at else f" and before {self.until:%Y-%m-%d %H:%M} UTC"
        return f"since {self.since:%Y-%m-%d %H:%M} UTC{end}"

    @property
    def notes(self) -> list[str]:
        """How to read the means."""
        notes = [CORRECTION_NOTE] if any(summary.correlation is not None for summary in self.summaries) else []
        return notes + [
            f"Labels and low answers of {sanitize.line(calibration.scorer, 40)} are calibrated: {calibration}. "
            "Means are of raw values."
            for calibration in self.calibrations
        ]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Rows under :data:`HEADINGS`. Names are sanitized for terminals only."""
        return [_row(summary, self.summaries) for summary in self.summaries]

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        comparison = {} if self.comparisons is None else comparison_as_dict(self.comparisons, self.marker)
        return {
            "since": self.since,
            "until": self.until,
            "min_samples": MIN_SAMPLES,
            "routes": list(map(_summary_as_dict, self.summaries)),
            "coverage": list(map(coverage_as_dict, self.coverages)),
            "calibrations": list(map(asdict, self.calibrations)),
            "backlog": backlog_as_dict(self.backlog),
            "learning": learning_as_dicts(self.learning),
            **({"comparison": comparison} if comparison else {}),
        }


def load_report(
    store: TrackingStore, since: datetime, until: datetime | None = None, *, service: str | None, route: str | None
) -> ReportData:
    """Load everything but the comparison."""

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
            coverage for coverage in store.trends.coverage(**window) if matches(coverage) and has_data(coverage)
        ],
        calibrations=list(used.values()),
        backlog=store.queue.load_outstanding(),
        learning=[version for version in store.baselines.list_learning() if service in {None, version.key.service}],
    )


def _row(summary: RouteSummary, summaries: Sequence[RouteSummary]) -> tuple[str, ...]:
    has_services = len({other.service for other in summaries if other.route == summary.route}) > 1
    service = f" ({sanitize.line(summary.service, 40)})" if has_services else ""
    key = (summary.service, summary.route, summary.scorer)
    has_fingerprints = sum((other.service, other.route, other.scorer) == key for other in summaries) > 1
    newest = " (newest)" if summary.newest else ""
    fingerprint = f" {sanitize.line(summary.fingerprint)}{newest}" if has_fingerprints else ""
    return (
        sanitize.line(summary.route, 40) + service,
        sanitize.line(summary.scorer, 40) + fingerprint,
        *mean_cells(summary),
        f"{summary.coverage.scored} of {summary.coverage.seen}",
    )


def _summary_as_dict(summary: RouteSummary) -> dict[str, Any]:
    return {
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
