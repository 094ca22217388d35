"""SQL functions that SQLite and PostgreSQL write differently."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Integer
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction, ReturnTypeFromArgs


class EpochSeconds(GenericFunction[int]):
    """Whole seconds since 1970."""

    type = BigInteger()
    inherit_cache = True
    name = "germane_epoch"


@compiles(EpochSeconds, "sqlite")
def _epoch_on_sqlite(element: EpochSeconds, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(strftime('%s', {compiler.process(element.clauses, **options)}) AS INTEGER)"


@compiles(EpochSeconds, "postgresql")
def _epoch_on_postgresql(element: EpochSeconds, compiler: SQLCompiler, **options: Any) -> str:
    # A float is exact to the microsecond for centuries; numeric takes several times as long.
    return f"CAST(floor(date_part('epoch', {compiler.process(element.clauses, **options)})) AS BIGINT)"


class FloorToInteger(GenericFunction[int]):
    """The integer part of a non-negative number."""

    type = Integer()
    inherit_cache = True
    name = "germane_floor"


@compiles(FloorToInteger, "sqlite")
def _floor_on_sqlite(element: FloorToInteger, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS INTEGER)"


@compiles(FloorToInteger, "postgresql")
def _floor_on_postgresql(element: FloorToInteger, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(floor({compiler.process(element.clauses, **options)}) AS INTEGER)"


class Unindexed(ReturnTypeFromArgs[Any]):
    """A column whose index SQLite must not use: without statistics, it takes every range for a narrow one."""

    inherit_cache = True
    name = "germane_unindexed"


@compiles(Unindexed, "sqlite")
def _unindexed_on_sqlite(element: Unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"


@compiles(Unindexed, "postgresql")
def _unindexed_on_postgresql(element: Unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return f"{compiler.process(element.clauses, **options)}"
