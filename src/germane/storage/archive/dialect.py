"""A SQLAlchemy dialect for DuckDB, with which the queries for the database also read the archive.

It only reads. Times are stored in UTC without a time zone, because DuckDB's Python package needs an additional package
for times with a time zone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import DateTime, Dialect
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import GenericTypeCompiler, SQLCompiler

from germane.storage.archive.location import require

NAME: Final = "duckdb"
REGISTERED_NAME: Final = "germane.duckdb"
"""Name under which SQLAlchemy finds the dialect."""
URL: Final = "germane+duckdb://"
"""The URL's scheme differs from ``duckdb``, which another package may have registered."""


class _Types(GenericTypeCompiler):
    """Compiles types to SQL. A DuckDB ``FLOAT`` has only 32 bits, and a ``NUMERIC`` three decimal places."""

    def visit_FLOAT(self, type_: Any, **options: Any) -> str:  # noqa: ARG002, N802 - SQLAlchemy calls it by this name
        return "DOUBLE"

    visit_NUMERIC = visit_FLOAT  # noqa: N815


class _Compiler(SQLCompiler):
    """Compiles statements to SQL. In DuckDB, ``/`` is not integer division."""

    def visit_floordiv_binary(self, binary: Any, operator: Any, **options: Any) -> str:  # noqa: ARG002 - the signature is the base class's
        return f"{self.process(binary.left, **options)} // {self.process(binary.right, **options)}"


class _UtcTime(DateTime):
    """A time parameter, without its time zone."""

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], datetime | None]:  # noqa: ARG002
        return lambda value: value.astimezone(UTC).replace(tzinfo=None) if value and value.tzinfo else value


class SharedConnection:
    """A DuckDB connection for SQLAlchemy, whose cursors all use the connection itself.

    DuckDB's own cursors do not see the views and the Arrow data sets that belong to a connection. Read the result of a
    query completely before the next query. ``prepare`` is called with each statement before it is executed.
    """

    def __init__(self, database: Any, prepare: Callable[[str], None]) -> None:
        self._database = database
        self._prepare = prepare

    def cursor(self) -> _Cursor:
        """Return a new cursor."""
        return _Cursor(self._database, self._prepare)

    def close(self) -> None:
        """Do nothing: the code that opened the connection closes it."""


class _Cursor:
    rowcount = -1
    arraysize = 1

    def __init__(self, database: Any, prepare: Callable[[str], None]) -> None:
        self._database = database
        self._prepare = prepare
        self.fetchone, self.fetchmany, self.fetchall = database.fetchone, database.fetchmany, database.fetchall

    @property
    def description(self) -> Any:
        return self._database.description

    def execute(self, statement: str, parameters: Any = ()) -> None:
        self._prepare(statement)
        self._database.execute(statement, parameters)

    def close(self) -> None:
        pass


class DuckDBDialect(DefaultDialect):
    """The part of DuckDB's dialect that germane's read queries need."""

    name = NAME
    driver = NAME
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = False
    statement_compiler = _Compiler
    type_compiler_cls = _Types
    colspecs = {DateTime: _UtcTime}  # noqa: RUF012 - the base class declares it as an attribute of instances
    _json_serializer = None
    _json_deserializer = None

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the ``duckdb`` module."""
        return require("duckdb")

    def initialize(self, connection: Any) -> None:
        """Do nothing: there is no server to query."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Do nothing: nothing is written."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: nothing is written."""

    do_begin = do_rollback


registry.register(REGISTERED_NAME, __name__, "DuckDBDialect")
