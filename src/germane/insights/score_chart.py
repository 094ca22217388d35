"""The chart that the pages of routes, alerts and comparisons share: single answers, their means, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from germane.insights.charts import Dot, Level, Split, TrendChart, chart_points, trend_figure
from germane.insights.context import ViewParams, load_buckets
from germane.score import MIN_SAMPLES, NONCOMMITTAL, is_low_value
from germane.storage import Bucket, SampledScore, TrackingStore

ScoreSample = tuple[Sequence[SampledScore], bool]
"""Scores, and whether these are all scores of the window."""


def draw_score_chart(
    store: TrackingStore,
    view: ViewParams,
    place: dict[str, Any],
    *,
    sample: ScoreSample | None = None,
    steps: Sequence[Sequence[Bucket]] | None = None,
    split: Split | None = None,
    versions: tuple[str, str, str] | None = None,
    **more: Any,
) -> Markup:
    """Draw a chart of the scores in the view's window.

    Args:
        store: The database.
        view: The window and the time zone.
        place: The scorer, the service and the route; None for all.
        sample: The single answers, of all scorers. They are loaded by default.
        steps: The means before and since the split. They are loaded by default.
        split: The moment that divides the window. Steps do not extend over it.
        versions: A dimension and two of its labels, the old and the new one, which have steps of their own.
        more: The other fields of :class:`TrendChart`.
    """
    scorer, equal = place["scorer"], {name: place[name] for name in ("service", "route")}
    scores, is_complete = sample or store.answers.sample_scores([scorer], view.since, view.until, **equal)
    parts = steps or _load_own_steps(store, view, place, split, None if versions is None else versions[0])
    points = [step for part in parts for step in part]
    if split is not None:
        newest = points[-1].fingerprint if points else ""
        before = _level("before", parts[0], newest) if split.at > view.since else None
        since = _level("since", parts[-1], newest) if split.at < view.until else None
        split = replace(split, before=split.before or before, since=split.since or since)
    if versions is not None:
        more["failing"] = chart_points(step for step in points if step.group == versions[1])
        points = [step for step in points if step.group == versions[2]]
    dots = [
        Dot(one.answered_at, one.value, is_low_value(one.value, one.label), one.label == NONCOMMITTAL)
        for one in scores
        if one.scorer == scorer
    ]
    window: dict[str, Any] = {"since": view.since, "until": view.until, "bucket": view.bucket, "zone": view.zone}
    chart = TrendChart(
        points=chart_points(points), dots=dots, has_dots=True, is_sample=not is_complete, split=split, **window, **more
    )
    return trend_figure(chart)


def load_steps(
    store: TrackingStore,
    view: ViewParams,
    split: Split | None,
    *,
    min_samples: Callable[[str], int] = lambda _: MIN_SAMPLES,
    **place: Any,
) -> list[dict[str, list[Bucket]]]:
    """Load the means before and since the split, by scorer. ``place`` may have a scorer, a service and a route."""
    ends = [view.since, *([split.at] if split and view.since < split.at < view.until else []), view.until]
    shared: dict[str, Any] = {"bucket": view.bucket, "timezone": view.zone or UTC, "min_samples": min_samples}
    return [
        store.trends.steps_by_scorer(since=since, until=until, is_open=until == view.until, **shared, **place)
        for since, until in pairwise(ends)
    ]


def _load_own_steps(
    store: TrackingStore, view: ViewParams, place: dict[str, Any], split: Split | None, by: str | None
) -> list[list[Bucket]]:
    if by is not None:
        return [load_buckets(store, view, by=by, min_samples=MIN_SAMPLES, **place)]
    return [part.get(place["scorer"], []) for part in load_steps(store, view, split, **place)]


def _level(name: str, steps: Sequence[Bucket], fingerprint: str) -> Level | None:
    """Return the mean of the steps with a fingerprint, because levels by different judges are not comparable."""
    found = [step for step in steps if step.fingerprint == fingerprint]
    n = sum(step.n for step in found)
    return Level(name, sum(step.n * step.mean for step in found) / n, n) if n else None
