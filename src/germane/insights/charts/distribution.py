"""How scores are spread, now and in the time of the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from germane.insights.charts.frame import Picture
from germane.insights.charts.svg import joined, tag
from germane.score import LOW

BARS: Final = 20
_LEFT, _RIGHT, _TOP, _FOOT = 44.0, 10.0, 12.0, 24.0


def shares_of(weights: Sequence[float]) -> list[float]:
    """Return the share of the whole in each of 20 bars over [0, 1]; the first holds what lies under 0 as well.

    Args:
        weights: Of bins of equal width over [0, 1], as many as divide by 20: those of a
            :class:`germane.storage.Histogram`.
    """
    width, whole = len(weights) // BARS, math.fsum(weights)
    if not whole > 0:
        return [0.0] * BARS
    return [math.fsum(weights[start : start + width]) / whole for start in range(0, width * BARS, width)]


def histogram_chart(
    now: Sequence[float],
    before: Sequence[float] = (),
    *,
    title: str,
    description: str = "",
    width: int = 520,
    height: int = 200,
    name: str = "spread",
    kind: str = "",
) -> Markup:
    """Return a picture of two histograms, as SVG: bars for ``now``, an outline for ``before``.

    Args:
        now: Weights of 100 bins over [0, 1].
        before: The same of the time that is compared with; empty without one.
        title: What it is, for who cannot see it.
        description: What it shows; by default where most of the scores lie.
        width: Of the view box; the page stretches it.
        height: Of the view box.
        name: Its id, its own on the page.
        kind: A class of the style sheet.
    """
    shares, earlier = shares_of(now), shares_of(before)
    top = _ceiling(max(*shares, *earlier))
    words = description or _described(shares, earlier)
    box = (_LEFT, width - _RIGHT, _TOP, height - _FOOT)
    picture = Picture(width=width, height=height, title=title, description=words, name=name, kind=kind)
    return picture.of(_axes(box, top), *_bars(shares, box, top), _outline(earlier, box, top))


Box = tuple[float, float, float, float]
"""Left, right, top, bottom."""


def _ceiling(share: float) -> float:
    """Return a round share that holds all bars."""
    return next((one for one in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if share <= one), 1.0)


def _x(box: Box, number: float) -> float:
    return box[0] + (box[1] - box[0]) * number / BARS


def _y(box: Box, share: float, top: float) -> float:
    return box[3] - (box[3] - box[2]) * share / top


def _bars(shares: Sequence[float], box: Box, top: float) -> list[Markup]:
    return [
        tag(
            "rect",
            class_="now",
            x=_x(box, number) + 1,
            y=_y(box, share, top),
            width=_x(box, 1) - box[0] - 2,
            height=box[3] - _y(box, share, top),
        )
        for number, share in enumerate(shares)
        if share > 0
    ]


def _outline(shares: Sequence[float], box: Box, top: float) -> Markup:
    if not any(shares):
        return Markup("")
    steps = "".join(f" V{_y(box, share, top):.1f} H{_x(box, number + 1):.1f}" for number, share in enumerate(shares))
    return tag("path", class_="before", d=f"M{box[0]:.1f} {box[3]:.1f}{steps} V{box[3]:.1f}")


def _axes(box: Box, top: float) -> Markup:
    parts = []
    for share in (0.0, top / 2, top):
        y = _y(box, share, top)
        parts.append(tag("line", class_="grid", x1=box[0], x2=box[1], y1=y, y2=y))
        parts.append(tag("text", f"{share * 100:g} %", x=box[0] - 7, y=y + 4, text_anchor="end"))
    edge = _x(box, LOW * BARS)
    parts.append(tag("line", class_="mark judge", x1=edge, x2=edge, y1=box[2], y2=box[3]))
    parts.append(tag("text", "low", x=edge - 5, y=box[2] + 10, text_anchor="end"))
    for tenth in range(0, 11, 2):
        place, anchor = _x(box, tenth * BARS / 10), "end" if tenth == 10 else "middle"
        parts.append(tag("text", f"{tenth / 10:g}", x=place, y=box[3] + 17, text_anchor=anchor))
    return joined(*parts)


def _described(shares: Sequence[float], earlier: Sequence[float]) -> str:
    words = [_peak("Now", shares)]
    return " ".join([*words, _peak("Before", earlier)] if any(earlier) else words)


def _peak(name: str, shares: Sequence[float]) -> str:
    if not any(shares):
        return f"{name} there is no score."
    place = max(range(BARS), key=lambda number: shares[number])
    low = math.fsum(shares[: round(LOW * BARS)])
    return (
        f"{name} most scores lie from {place / BARS:g} to {(place + 1) / BARS:g}; {low * 100:.0f} % are under {LOW:g}."
    )
