"""Circumstances that explain a comparison: versions that began together, and drops after the new version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane import alerting
from germane.insights.context import InsightContext, ViewParams
from germane.insights.situation import (
    NOTIFIED_STATES,
    affected_routes,
    alert_concerns_route,
    onset_comparison_path,
)
from germane.settings import SCORE_RULES
from germane.storage import Bucket

OTHER_DIMENSION: Final = {"model": "prompt_version", "prompt_version": "model"}
SAME_SPLIT: Final = 0.9
"""Two versions with at least this share of their answers in common hours are almost the same split."""
_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterDrop:
    """A drop that began after a version was first used."""

    onset: datetime
    route: str | None
    deploy: str | None
    """On which side of the nearest deploy it began; a clause without punctuation."""
    path: str | None
    """Path of the comparison of the time before and after the onset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionContext:
    """Circumstances that explain a comparison of versions."""

    began: datetime
    """The hour in which the new version was first used."""
    began_together: Mapping[str, str] | None
    """The model and the prompt version that began in the same hour, and are almost the same split."""
    later_drop: LaterDrop | None


def explain_versions(
    context: InsightContext, view: ViewParams, *, by: str, new: str, scorer: str, service: str, route: str | None
) -> VersionContext | None:
    """Return the circumstances that explain a comparison of versions, or None if there are none.

    ``by`` is ``model`` or ``prompt_version``. The route is the compared one or the one that moved most, or None for the
    service as a whole.
    """
    hours = {
        dimension: context.store.trends.over_time(
            scorer=scorer, service=service, by=dimension, bucket=_HOUR, since=view.since, until=view.until,
            histograms=False,
        )
        for dimension in (by, OTHER_DIMENSION[by])
    }  # fmt: skip
    began = _began(hours[by], new)
    if began is None:
        return None
    others = sorted({bucket.group for bucket in hours[OTHER_DIMENSION[by]] if bucket.group})
    same = next((label for label in others if _is_same(hours, by, new, label)), None)
    drop = _later_drop(context, view, began, scorer, service, route)
    if same is None and drop is None:
        return None
    together = None if same is None else {by: new, OTHER_DIMENSION[by]: same}
    return VersionContext(began=began, began_together=together, later_drop=drop)


def _later_drop(
    context: InsightContext, view: ViewParams, began: datetime, scorer: str, service: str, route: str | None
) -> LaterDrop | None:
    """Return the first drop that began in the period of the new version, at least an hour after its start."""
    alerts = [
        alert
        for alert in context.store.alerts.list_open()
        if alert.state in NOTIFIED_STATES and alert.type in SCORE_RULES
        if (alert.scorer, alert.service) == (scorer, service)
        if route is None or alert_concerns_route(alert, service, route)
    ]
    first = began + _HOUR
    onsets = {alert.onset: alert for alert in reversed(alerts) if alert.onset and first <= alert.onset < view.until}
    if not onsets:
        return None
    onset = min(onsets)
    alert = onsets[onset]
    deploy = alerting.find_deploy(context.store.trends, service, alerting.Onset(onset, alert.onset_interval))
    on = next(iter(affected_routes(alert)), None)
    path = onset_comparison_path(view, onset, view.until, first=view.since, route=on, scorer=scorer, service=service)
    return LaterDrop(onset=onset, route=on, deploy=deploy and deploy.words, path=path)


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
