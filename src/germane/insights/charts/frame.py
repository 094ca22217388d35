"""The frame of a picture: what it is and what it shows, by ids of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from germane.insights.charts.point import ChartMark, Point, floor_of, series_of
from germane.insights.charts.svg import safe_id, tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What every picture has."""

    width: int
    """Of the view box; the page stretches it."""
    height: int
    title: str
    """What it is, for who cannot see it."""
    description: str
    """What it shows."""
    name: str
    """Its id, its own on the page."""
    kind: str = ""
    """A class of the style sheet."""

    def of(self, *parts: Markup, data: str | None = None) -> Markup:
        """Return the picture, as SVG."""
        id_ = safe_id(self.name)
        return tag(
            "svg",
            tag("title", self.title, id=f"{id_}-title"),
            tag("desc", self.description, id=f"{id_}-desc"),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width} {self.height}",
            role="img",
            id=id_,
            class_=self.kind or None,
            aria_labelledby=f"{id_}-title {id_}-desc",
            data_points=data,
        )


def described(
    points: Sequence[Point], baseline: float | None, marks: Sequence[ChartMark] = (), *, name: str = "baseline"
) -> str:
    """Return in words what a chart of means shows."""
    newest = series_of(points)[-1:]
    if not newest:
        return "No score in this window."
    last, lowest = newest[0][-1], min(newest[0], key=lambda one: one.mean)
    words = [f"{len(points)} means on a scale from {floor_of(points, baseline):g} to 1.", f"Last: {_mean(last)}."]
    if lowest is not last:
        words.append(f"Lowest: {_mean(lowest)}.")
    if baseline is not None:
        words.append(f"{name.capitalize()}: {baseline:.2f}.")
    if marks:
        words.append(f"Marks: {'; '.join(one.label for one in marks[:5])}.")
    return " ".join(words)


def _mean(point: Point) -> str:
    if point.low is None or point.high is None:
        return f"{point.mean:.2f} (n={point.n})"
    return f"{point.mean:.2f} (95 % interval {point.low:.2f} to {point.high:.2f}, n={point.n})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A rectangle in units of the view box, and what its edges stand for."""

    left: float
    right: float
    top: float
    bottom: float
    since: datetime
    until: datetime
    floor: float = 0.0
    """The score at the bottom; 1 is at the top."""

    def x(self, moment: datetime) -> float:
        """Return where a moment lies; one outside the window at its edge."""
        share = (moment - self.since) / max(self.until - self.since, timedelta(microseconds=1))
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))

    def y(self, value: float) -> float:
        """Return where a score lies; one outside the axis at its edge."""
        share = (min(1.0, max(self.floor, value)) - self.floor) / (1 - self.floor)
        return self.bottom - (self.bottom - self.top) * share

    def sides(self, point: Point, bucket: timedelta) -> tuple[float, float]:
        """Return left and right of a bucket, cut to the window."""
        return self.x(point.start), self.x(point.start + bucket)

    def middle(self, point: Point, bucket: timedelta) -> float:
        """Return where a point's dot lies: in the middle of what the window shows of its bucket."""
        return sum(self.sides(point, bucket)) / 2

    def shows(self, point: Point, bucket: timedelta) -> bool:
        """Whether any of its bucket lies in the window."""
        return point.start < self.until and point.start + bucket > self.since

    @property
    def levels(self) -> tuple[float, ...]:
        """Scores at which a line is drawn."""
        return (0.0, 0.2, 0.4, 0.6, 0.8, 1.0) if self.floor == 0 else (-1.0, -0.5, 0.0, 0.5, 1.0)
