"""Database URLs, and the SQLAlchemy engines for SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from germane.errors import SettingsError
from germane.installation import install_command
from germane.logging_filters import install_driver_filter
from germane.storage.db.sqlite_file import SqliteFile

BUSY_TIMEOUT = 15.0
"""Maximum time in seconds that SQLite waits for another writer."""
CACHED_STATEMENTS: Final = 32
"""Prepared statements that each SQLite connection keeps. The driver's default of 128 takes 10 MB in an application."""
READ_ONLY: Final = "germane_reading"
"""Execution option that marks a transaction as read-only."""
AUTOCOMMIT: Final = "germane_plain"
"""Execution option that disables transactions on an SQLite connection."""
OPEN_FILES: Final = "germane_files"
"""Key in ``Connection.info`` for the connection's :class:`OpenFiles`."""
_MIN_SQLITE_VERSION: Final = (3, 35, 0)  # RETURNING
_POSTGRESQL_DEFAULTS: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "tcp_user_timeout": 20_000,  # milliseconds; by default a vanished server blocks a thread for 15 minutes
    "application_name": "germane",
}
"""Default connection parameters, which the URL may override."""


def parse_url(url: str) -> URL:
    """Parse a database URL. The result uses germane's driver and, for an SQLite file, an absolute path.

    Raises:
        SettingsError: The URL is invalid or names an unsupported database, or its driver is not installed.
    """
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise SettingsError("invalid database URL; use, for example, sqlite:///germane.db") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
            raise SettingsError(f"germane needs SQLite 3.35 or newer; this Python has {sqlite3.sqlite_version}")
        _check_options(parsed)
        if not parsed.database or is_memory(parsed) or parsed.database.startswith("file:"):
            return parsed
        # Make the path absolute, because the application may change its working directory later.
        return parsed.set(database=str(Path(parsed.database).expanduser().absolute()))
    # Heroku, Render and others provide URLs with postgres://, which libpq accepts and SQLAlchemy does not.
    if parsed.drivername in {"postgresql", "postgresql+psycopg", "postgres"}:
        if "@" in (parsed.host or ""):
            raise SettingsError("the password in the database URL contains an unescaped @: write it as %40")
        if find_spec("psycopg") is None:
            raise SettingsError(f"the PostgreSQL driver is not installed: run {install_command('postgres')}")
        parsed = parsed.set(drivername="postgresql+psycopg")
        _check_options(parsed)
        return parsed
    raise SettingsError(f"unsupported database {parsed.drivername!r}: use SQLite or PostgreSQL")


def _check_options(url: URL) -> None:
    """Reject options of other drivers, which hosts of PostgreSQL hand out, without naming their secret values."""
    try:
        url.get_dialect()().create_connect_args(url)
        int(str(url.query.get("connect_timeout", 0)))
    except (exc.ArgumentError, ValueError):
        message = f"an option in the database URL has an invalid value: correct {', '.join(url.query)}"
        raise SettingsError(message) from None
    if url.query and url.get_backend_name() == "postgresql":
        from psycopg import ProgrammingError, conninfo

        for name in url.query.keys() - {"prepare_threshold"}:  # see create_postgresql_engine
            try:
                conninfo.make_conninfo(**{name: ""})
            except ProgrammingError:
                raise SettingsError(f"the database URL has an option for another driver: remove {name!r}") from None


def is_memory(url: URL) -> bool:
    """Return whether the URL names an in-memory SQLite database."""
    return url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}


def create_sqlite_engine(url: URL, file: SqliteFile | None) -> Engine:
    """Create the engine for an SQLite database. It connects on first use.

    The file is None for an in-memory database, and for a ``file:`` path, which SQLite parses itself.
    """
    # An in-memory database exists in a single connection, which only one thread uses at a time.
    pool = {"pool_size": 1, "max_overflow": 0} if is_memory(url) else {"pool_size": 5, "max_overflow": 20}
    engine = create_engine(
        url,
        poolclass=QueuePool,
        hide_parameters=True,
        connect_args={
            "timeout": BUSY_TIMEOUT,
            "isolation_level": None,
            "check_same_thread": False,
            "cached_statements": CACHED_STATEMENTS,
        },
        pool_size=pool["pool_size"],
        max_overflow=pool["max_overflow"],
    )

    if file is not None:

        @event.listens_for(engine, "do_connect")
        def create_file(*_: Any) -> None:
            file.create()

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = NORMAL")  # in WAL mode, commits survive a crash of the process
        cursor.execute("PRAGMA secure_delete = ON")  # overwrite deleted content, whatever the build's default
        cursor.close()
        if file is not None:
            record.info[OPEN_FILES] = file.identify(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that writes acquires the write lock first: upgrading a read lock later fails instead of waiting.
        options = connection.get_execution_options()
        if not options.get(AUTOCOMMIT, False):
            connection.exec_driver_sql("BEGIN" if options.get(READ_ONLY, False) else "BEGIN IMMEDIATE")

    return engine


def create_postgresql_engine(url: URL) -> Engine:
    """Create the engine for a PostgreSQL database. It connects on first use."""
    arguments: dict[str, Any] = {name: value for name, value in _POSTGRESQL_DEFAULTS.items() if name not in url.query}
    # A pooler such as PgBouncer may use a different server connection for each transaction. That connection lacks the
    # statements that were prepared on the previous one, or has other statements with the same names.
    arguments["prepare_threshold"] = None
    install_driver_filter()
    return create_engine(url, hide_parameters=True, pool_pre_ping=True, max_overflow=20, connect_args=arguments)
