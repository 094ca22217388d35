"""Pictures, drawn on the server as SVG: they take plain values, and escape every text."""

from __future__ import annotations

from germane.dashboard.charts.figure import Trend, spread_figure, trend_figure
from germane.dashboard.charts.point import ChartMark, Point, points_of
from germane.dashboard.charts.small import small_chart
from germane.dashboard.charts.spread import histogram_chart
from germane.dashboard.charts.trend import trend_chart

__all__ = [
    "ChartMark",
    "Point",
    "Trend",
    "histogram_chart",
    "points_of",
    "small_chart",
    "spread_figure",
    "trend_chart",
    "trend_figure",
]
