"""``germane trend``: draw scores over time in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final

import click

from germane import insights, sanitize
from germane.cli.core import trend_chart
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import detect_terminal, print_json
from germane.cli.core.params import DURATION, PAST_TIME
from germane.cli.core.render import ESTIMATE_FIELDS, find_baseline_mean
from germane.cli.core.store import load_command_settings, open_store
from germane.records import select
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.annotation import Marker
    from germane.storage import Bucket, TrackingStore

DEFAULT_MAX_BUCKETS: Final = 30
"""Maximum number of buckets by default. It determines the bucket length if none is given."""
MAX_BUCKETS: Final = 1000
BUCKET_LENGTHS: Final = tuple(timedelta(hours=hours) for hours in (1, 3, 6, 12, 24, 72, 168))
_ALERT_FIELDS: Final = (
    "id", "rule", "service", "route", "state", "onset", "onset_interval", "starts_at", "resolved_at", "message"
)  # fmt: skip


@click.command("trend", cls=Command)
@click.argument("scorer", required=False)
@click.option("--since", type=PAST_TIME, default="7d", show_default=True, help="Only answers given since this time.")
@click.option("--until", type=PAST_TIME, help="Only answers given before this time. Defaults to now.")
@click.option(
    "--bucket",
    type=DURATION,
    help="Bucket length. Each bucket is one line. By default, the shortest length that gives at most 30 lines.",
)
@click.option("--service", help="Only this service.")
@click.option("--route", help="Only this route.")
@click.option(
    "--by",
    metavar="DIMENSION",
    help="Draw one line per value of a dimension: route, service, model, prompt_version or attributes.NAME.",
)
def command(
    scorer: str | None,
    since: datetime,
    until: datetime | None,
    bucket: timedelta | None,
    service: str | None,
    route: str | None,
    by: str | None,
) -> None:
    """Draw the mean of SCORER over time.

    Each line shows a mean with its 95% interval. The chart also shows markers, alerts, judge changes and the baseline.
    SCORER defaults to the scorer on the dashboard's overview.
    """
    from germane.settings import parse_timezone

    zone = parse_timezone(load_command_settings().timezone)
    with open_store() as store:
        end = until or store.now()
        if until is not None and until <= since:
            raise click.BadParameter("must be after --since", param_hint="--until")
        if bucket is None:
            lengths = (length for length in BUCKET_LENGTHS if end - since <= length * DEFAULT_MAX_BUCKETS)
            bucket = next(lengths, BUCKET_LENGTHS[-1])
        if (end - since) / bucket > MAX_BUCKETS:
            raise click.UsageError(f"--bucket is too short for this window: more than {MAX_BUCKETS} lines")
        trend = load_score_trend(store, ScoreTrend(scorer, since, end, bucket, zone, service, route, by))
    if wants_json():
        print_json(trend.as_dict())
    else:
        click.echo("\n".join(_format_lines(trend)))


@dataclass(frozen=True, slots=True)
class ScoreTrend:
    """A selection of scores, and their trend with the events in its window once it is loaded."""

    scorer: str | None
    since: datetime
    until: datetime
    bucket: timedelta
    timezone: tzinfo
    service: str | None
    route: str | None
    by: str | None
    """Dimension by which scores are grouped."""
    buckets: Sequence[Bucket] = ()
    baseline: float | None = None
    markers: Sequence[Marker] = ()
    alerts: Sequence[Alert] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the trend as a dict for JSON output."""
        return {
            **select(self, "scorer", "service", "route", "by", "since", "until"),
            "bucket_seconds": self.bucket.total_seconds(),
            "min_samples": MIN_SAMPLES,
            "baseline": self.baseline,
            "buckets": [
                {
                    **select(bucket, "start", "group", "fingerprint"),
                    "begins": bucket.judge_changed,
                    **select(bucket, *ESTIMATE_FIELDS, "correlation", "coverage"),
                }
                for bucket in self.buckets
            ],
            "markers": self.markers,
            "alerts": [select(alert, *_ALERT_FIELDS) for alert in self.alerts],
        }


