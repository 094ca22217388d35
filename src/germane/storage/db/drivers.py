"""Database URLs, and the SQLAlchemy engines of SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from germane.errors import SettingsError
from germane.logging_filters import install_driver_filter
from germane.storage.db.sqlite_file import SqliteFile

BUSY_TIMEOUT = 15.0
"""Maximum time that SQLite waits for another writer, in seconds."""
READ_ONLY: Final = "germane_reading"
"""Execution option of a transaction that only reads."""
AUTOCOMMIT: Final = "germane_plain"
"""Execution option of an SQLite connection without transactions."""
OPEN_FILES: Final = "germane_files"
"""Key in ``Connection.info`` for a connection's :class:`OpenFiles`."""
_MIN_SQLITE_VERSION: Final = (3, 35, 0)  # RETURNING
_POSTGRESQL_DEFAULTS: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "tcp_user_timeout": 20_000,  # milliseconds; by default a vanished server blocks a thread for 15 minutes
    "application_name": "germane",
}
"""Connection parameters that the URL may override."""


def parse_url(url: str) -> URL:
    """Return a URL with germane's driver, and an absolute path for an SQLite file.

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
        if not parsed.database or is_memory(parsed) or parsed.database.startswith("file:"):
            return parsed
        # Absolute, because the application may change its working directory later.
        return parsed.set(database=str(Path(parsed.database).expanduser().absolute()))
    # Heroku, Render and others provide URLs with postgres://, which libpq accepts and SQLAlchemy does not.
    if parsed.drivername in {"postgresql", "postgresql+psycopg", "postgres"}:
        if "@" in (parsed.host or ""):
            raise SettingsError("the password in the database URL contains an @: write it as %40")
        if find_spec("psycopg") is None:
            raise SettingsError("PostgreSQL needs a driver: pip install 'germane[postgres]'")
        return parsed.set(drivername="postgresql+psycopg")
    raise SettingsError(f"unsupported database {parsed.drivername!r}: use SQLite or PostgreSQL")


def is_memory(url: URL) -> bool:
    """Whether this is an SQLite database in memory."""
    return url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}


def create_sqlite_engine(url: URL, file: SqliteFile | None) -> Engine:
    """Create the engine for an SQLite database. It connects on first use.

    Args:
        url: The parsed URL.
        file: The file of the database; None for a database in memory, and for a path that SQLite parses itself.
    """
    # An in-memory database exists in one connection, which one thread at a time uses.
    pool = {"pool_size": 1, "max_overflow": 0} if is_memory(url) else {"pool_size": 5, "max_overflow": 20}
    engine = create_engine(
        url,
        poolclass=QueuePool,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT, "isolation_level": None, "check_same_thread": False},
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
        cursor.execute("PRAGMA synchronous = NORMAL")  # in WAL mode a commit survives any crash of the process
        cursor.execute("PRAGMA secure_delete = ON")  # overwrite erased text, whatever SQLite's build default is
        cursor.close()
        if file is not None:
            record.info[OPEN_FILES] = file.identify(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Acquire the write lock first if the transaction writes: upgrading a read lock later fails instead of waiting.
        options = connection.get_execution_options()
        if not options.get(AUTOCOMMIT, False):
            connection.exec_driver_sql("BEGIN" if options.get(READ_ONLY, False) else "BEGIN IMMEDIATE")

    return engine


def create_postgresql_engine(url: URL) -> Engine:
    """Create the engine for a PostgreSQL database. It connects on first use."""
    arguments: dict[str, Any] = {name: value for name, value in _POSTGRESQL_DEFAULTS.items() if name not in url.query}
    # A pooler such as pgbouncer gives each transaction another server connection, which lacks the statements that were
    # prepared on the previous one, or has statements of the same name.
    arguments["prepare_threshold"] = None
    install_driver_filter()
    return create_engine(url, hide_parameters=True, pool_pre_ping=True, max_overflow=20, connect_args=arguments)
