"""Histograms as SVG that compare current scores with those from a reference period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from germane.insights.charts.svg import Picture, tag
from germane.score import LOW_SCORE

BARS: Final = 20
_SIZE: Final = (520, 200)
"""Width and height of the view box, which the page scales."""
_LEFT, _RIGHT, _TOP, _FOOT = 44.0, 10.0, 12.0, 24.0


@dataclass(frozen=True, slots=True)
class _Area:
    """The plot area."""

    left: float
    right: float
    top: float
    bottom: float
    max_share: float
    """Share at the top of the plot."""

    def x(self, bar: float) -> float:
        return self.left + (self.right - self.left) * bar / BARS

    def y(self, share: float) -> float:
        return self.bottom - (self.bottom - self.top) * share / self.max_share


def bar_shares(weights: Sequence[float]) -> list[float]:
    """Return the share of scores in each of 20 bars over [0, 1]. The first bar includes negative scores.

    The number of bins is a multiple of 20.
    """
    width, whole = len(weights) // BARS, math.fsum(weights)
    if not whole > 0:
        return [0.0] * BARS
    return [math.fsum(weights[start : start + width]) / whole for start in range(0, width * BARS, width)]


def histogram_svg(
    now: Sequence[float],
    before: Sequence[float] = (),
    *,
    title: str,
    name: str = "spread",
    low_below: float | None = LOW_SCORE,
) -> Markup:
    """Return a chart with two histograms: bars for ``now`` and an outline for ``before``.

    The other arguments are those of :func:`germane.insights.charts.figure.histogram_figure`.
    """
    shares, earlier, (width, height) = bar_shares(now), bar_shares(before), _SIZE
    largest = max(*shares, *earlier)
    ceiling = next((share for share in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if largest <= share), 1.0)
    area = _Area(_LEFT, width - _RIGHT, _TOP, height - _FOOT, ceiling)
    parts = []
    for share in (0.0, area.max_share / 2, area.max_share):
        y = area.y(share)
        parts.append(tag("line", class_="grid", x1=area.left, x2=area.right, y1=y, y2=y))
        parts.append(tag("text", f"{share * 100:g}%", x=area.left - 7, y=y + 4, text_anchor="end"))
    if low_below is not None:
        edge = area.x(low_below * BARS)
        parts.append(tag("line", class_="mark judge", x1=edge, x2=edge, y1=area.top, y2=area.bottom))
        parts.append(tag("text", "low", x=edge - 5, y=area.top + 10, text_anchor="end"))
    for tenth in range(0, 11, 2):
        x, anchor = area.x(tenth * BARS / 10), "end" if tenth == 10 else "middle"
        parts.append(tag("text", f"{tenth / 10:g}", x=x, y=area.bottom + 17, text_anchor=anchor))
    for bar, share in enumerate(shares):
        if share > 0:
            x, y, bar_width = area.x(bar) + 1, area.y(share), area.x(1) - area.left - 2
            parts.append(tag("rect", class_="now", x=x, y=y, width=bar_width, height=area.bottom - y))
    if any(earlier):
        steps = "".join(f" V{area.y(share):.1f} H{area.x(bar + 1):.1f}" for bar, share in enumerate(earlier))
        path = f"M{area.left:.1f} {area.bottom:.1f}{steps} V{area.bottom:.1f}"
        parts.append(tag("path", class_="before", d=path))
    text = _describe("Now", shares, low_below)
    text += f" {_describe('Before', earlier, low_below)}" if any(earlier) else ""
    picture = Picture(width=width, height=height, title=title, description=text, name=name, css_class="spread")
    return picture.render(*parts)


def _describe(name: str, shares: Sequence[float], low_below: float | None) -> str:
    if not any(shares):
        return f"{name}: no scores."
    peak = max(range(BARS), key=lambda bar: shares[bar])
    span = f"{peak / BARS:g} to {(peak + 1) / BARS:g}"
    if low_below is None:
        return f"{name}: the most common range is {span}."
    low = math.fsum(shares[: round(low_below * BARS)])
    return f"{name}: the most common range is {span}; {low * 100:.0f}% of scores are below {low_below:g}."
