"""Charts that are drawn on the server as SVG from plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.lazy import lazy_exports

if TYPE_CHECKING:
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

__getattr__ = lazy_exports(
    __name__,
    {
        "figure": ("TrendChart", "histogram_figure", "trend_figure"),
        "histogram": ("histogram_svg",),
        "point": ("ChartMarker", "Point", "chart_points"),
        "trend": ("sparkline_svg", "trend_svg"),
    },
)
