"""Charts that are drawn on the server as SVG from plain values."""

from __future__ import annotations

from germane.insights.charts.figure import TrendChart, histogram_figure, trend_figure
from germane.insights.charts.histogram import histogram_svg
from germane.insights.charts.point import ChartMarker, Point, chart_points
from germane.insights.charts.trend import sparkline_svg, trend_svg

__all__ = [
    "ChartMarker",
    "Point",
    "TrendChart",
    "chart_points",
    "histogram_figure",
    "histogram_svg",
    "sparkline_svg",
    "trend_figure",
    "trend_svg",
]
