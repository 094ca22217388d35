"""What a chart is drawn from: plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from germane.storage import Bucket

Kind = Literal["alert", "deploy", "judge"]


@dataclass(frozen=True, slots=True)
class Point:
    """The scores of one fingerprint and one bucket of time."""

    start: datetime
    """With its zone."""
    mean: float
    """In [-1, 1]."""
    low: float | None
    """95 % interval of the mean, lower end; None where it is unknown."""
    high: float | None
    n: int
    enough: bool
    """Whether there are 20 scores or more."""
    begins: bool = False
    """Whether the judge changed here."""
    fingerprint: str = ""
    """Points of different ones are never joined."""
    seen: int | None = None
    """Exchanges of the bucket, scored or not; None where they are not counted."""
    scored: int | None = None
    """Of these, whatever the fingerprint."""


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A moment to be seen on the line."""

    at: datetime
    """With its zone."""
    label: str
    kind: Kind = "deploy"
    href: str = ""
    """A path of this application."""


def points_of(buckets: Iterable[Bucket]) -> tuple[Point, ...]:
    """Return what the trend query says, as points."""
    return tuple(map(_point, buckets))


def _point(bucket: Bucket) -> Point:
    low, high = bucket.interval or (None, None)
    return Point(
        start=bucket.start,
        mean=bucket.mean,
        low=low,
        high=high,
        n=bucket.n,
        enough=bucket.enough,
        begins=bucket.begins,
        fingerprint=bucket.fingerprint,
        seen=None if bucket.coverage is None else bucket.coverage.seen,
        scored=None if bucket.coverage is None else bucket.coverage.scored,
    )


def series_of(points: Iterable[Point]) -> list[list[Point]]:
    """Return one list per fingerprint, in the order in which they began; where the judge changed another one begins."""
    found: dict[tuple[str, int], list[Point]] = {}
    turn = 0
    for point in sorted(points, key=lambda one: one.start):
        turn += point.begins and not point.fingerprint
        found.setdefault((point.fingerprint, turn), []).append(point)
    return sorted(found.values(), key=lambda one: (one[0].start, one[0].begins))


def runs_of(series: Sequence[Point], bucket: timedelta) -> list[list[Point]]:
    """Return stretches without a gap: a bucket in which there is no score breaks the line."""
    runs: list[list[Point]] = []
    for point in series:
        if runs and point.start - runs[-1][-1].start <= bucket:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def floor_of(points: Iterable[Point], baseline: float | None = None) -> float:
    """Return where the axis begins: at 0, or at -1 where a mean lies under 0."""
    means = [point.mean for point in points] + ([] if baseline is None else [baseline])
    return -1.0 if min(means, default=0.0) < 0 else 0.0