def load_score_trend(store: TrackingStore, trend: ScoreTrend) -> ScoreTrend:
    """Load the selected trend. Scorer and service default to those on the dashboard's overview."""
    summaries = store.trends.summary(since=trend.since, until=trend.until, histograms=False)
    of_service = [summary for summary in summaries if trend.service in {None, summary.service}]
    trend = replace(trend, scorer=insights.choose_scorer(of_service, trend.scorer))
    if trend.by != "service":
        of_scorer = [summary for summary in summaries if summary.scorer == trend.scorer]
        trend = replace(trend, service=insights.choose_service(of_scorer, trend.service))
    if trend.scorer is None:
        return trend
    window: dict[str, Any] = {"since": trend.since, "until": trend.until}
    buckets = store.trends.over_time(
        scorer=trend.scorer,
        service=trend.service,
        route=trend.route,
        **window,
        bucket=trend.bucket,
        timezone=trend.timezone,
        by=trend.by,
        histograms=False,
    )
    alerts = [
        alert
        for alert in store.alerts.search(since=trend.since)
        if alert.scorer in {None, trend.scorer} and trend.service in {None, alert.service}
        if trend.route is None or insights.alert_concerns_route(alert, trend.service, trend.route)
    ]
    baseline = None
    if buckets and trend.by is None:
        fingerprint = max(buckets, key=lambda bucket: bucket.start).fingerprint
        baseline = find_baseline_mean(store, trend.scorer, fingerprint, service=trend.service, route=trend.route)
    markers = store.trends.list_markers(**window, service=trend.service)
    return replace(trend, buckets=buckets, baseline=baseline, markers=markers, alerts=alerts)


def _format_lines(trend: ScoreTrend) -> Iterator[str]:
    buckets = trend.buckets
    filters = f", service {sanitize.line(trend.service, 40)}" if trend.service else ""
    filters += f", route {sanitize.line(trend.route, 40)}" if trend.route else ""
    filters += f", by {sanitize.line(trend.by, 40)}" if trend.by else ""
    if not buckets:
        scorer = f", scorer {sanitize.line(trend.scorer, 60)}" if trend.scorer else ""
        yield f"No scores since {trend.since.astimezone(trend.timezone):%Y-%m-%d %H:%M %Z}{scorer}{filters}."
        return
    terminal = detect_terminal()
    picture = trend_chart.ChartLayout(
        terminal=terminal,
        since=trend.since,
        until=trend.until,
        bucket=trend.bucket,
        timezone=trend.timezone,
        baseline=trend.baseline,
    )
    scorer = terminal.style(sanitize.line(trend.scorer, 60), bold=True)
    since = trend.since.astimezone(trend.timezone)
    yield f"{scorer}{filters}, since {since:%b %d %H:%M %Z}, per {_format_duration(trend.bucket)}"
    yield ""
    if trend.by is not None:
        yield from trend_chart.draw_groups(picture, buckets)
    else:
        annotations = [
            trend_chart.ChartAnnotation(marker.at, f"marker {sanitize.line(marker.name, 60)}")
            for marker in trend.markers
        ]
        for alert in trend.alerts:  # shown at its onset, or at the start of the window if the onset is earlier
            onset = (alert.onset or alert.starts_at).astimezone(trend.timezone)
            earlier = f" since {onset:%b %d %H:%M}" if onset < since else ""
            text = f"alert{earlier}: {sanitize.line(alert.message or alert.rule, 120)}"
            annotations.append(trend_chart.ChartAnnotation(max(onset, since), text))
        yield from trend_chart.draw_trend(picture, buckets, annotations)
    yield ""
    if corrected := sum(bucket.correlation is not None for bucket in buckets):
        yield f"{corrected} of {len(buckets)} means are corrected using a free proxy score for all answers."
    if sum(bucket.has_min_samples for bucket in buckets) * 2 < len(buckets):
        hours = max(1, round(4 * trend.bucket / timedelta(hours=1)))
        longer = f"{hours}h" if hours % 24 else f"{hours // 24}d"
        yield f"Most buckets have fewer than {MIN_SAMPLES} scores. Try longer buckets: --bucket {longer}"
    for line in trend_chart.format_legend(picture, is_grouped=trend.by is not None):
        yield terminal.style(line, dim=True)


def _format_duration(duration: timedelta) -> str:
    for unit, seconds in (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, rest = divmod(round(duration.total_seconds()), seconds)
        if count and not rest:
            return unit if count == 1 else f"{count} {unit}s"
    return str(duration)
