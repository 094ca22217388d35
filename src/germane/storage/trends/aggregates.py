"""SQL columns that compute the estimators' sums from rows and from rollups."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Float, case, cast, func, literal, type_coerce

from germane.score import GRADES, LOW_SCORE, LOWEST_BAND, NONCOMMITTAL
from germane.statistics import BINS
from germane.storage.db.functions import FloorToInteger
from germane.storage.db.tables import exchange, rollup, rollup_proxy, score

Columns = dict[str, ColumnElement[Any]]


def _inverse(chance: ColumnElement[float]) -> ColumnElement[float]:
    """Return 1 / probability, or 1 for null. Explicit types keep PostgreSQL from using the slower ``numeric``."""
    known = type_coerce(func.nullif(chance, literal(0.0, Float)), Float)
    return func.coalesce(literal(1.0, Float) / known, literal(1.0, Float), type_=Float)


_W = _inverse(score.c.sampling_probability)
_Y = score.c.value
_X = score.c.proxy
_IS_ZERO = _Y == 0
_HAS_X = _X.is_not(None)
# The same as Score.is_low. The label names the calibrated band, so it takes precedence over the value.
_IS_LOW = case(
    (score.c.label == LOWEST_BAND, True),
    (score.c.label.in_(GRADES), False),
    else_=_Y < LOW_SCORE,
)
_V = _inverse(func.coalesce(exchange.c.proxy_probability, 1.0) * exchange.c.capture_probability)
_PROXY = exchange.c.proxy
BIN: Final = case((_Y <= 0, 0), (_Y >= 1, BINS - 1), else_=FloorToInteger(_Y * BINS))
WEIGHT: Final = func.sum(_W)


SCORES: Final[Columns] = {
    "n": func.count(),
    "n_zero": func.sum(case((_IS_ZERO, 1), else_=0)),
    "sum_w": func.sum(_W),
    "sum_w_zero": func.sum(case((_IS_ZERO, _W), else_=0.0)),
    "sum_w2": func.sum(_W * _W),
    "sum_w2_zero": func.sum(case((_IS_ZERO, _W * _W), else_=0.0)),
    "sum_wy": func.sum(_W * _Y),
    "sum_wy2": func.sum(_W * _Y * _Y),
    "sum_w2y": func.sum(_W * _W * _Y),
    "sum_w2y2": func.sum(_W * _W * _Y * _Y),
    "sum_w_low": func.sum(case((_IS_LOW, _W), else_=0.0)),
    "sum_w_noncommittal": func.sum(case((score.c.label == NONCOMMITTAL, _W), else_=0.0)),
    "n_with_x": func.count(_X),
    "sum_w_with_x": func.coalesce(func.sum(case((_HAS_X, _W))), 0.0),
    "sum_w2_with_x": func.coalesce(func.sum(case((_HAS_X, _W * _W))), 0.0),
    "sum_wx": func.coalesce(func.sum(_W * _X), 0.0),
    "sum_wy_with_x": func.coalesce(func.sum(case((_HAS_X, _W * _Y))), 0.0),
    "sum_wx2": func.coalesce(func.sum(_W * _X * _X), 0.0),
    "sum_wxy": func.coalesce(func.sum(_W * _X * _Y), 0.0),
    "sum_wy2_with_x": func.coalesce(func.sum(case((_HAS_X, _W * _Y * _Y))), 0.0),
    "sum_w2x": func.coalesce(func.sum(_W * _W * _X), 0.0),
    "sum_w2y_with_x": func.coalesce(func.sum(case((_HAS_X, _W * _W * _Y))), 0.0),
    "sum_w2x2": func.coalesce(func.sum(_W * _W * _X * _X), 0.0),
    "sum_w2xy": func.coalesce(func.sum(_W * _W * _X * _Y), 0.0),
}
"""Sums over rows of the ``score`` table."""
PROXIES: Final[Columns] = {
    "n": func.count(),
    "sum_v": func.sum(_V),
    "sum_v2": func.sum(_V * _V),
    "sum_vx": func.sum(_V * _PROXY),
    "sum_vx2": func.sum(_V * _PROXY * _PROXY),
    "sum_v2x": func.sum(_V * _V * _PROXY),
    "sum_v2x2": func.sum(_V * _V * _PROXY * _PROXY),
}
"""Sums over rows of exchanges with a proxy score."""


def labeled(columns: Columns) -> list[Any]:
    """Return the columns, labeled with their names."""
    return [column.label(name) for name, column in columns.items()]


def _rolled(columns: Columns, table: Any) -> Columns:
    """Return sums over rolled-up sums, cast to their types: PostgreSQL's sum of ``bigint`` values is ``numeric``."""
    return {name: cast(func.sum(table.c[name]), BigInteger if name.startswith("n") else Float) for name in columns}


ROLLED_SCORES: Final = _rolled(SCORES, rollup)
ROLLED_PROXIES: Final = _rolled(PROXIES, rollup_proxy)
