"""Data for time-series charts: points, markers, and the plot area that maps them to coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from germane.score import MIN_SAMPLES
from germane.storage import Bucket

MarkerKind = Literal["alert", "deploy", "judge"]
MAX_MARKERS_DESCRIBED: Final = 5


@dataclass(frozen=True, slots=True)
class Point:
    """A summary of the scores with one fingerprint in one bucket."""

    start: datetime
    """Start of the bucket, with a time zone."""
    mean: float
    """Mean score, in [-1, 1]."""
    low: float | None
    """Lower bound of the mean's 95% interval, or None if unknown."""
    high: float | None
    n: int
    has_min_samples: bool
    judge_changed: bool = False
    """Whether the judge changed in this bucket."""
    fingerprint: str = ""
    """Fingerprint of the scores. Points with different fingerprints are never connected."""
    seen: int | None = None
    """Number of exchanges in the bucket, or None if they are not counted."""
    scored: int | None = None
    """Number of scored exchanges in the bucket, for all fingerprints."""
    end: datetime | None = None
    """End of merged buckets; None if the bucket has the chart's length."""

    def until(self, bucket: timedelta) -> datetime:
        """Return the end of the point's bucket."""
        return self.end or self.start + bucket


class Dot(NamedTuple):
    """A single answer on a chart."""

    at: datetime
    value: float
    is_low: bool = False
    is_refusal: bool = False


class Level(NamedTuple):
    """The mean of a part of the window, such as the time since an onset."""

    name: str
    mean: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The moment that divides a chart into the time before and since, such as an onset."""

    at: datetime
    interval: tuple[datetime, datetime] | None = None
    """The moment lies in this interval, if it is an estimate."""
    before: Level | None = None
    since: Level | None = None
    is_worse: bool = False
    """Whether scores are known to be lower since."""


@dataclass(frozen=True, slots=True)
class ChartMarker:
    """A labeled point in time on a chart."""

    at: datetime
    """Time of the event, with a time zone."""
    label: str
    kind: MarkerKind = "deploy"
    href: str = ""
    """Path of a dashboard page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A rectangle in view box units, and the range of time and scores that it covers."""

    left: float
    right: float
    top: float
    bottom: float
    since: datetime
    until: datetime
    floor: float = 0.0
    """Score at the bottom."""
    ceiling: float = 1.0
    """Score at the top."""

    def x(self, moment: datetime) -> float:
        """Return the x coordinate of a timestamp, clipped to the window."""
        share = (moment - self.since) / max(self.until - self.since, timedelta(microseconds=1))
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))

    def y(self, value: float) -> float:
        """Return the y coordinate of a score, clipped to the axis."""
        share = (min(self.ceiling, max(self.floor, value)) - self.floor) / (self.ceiling - self.floor)
        return self.bottom - (self.bottom - self.top) * share

    def sides(self, point: Point, bucket: timedelta) -> tuple[float, float]:
        """Return the left and right edges of a point's bucket, clipped to the window."""
        return self.x(point.start), self.x(point.until(bucket))

    def shows(self, point: Point, bucket: timedelta) -> bool:
        """Return whether any part of a point's bucket is in the window."""
        return point.start < self.until and point.until(bucket) > self.since

    @property
    def levels(self) -> tuple[float, ...]:
        """Scores at which grid lines are drawn."""
        return (0.0, 0.2, 0.4, 0.6, 0.8, 1.0) if self.floor == 0 else (-1.0, -0.5, 0.0, 0.5, 1.0)


def chart_points(buckets: Iterable[Bucket]) -> tuple[Point, ...]:
    """Convert the result of a trend query to points."""
    points = []
    for bucket in buckets:
        low, high = bucket.interval or (None, None)
        points.append(
            Point(
                start=bucket.start,
                mean=bucket.mean,
                low=low,
                high=high,
                n=bucket.n,
                has_min_samples=bucket.has_min_samples,
                judge_changed=bucket.judge_changed,
                fingerprint=bucket.fingerprint,
                seen=None if bucket.coverage is None else bucket.coverage.seen,
                scored=None if bucket.coverage is None else bucket.coverage.scored,
                end=bucket.end,
            )
        )
    return tuple(points)


def split_by_fingerprint(points: Iterable[Point]) -> list[list[Point]]:
    """Return one series per fingerprint, sorted by first point. A change of judge starts a new series."""
    series: dict[tuple[str, int], list[Point]] = {}
    changes = 0
    for point in sorted(points, key=lambda point: point.start):
        changes += point.judge_changed and not point.fingerprint
        series.setdefault((point.fingerprint, changes), []).append(point)
    return sorted(series.values(), key=lambda line: (line[0].start, line[0].judge_changed))


def merge_points(points: Iterable[Point], bucket: timedelta) -> list[Point]:
    """Merge neighboring points with one fingerprint until each has enough scores. The last one may have fewer.

    The means are weighted by n. Merged points have no interval.
    """
    merged: list[Point] = []
    for point in sorted(points, key=lambda point: (point.fingerprint, point.start)):
        last = merged[-1] if merged else None
        end = point.until(bucket)
        if last is None or last.has_min_samples or last.fingerprint != point.fingerprint:
            merged.append(replace(point, low=None, high=None, end=end))
            continue
        n = last.n + point.n
        mean = (last.n * last.mean + point.n * point.mean) / n
        merged[-1] = replace(last, mean=mean, n=n, has_min_samples=n >= MIN_SAMPLES, end=end)
    return sorted(merged, key=lambda point: point.start)


def axis_floor(points: Iterable[Point], baseline: float | None = None, dots: Iterable[Dot] = ()) -> float:
    """Return the lower end of the axis: 0, or -1 if a mean, a score or the baseline is negative."""
    means = [*(point.mean for point in points), *(dot.value for dot in dots if not dot.is_refusal)]
    means += [] if baseline is None else [baseline]
    return -1.0 if min(means, default=0.0) < 0 else 0.0


def describe_points(
    points: Sequence[Point],
    baseline: float | None,
    markers: Sequence[ChartMarker] = (),
    *,
    name: str = "baseline",
    split: Split | None = None,
    scale: tuple[float, float] | None = None,
) -> str:
    """Return a text alternative for a chart of means."""

    def describe(point: Point) -> str:
        interval = (
            "" if point.low is None or point.high is None else f"95% interval {point.low:z.2f} to {point.high:z.2f}, "
        )
        return f"{point.mean:z.2f} ({interval}n={point.n})"

    newest = split_by_fingerprint(points)[-1:]
    if not newest:
        return "No scores in this window."
    last, lowest = newest[0][-1], min(newest[0], key=lambda point: point.mean)
    floor, ceiling = scale or (axis_floor(points, baseline), 1)
    words = [f"{len(points)} means on a scale from {floor:g} to {ceiling:g}.", f"Last: {describe(last)}."]
    if lowest is not last:
        words.append(f"Lowest: {describe(lowest)}.")
    if baseline is not None:
        words.append(f"{name.capitalize()}: {baseline:z.2f}.")
    levels = (None, None) if split is None else (split.before, split.since)
    words += [f"{level.name.capitalize()}: {level.mean:z.2f} (n={level.n})." for level in levels if level is not None]
    if markers:
        words.append(f"Markers: {'; '.join(marker.label for marker in markers[:MAX_MARKERS_DESCRIBED])}.")
    return " ".join(words)
