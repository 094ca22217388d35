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


class FloorToInteger(GenericFunction[int]):
    """The integer part of a non-negative number."""

    type = Integer()
    inherit_cache = True
    name = "germane_floor"


class Unindexed(ReturnTypeFromArgs[Any]):
    """A column whose index SQLite must not use: without statistics, it assumes that every range is narrow."""

    inherit_cache = True
    name = "germane_unindexed"


def _compile_as(function: Any, dialect: str, template: str) -> None:
    """Compile a function to the template, with the arguments in place of ``{}``."""

    @compiles(function, dialect)
    def write(element: Any, compiler: SQLCompiler, **options: Any) -> str:
        return template.format(compiler.process(element.clauses, **options))


_compile_as(EpochSeconds, "sqlite", "CAST(strftime('%s', {}) AS INTEGER)")
# A float is exact to the microsecond for centuries; computing with numeric takes several times as long.
_compile_as(EpochSeconds, "postgresql", "CAST(floor(date_part('epoch', {})) AS BIGINT)")
_compile_as(FloorToInteger, "sqlite", "CAST({} AS INTEGER)")
_compile_as(FloorToInteger, "postgresql", "CAST(floor({}) AS INTEGER)")
_compile_as(Unindexed, "sqlite", "+{}")
_compile_as(Unindexed, "postgresql", "{}")
