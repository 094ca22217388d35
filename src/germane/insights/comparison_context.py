"""Circumstances that explain a comparison: versions that began together, and drops after the new version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from germane import alerting
from germane.insights.context import InsightContext, ViewParams
from germane.insights.situation import (
    NOTIFIED_STATES,
    affected_routes,
    alert_concerns_route,
    onset_comparison_path,
)
from germane.settings import SCORE_RULES
from germane.storage import OTHER_LABEL, TrackingStore

OTHER_DIMENSION: Final = {"model": "prompt_version", "prompt_version": "model"}
SAME_SPLIT: Final = 0.9
"""Two versions with at least this share of their answers in common hours are almost the same split."""
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


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
    usage = _LabelUsage(context.store, scorer, service, view.since, view.until)
    began = usage.find_start(by, new)
    if began is None:
        return None
    other = OTHER_DIMENSION[by]
    same = next((label for label in usage.labels(other) if usage.is_same_split(by, new, other, label)), None)
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


class _LabelUsage:
    """The numbers of answers by label in steps of days. Hours are read only where days do not suffice."""

    def __init__(self, store: TrackingStore, scorer: str, service: str, since: datetime, until: datetime) -> None:
        self._load = partial(store.trends.counts_by_label, scorer=scorer, service=service)
        self._since, self._until = since, until
        self._steps = self._load_steps(_DAY)
        if any(OTHER_LABEL in labels for labels in self._steps.values()):
            self._steps = self._load_steps(_HOUR)  # the rollup of a day combines labels that those of its hours keep

    def _load_steps(self, bucket: timedelta) -> dict[str, dict[str, dict[datetime, int]]]:
        window: dict[str, Any] = {"bucket": bucket, "since": self._since, "until": self._until}
        return {dimension: self._load(by=dimension, **window) for dimension in OTHER_DIMENSION}

    def labels(self, by: str) -> list[str]:
        """Return the labels of a dimension, apart from that of answers without a value."""
        return sorted(filter(None, self._steps[by]))

    def find_start(self, by: str, label: str) -> datetime | None:
        """Return the first hour in which a label was used, or None if it was in use from the start."""
        steps = self._steps[by]
        if label not in steps:
            return None
        first = min(steps[label])
        hours = self._load(by=by, bucket=_HOUR, since=max(self._since, first), until=min(self._until, first + _DAY))
        start = min(hours[label])
        is_first_step = first == min(map(min, steps.values()))
        return None if is_first_step and start == min(map(min, hours.values())) else start

    def is_same_split(self, by: str, label: str, other: str, other_label: str) -> bool:
        """Return whether a label of each dimension began in the same hour, and has almost the same answers per hour."""
        counts, others = self._steps[by][label], self._steps[other][other_label]
        if min(counts) != min(others) or not _is_same(counts, others):
            return False
        start = self.find_start(by, label)
        if start is None or start != self.find_start(other, other_label):
            return False
        hours: dict[str, Any] = {"bucket": _HOUR, "since": max(self._since, start), "until": self._until}
        return _is_same(self._load(by=by, **hours)[label], self._load(by=other, **hours)[other_label])


def _is_same(counts: Mapping[datetime, int], others: Mapping[datetime, int]) -> bool:
    common = sum(min(count, others.get(start, 0)) for start, count in counts.items())
    return common >= SAME_SPLIT * max(sum(counts.values()), sum(others.values()))
