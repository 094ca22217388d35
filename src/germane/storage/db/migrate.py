"""Bringing a database's tables to what this code expects, and saying when they are not."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from germane.errors import DatabaseNotMigrated
from germane.logging_filters import hushed
from germane.storage.db.engine import Database

VERSION_TABLE = "germane_version"
"""Not Alembic's own name: the application may keep its own migrations in the same database."""
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
"""All there ever were, oldest first."""
_LOCK = 0x6765726D616E65  # "germane"
_SCRIPTS = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Upgrade to the newest revision. Any number of processes may do so at once: one works, the others wait.

    Raises:
        DatabaseUnreachable: there is no connection, or SQLite's file cannot be written.
        DatabaseNotMigrated: the tables are newer than this code.
    """
    if database.is_absent or not _is_current(database):
        _upgrade_once(database)
    database.use_write_ahead_log()


def _is_current(database: Database) -> bool:
    with database.read() as connection:
        return _version(connection, database.name) == REVISIONS[-1]


def _upgrade_once(database: Database) -> None:
    with database.write() as connection:  # on SQLite, this alone keeps the others out
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if _version(connection, database.name) != REVISIONS[-1]:
            _upgrade(connection)


def check(database: Database) -> None:
    """Return when the tables are the ones this code expects.

    Raises:
        DatabaseUnreachable: there is no connection.
        DatabaseNotMigrated: the tables are missing, older or newer.
    """
    with database.read() as connection:
        version = _version(connection, database.name)
    if version is None:
        raise DatabaseNotMigrated(f"{database.name} has no tables of germane yet: run 'germane db upgrade'")
    if version != REVISIONS[-1]:
        raise DatabaseNotMigrated(
            f"the tables in {database.name} are older than this germane ({version}, it needs {REVISIONS[-1]}): "
            "run 'germane db upgrade'"
        )


def revision(database: Database) -> str | None:
    """Return the revision of a database's tables; None of one without them."""
    with database.read() as connection:
        return _version(connection, database.name)


def _version(connection: Connection, name: str) -> str | None:
    """Return the revision that the database is at, None for one without our tables."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant
    if version is not None and version not in REVISIONS:
        raise DatabaseNotMigrated(
            f"the tables in {name} are newer than this germane ({version}, it knows up to {REVISIONS[-1]}): "
            "upgrade germane"
        )
    return version


def _upgrade(connection: Connection) -> None:
    with hushed():
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
