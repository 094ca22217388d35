"""The sums that estimates are made of, as columns: over the rows themselves, and over what is rolled up."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Float, Integer, case, cast, func, literal, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction, ReturnTypeFromArgs

from germane.score import BANDS, LOW, LOWEST
from germane.storage.db.tables import exchange, rollup, rollup_proxy, score
from germane.storage.stats.histogram import BINS

NONCOMMITTAL: Final = "noncommittal"
"""The label of an answer that did not answer."""
Columns = dict[str, ColumnElement[Any]]


class Epoch(GenericFunction[int]):
    """Whole seconds since 1970."""

    type = BigInteger()
    inherit_cache = True
    name = "germane_epoch"


@compiles(Epoch, "sqlite")
def _epoch_on_sqlite(element: Epoch, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(strftime('%s', {compiler.process(element.clauses, **options)}) AS INTEGER)"


@compiles(Epoch, "postgresql")
def _epoch_on_postgresql(element: Epoch, compiler: SQLCompiler, **options: Any) -> str:
    # As a float, which tells microseconds apart for centuries: a numeric takes several times as long.
    return f"CAST(floor(date_part('epoch', {compiler.process(element.clauses, **options)})) AS BIGINT)"


class Whole(GenericFunction[int]):
    """The whole part of a number that is not under 0."""

    type = Integer()
    inherit_cache = True
    name = "germane_whole"


@compiles(Whole, "sqlite")
def _whole_on_sqlite(element: Whole, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS INTEGER)"


@compiles(Whole, "postgresql")
def _whole_on_postgresql(element: Whole, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(floor({compiler.process(element.clauses, **options)}) AS INTEGER)"


class Unsought(ReturnTypeFromArgs[Any]):
    """A column by which SQLite is not to look for rows: it has no statistics, and would take any window for narrow."""

    inherit_cache = True
    name = "germane_unsought"


@compiles(Unsought, "sqlite")
def _unsought_on_sqlite(element: Unsought, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"


@compiles(Unsought, "postgresql")
def _unsought_on_postgresql(element: Unsought, compiler: SQLCompiler, **options: Any) -> str:
    return f"{compiler.process(element.clauses, **options)}"


def _inverse(chance: ColumnElement[float]) -> ColumnElement[float]:
    """Return 1 / a probability, and 1 where there is none; the types are said, else PostgreSQL reckons in numerics."""
    known = type_coerce(func.nullif(chance, literal(0.0, Float)), Float)
    return func.coalesce(literal(1.0, Float) / known, literal(1.0, Float), type_=Float)


_W = _inverse(score.c.sampling_probability)
_Y = score.c.value
_X = score.c.proxy
BIN: Final = case((_Y <= 0, 0), (_Y >= 1, BINS - 1), else_=Whole(_Y * BINS))
WEIGHT: Final = func.sum(_W)


def _over_scores() -> Columns:
    zero, known = _Y == 0, _X.is_not(None)
    # As Score.is_low says it: the band that a label names is the calibrated one.
    low = case((score.c.label == LOWEST, True), (score.c.label.in_([name for _, name in BANDS]), False), else_=_Y < LOW)
    return {
        "n": func.count(),
        "n_zero": func.sum(case((zero, 1), else_=0)),
        "w": func.sum(_W),
        "w_zero": func.sum(case((zero, _W), else_=0.0)),
        "ww": func.sum(_W * _W),
        "ww_zero": func.sum(case((zero, _W * _W), else_=0.0)),
        "wy": func.sum(_W * _Y),
        "wyy": func.sum(_W * _Y * _Y),
        "wwy": func.sum(_W * _W * _Y),
        "wwyy": func.sum(_W * _W * _Y * _Y),
        "w_low": func.sum(case((low, _W), else_=0.0)),
        "w_noncommittal": func.sum(case((score.c.label == NONCOMMITTAL, _W), else_=0.0)),
        "n_x": func.count(_X),
        "w_x": func.coalesce(func.sum(case((known, _W))), 0.0),
        "ww_x": func.coalesce(func.sum(case((known, _W * _W))), 0.0),
        "wx": func.coalesce(func.sum(_W * _X), 0.0),
        "wy_x": func.coalesce(func.sum(case((known, _W * _Y))), 0.0),
        "wxx": func.coalesce(func.sum(_W * _X * _X), 0.0),
        "wxy": func.coalesce(func.sum(_W * _X * _Y), 0.0),
        "wyy_x": func.coalesce(func.sum(case((known, _W * _Y * _Y))), 0.0),
        "wwx": func.coalesce(func.sum(_W * _W * _X), 0.0),
        "wwy_x": func.coalesce(func.sum(case((known, _W * _W * _Y))), 0.0),
        "wwxx": func.coalesce(func.sum(_W * _W * _X * _X), 0.0),
        "wwxy": func.coalesce(func.sum(_W * _W * _X * _Y), 0.0),
    }


def _over_proxies() -> Columns:
    chance = func.coalesce(exchange.c.proxy_probability, 1.0) * exchange.c.capture_probability
    v, x = _inverse(chance), exchange.c.proxy
    return {
        "n": func.count(),
        "v": func.sum(v),
        "vv": func.sum(v * v),
        "vx": func.sum(v * x),
        "vxx": func.sum(v * x * x),
        "vvx": func.sum(v * v * x),
        "vvxx": func.sum(v * v * x * x),
    }


def _rolled(columns: Columns, table: Any) -> Columns:
    """Return the sums of sums; on PostgreSQL a sum of whole numbers is no whole number of its own accord."""
    return {name: cast(func.sum(table.c[name]), BigInteger if name.startswith("n") else Float) for name in columns}


SCORES: Final = _over_scores()
PROXIES: Final = _over_proxies()
ROLLED_SCORES: Final = _rolled(SCORES, rollup)
ROLLED_PROXIES: Final = _rolled(PROXIES, rollup_proxy)
