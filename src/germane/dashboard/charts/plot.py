"""Where things lie in a picture: moments to the right, scores upwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from germane.dashboard.charts.point import Point


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
