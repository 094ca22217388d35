"""Figures reported for a reference implementation with different seeds, and limits for germane's figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from streams.cases import LASTS, MIXES, NULL, ONSETS, YEAR, Cell
from streams.measures import Measured

MOST_ALERTS = {NULL: 0.1, YEAR: 1.0, MIXES[0]: 0.1, MIXES[1]: 0.1}
NEAR_SHARE, NEAR_MEDIAN = 0.10, 0.30
PER_DROP = {"03": 1.9, "04": 1.9, "05": 1.4, "07": 1.15, "10": 1.15}
"""Upper limits for notifications per detected drop while the drop lasts, by drop size."""
PREMATURE = {"05": 0.05, "10": 0.01, "20": 0.01}
"""Upper limits for premature resolutions per detected drop, by drop size."""
EPSILON = 1e-9
"""Tolerance for rounding: limits are sums of decimal fractions."""

_ALERTS = """
20 .01|0|.08|.01|.31/260|.99/51|1/21|.15/229|.22/311|.53/166
20 .02|0|.10|.02|.20/inf|.91/72|1/26|.14/229|.24/303|.41/177
100 .01|0|0|0|.81/84|1/17|1/7|.99/53|.97/45|1/124
100 .02|.02|.13|.01|.45/198|1/26|1/8|.97/61|.96/48|.79/142
300 .01|.01|.01|0|.93/44|1/8|1/3|1/19|1/15|1/112
300 .02|.03|.34|.06|.58/143|1/14|1/3|1/22|1/15|.90/135
1000 .01|0|0|.01|.97/32|1/3|1/.8|1/8|1/5|1/102
1000 .02|.03|.82|.03|.58/135|1/7|.99/.9|1/9|1/5|.89/133
"""
_LASTING = """
20 .01|.17/.16|.48/.47|.79/.79|.97/.97|1/1|.81/.81|118/194|144/266|192/370
20 .02|.17/.15|.45/.41|.63/.60|.91/.91|1/1|.80/.80|105/267|144/295|186/442
100 .01|.43/.41|.79/.79|.98/.98|1/1|1/1|1/1|55/111|95/182|127/286
100 .02|.66/.45|.71/.57|.87/.81|.99/.98|1/1|1.01/1|41/123|102/183|113/298
300 .01|.70/.65|.94/.94|1/1|1/1|1/1|1/1|43/119|69/132|97/191
300 .02|.86/.49|1.01/.69|1/.88|1/1|1/1|1/1|38/126|72/149|90/249
1000 .01|.79/.75|1/.97|1/1|1/1|1/1|1/1|31/75|33/103|80/147
1000 .02|.95/.61|1.03/.67|1.16/.93|1.09/1|1/1|1.01/1|40/155|28/91|56/131
"""
_BACKS = (".10 for 15 d", "refusal .10 for 15 d", "support .20 for 15 d")
DECAY_REPORTED = {(100, 0.01): (1.0, 24 * 15.0), (100, 0.02): (1.0, 24 * 19.0)}
HOURLY_RULE_REPORTED = {20: (21.7, 0.01, None), 100: (25.4, 0.00, 264.0), 1000: (22.2, 0.04, None)}
"""By scores per day, with a wander of 0.01: false alerts in 30 days, p7 of 0.05 when tuned, and notifications for 0.07
over 15 days."""


def _read(text: str, names: list[str]) -> dict[tuple[int, float, str], tuple[float, ...]]:
    """Parse a table into figures by (scores per day, wander, case)."""
    found = {}
    for line in text.split("\n")[1:-1]:
        (per_day, wander), *cells = line.partition("|")[0].split(), *line.split("|")[1:]
        for name, cell in zip(names, cells, strict=True):
            found[int(per_day), float(wander), name] = tuple(map(float, cell.split("/")))
    return found


REPORTED = _read(_ALERTS, [NULL, YEAR, "mix", *ONSETS]) | _read(_LASTING, [*LASTS, *_BACKS])


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure with its reported value and its limits."""

    per_day: int
    wander: float
    case: str
    measure: str
    value: float
    error: float
    count: int
    reported: float | None = None
    least: float | None = None
    most: float | None = None
    better_under: float | None = None
    better_over: float | None = None

    @property
    def verdict(self) -> str:
        """``missed``, ``better``, ``met``, ``n/a`` for nan, or an empty string if there is no limit."""
        if self.least is None and self.most is None:
            return ""
        if math.isnan(self.value):
            return "n/a"
        if self.beyond > 0:
            return "missed"
        under = self.better_under is not None and self.value < self.better_under
        over = self.better_over is not None and self.value > self.better_over
        return "better" if under or over else "met"

    @property
    def beyond(self) -> float:
        """Distance by which the figure exceeds its limit; 0 if it meets the limit."""
        under = 0.0 if self.least is None else self.least - EPSILON - self.value
        over = 0.0 if self.most is None or self.value <= self.most + EPSILON else self.value - self.most
        return max(under, over, 0.0)

    @property
    def cell(self) -> Cell:
        """The kind of service."""
        return Cell(self.per_day, self.wander)


def alerts_figure(cell: Cell, case: str, found: Measured) -> Figure:
    """Return a count of false alerts, with a fixed upper limit."""
    key = "mix" if case in MIXES else case
    reported = REPORTED.get((cell.per_day, cell.wander, key), (None,))[0]
    return _figure(cell, case, "alerts", found, reported, most=MOST_ALERTS[case])


def share_figure(cell: Cell, case: str, measure: str, found: Measured, reported: float | None) -> Figure:
    """Return a share that must be at least the reported share minus ``NEAR_SHARE``."""
    if reported is None:
        return _figure(cell, case, measure, found)
    over = reported + NEAR_SHARE + EPSILON
    return _figure(cell, case, measure, found, reported, least=reported - NEAR_SHARE, better_over=over)


def median_figure(cell: Cell, case: str, found: Measured, reported: float | None) -> Figure:
    """Return a median that must be at most ``NEAR_MEDIAN`` above the reported median."""
    if reported is None:
        return _figure(cell, case, "median", found)
    most, under = (1 + NEAR_MEDIAN) * reported, (1 - NEAR_MEDIAN) * reported
    return _figure(cell, case, "median", found, reported, most=most, better_under=under)


def plain_figure(
    cell: Cell, case: str, measure: str, found: Measured, reported: float | None = None, most: float | None = None
) -> Figure:
    """Return a figure with an optional upper limit."""
    return _figure(cell, case, measure, found, reported, most=most)


def reported(cell: Cell, case: str, place: int) -> float | None:
    """Return the first or second reported figure of a case, or None."""
    figures = REPORTED.get((cell.per_day, cell.wander, case))
    return None if figures is None else figures[place]


def size_of(case: str) -> str:
    """Return the two digits of the drop size in a case name: "05" for "shift .05"."""
    return case[case.index(".") + 1 :][:2]


def _figure(
    cell: Cell, case: str, measure: str, found: Measured, reported: float | None = None, **limits: float | None
) -> Figure:
    named: dict[str, Any] = dict(limits)
    place = (cell.per_day, cell.wander, case, measure)
    return Figure(*place, found.value, found.error, found.count, reported, **named)
