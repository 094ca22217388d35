"""SQL functions whose syntax differs between SQLite, PostgreSQL and DuckDB, which reads the archive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Integer, Text, cast, func, literal, select, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction, ReturnTypeFromArgs


class EpochSeconds(GenericFunction[int]):
    """A time as whole seconds since 1970."""

    type = BigInteger()
    inherit_cache = True
    name = "germane_epoch"


class FloorToInteger(GenericFunction[int]):
    """The integer part of a non-negative number."""

    type = Integer()
    inherit_cache = True
    name = "germane_floor"


class Unindexed(ReturnTypeFromArgs[Any]):
    """Prevents SQLite from using an index on a column. Without statistics, it assumes that every range is narrow."""

    inherit_cache = True
    name = "germane_unindexed"


def is_one_of(column: ColumnElement[str], values: Sequence[str], dialect: str) -> ColumnElement[bool]:
    """Return the SQL condition that a text column has one of the values, which are sent as a single parameter.

    With hundreds of values, processing one parameter per value would take longer than the query itself.
    """
    if dialect == "sqlite":
        return column.in_(select(func.json_each(json.dumps(values)).table_valued("value").c.value))
    if dialect == "duckdb":
        return column == func.any(literal(list(values), ARRAY(Text)))
    return column == func.any(cast(literal(array_literal(values)), ARRAY(Text)))


def array_literal(values: Sequence[str | None]) -> str:
    """Return texts as an array in PostgreSQL's notation. The driver takes ten times as long to encode a list."""
    texts = [value for value in values if value is not None]
    joined = '","'.join(texts)
    if texts and len(texts) == len(values) and joined.count('"') == 2 * len(texts) - 2 and "\\" not in joined:
        return f'{{"{joined}"}}'  # no text needs to be escaped
    quoted = [
        "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values
    ]
    return "{" + ",".join(quoted) + "}"


def json_text(column: ColumnElement[Any], dialect: str) -> ColumnElement[str]:
    """Return a JSON column as stored text, because converting many values to objects takes long."""
    return cast(column, Text()) if dialect == "postgresql" else type_coerce(column, Text())


def _compile_as(function: Any, dialect: str, template: str) -> None:
    """Register a template that compiles a function for a dialect; the arguments replace ``{}``."""

    @compiles(function, dialect)
    def write(element: Any, compiler: SQLCompiler, **options: Any) -> str:
        return template.format(compiler.process(element.clauses, **options))


# SQLite rounds times to milliseconds: 59.9995 seconds become the next minute. A time's text starts with its seconds.
_compile_as(EpochSeconds, "sqlite", "CAST(strftime('%s', substr({}, 1, 19)) AS INTEGER)")
# For centuries to come, a float is exact to the microsecond. Arithmetic on numeric takes several times as long.
_compile_as(EpochSeconds, "postgresql", "CAST(floor(date_part('epoch', {})) AS BIGINT)")
_compile_as(EpochSeconds, "duckdb", "CAST(floor(epoch({})) AS BIGINT)")
_compile_as(FloorToInteger, "sqlite", "CAST({} AS INTEGER)")
_compile_as(FloorToInteger, "postgresql", "CAST(floor({}) AS INTEGER)")
_compile_as(FloorToInteger, "duckdb", "CAST(floor({}) AS INTEGER)")
_compile_as(Unindexed, "sqlite", "+{}")
_compile_as(Unindexed, "postgresql", "{}")
_compile_as(Unindexed, "duckdb", "{}")
