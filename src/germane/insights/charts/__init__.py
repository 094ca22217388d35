"""Pictures, drawn on the server as SVG: they take plain values, and escape every text."""

from __future__ import annotations

from germane.insights.charts.distribution import histogram_chart
from germane.insights.charts.figure import Trend, spread_figure, trend_figure
from germane.insights.charts.point import ChartMark, Point, points_of
from germane.insights.charts.small import small_chart
from germane.insights.charts.trend import trend_chart

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
