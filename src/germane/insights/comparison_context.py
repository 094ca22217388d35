"""Circumstances that explain a comparison: versions that began together, and drops after the new version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from germane.insights.context import InsightContext, ViewParams
from germane.insights.formatting import DateFormatter, shorten
from germane.insights.situation import (
    NOTIFIED_STATES,
    Piece,
    affected_routes,
    alert_concerns_route,
    link,
    marker_comparison_path,
    onset_comparison_path,
)
from germane.settings import SCORE_RULES
from germane.storage import Bucket

OTHER_DIMENSION: Final = {"model": "prompt_version", "prompt_version": "model"}
SAME_SPLIT: Final = 0.9
"""Two versions with at least this share of their answers in common hours are almost the same split."""
_HOUR: Final = timedelta(hours=1)


def explain_versions(
    context: InsightContext, view: ViewParams, *, by: str, new: str, scorer: str, service: str, route: str | None
) -> tuple[Piece, ...]:
    """Return sentences about circumstances that explain a comparison of versions, if there are any.

    Args:
        context: The database and settings.
        view: The compared window.
        by: ``model`` or ``prompt_version``.
        new: The new model or prompt version.
        scorer: The compared scorer.
        service: The compared service.
        route: The compared route or the one that moved most, or None for the service as a whole.
    """
    from germane.alerting import find_changes, list_changes

    trends, hours = context.store.trends, {}
    for dimension in (by, OTHER_DIMENSION[by]):
        hours[dimension] = trends.over_time(
            scorer=scorer, service=service, by=dimension, bucket=_HOUR, since=view.since, until=view.until,
            histograms=False,
        )  # fmt: skip
    began = _began(hours[by], new)
    if began is None:
        return ()
    pieces = []
    dates = DateFormatter(view.until, view.zone)
    others = sorted({bucket.group for bucket in hours[OTHER_DIMENSION[by]] if bucket.group})
    other = next((label for label in others if _is_same(hours, by, new, label)), None)
    names = {by: shorten(new, 60), OTHER_DIMENSION[by]: shorten(other, 60)}
    if other is not None:
        together = f"{names['model']} and prompt version {names['prompt_version']} began together"
        pieces.append(Piece(f"{together} on {dates.date(began)}, so this comparison cannot distinguish them. "))
    # The drop must begin in the period of the new version, at least an hour after the version was first used.
    later = [
        alert
        for alert in context.store.alerts.list_open()
        if alert.state in NOTIFIED_STATES and alert.type in SCORE_RULES and alert.scorer == scorer
        if alert.service == service and (route is None or alert_concerns_route(alert, service, route))
        if alert.onset is not None and began + _HOUR <= alert.onset < view.until
    ]
    alert = min(later, key=lambda alert: alert.onset or view.until, default=None)
    if alert is None or alert.onset is None:
        return tuple(pieces)
    found = find_changes(trends, alert, alert.onset)
    changes = list_changes(replace(alert, details={**alert.details, **found}), alert.onset)
    cause = next((change for change in changes if change.is_near(alert.onset) and change.at is not None), None)
    on = next(iter(affected_routes(alert)), None)
    place = "" if on is None else f" on {shorten(on, 60)}"
    text = f"The drop{place} began later, on {dates.date_time(alert.onset)}"
    path = onset_comparison_path(
        view, alert.onset, view.until, first=view.since, route=on, scorer=scorer, service=service
    )
    if cause is not None and cause.at is not None and cause.at <= alert.onset:
        text += f", {cause.distance(alert.onset).removesuffix(' before')} after {cause.name}"
        for marker in trends.list_markers(service=service, since=cause.at, until=alert.onset):
            path = marker_comparison_path(marker, view, on) if marker.at == cause.at else path
    pieces.append(Piece(f"{text}. "))
    if path is not None:
        pieces.append(link("Compare the time before and after it", path))
    return tuple(pieces)


def _began(buckets: Sequence[Bucket], label: str) -> datetime | None:
    """Return the first hour in which a label was used, or None if it was in use from the start."""
    first = min((bucket.start for bucket in buckets if bucket.group == label), default=None)
    return None if first is None or first <= min(bucket.start for bucket in buckets) else first


def _is_same(hours: dict[str, list[Bucket]], by: str, label: str, other: str) -> bool:
    """Return whether a label of each dimension began in the same hour, and has almost the same answers per hour."""
    dimension = OTHER_DIMENSION[by]
    if _began(hours[by], label) != _began(hours[dimension], other):
        return False
    counts, others = _counts(hours[by], label), _counts(hours[dimension], other)
    common = sum(min(count, others.get(start, 0)) for start, count in counts.items())
    return common >= SAME_SPLIT * max(sum(counts.values()), sum(others.values()))


def _counts(buckets: Iterable[Bucket], label: str) -> dict[datetime, int]:
    counts: dict[datetime, int] = {}
    for bucket in buckets:
        if bucket.group == label:
            counts[bucket.start] = counts.get(bucket.start, 0) + bucket.n
    return counts
