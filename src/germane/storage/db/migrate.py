"""Schema migrations, and the check that the tables match the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from germane.errors import DatabaseNotMigrated
from germane.logging_filters import suppressed_loggers
from germane.storage.db.engine import Database
from germane.storage.db.errors import PermissionDenied

VERSION_TABLE: Final = "germane_version"
"""Not Alembic's default name, because the application may have its own Alembic migrations in the same database."""
REVISIONS: Final = ("0.1.0",)
"""All revisions, oldest first. Each is named after the release that it is for."""
_UNRELEASED: Final = re.compile(r"00\d\d")
"""Revisions from before the first release."""
_VERSION: Final = text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - a constant
_LOCK: Final = 0x6765726D616E65  # "germane"
_SCRIPTS: Final = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Upgrade the tables to the newest revision. Any number of processes may call this concurrently.

    Raises:
        DatabaseUnreachable: The connection failed, or the SQLite file is not writable.
        DatabaseNotMigrated: The tables are newer than the code, or from before the first release, or the role may not
            create tables.
    """
    before = None if database.is_absent else revision(database)
    if before != REVISIONS[-1]:
        try:
            with database.write(migrating=True) as connection:  # on SQLite, this alone excludes other processes
                if connection.dialect.name == "postgresql":
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                if _read_revision(connection, database.name) != REVISIONS[-1]:
                    _create_or_upgrade(connection)
        except PermissionDenied as error:
            raise DatabaseNotMigrated(
                f"{_describe_mismatch(before, database.name)}, and this process may not create them ({error.message}): "
                "run 'germane db upgrade' as a role that may, and grant this role SELECT, INSERT, UPDATE and DELETE on "
                "the tables, and USAGE on their sequences"
            ) from None
    database.enable_wal()


def check(database: Database) -> None:
    """Check that the tables match the code.

    Raises:
        DatabaseUnreachable: The connection failed.
        DatabaseNotMigrated: The tables are missing, or older or newer than the code.
    """
    _require_newest(revision(database), database.name)


def check_tables(connection: Connection, name: str) -> None:
    """Check with a single query that the tables match the code.

    ``name`` is the database URL without the password.

    Raises:
        DatabaseNotMigrated: The tables are older or newer than the code.
    """
    _require_newest(_query_revision(connection, name), name)


def revision(database: Database) -> str | None:
    """Return the revision of the tables, or None if there are no tables.

    Raises:
        DatabaseNotMigrated: The tables are newer than the code, or from before the first release.
        DatabaseAbsent: The SQLite file does not exist.
    """
    with database.read() as connection:
        return _read_revision(connection, database.name)


def _read_revision(connection: Connection, name: str) -> str | None:
    return _query_revision(connection, name) if inspect(connection).has_table(VERSION_TABLE) else None


def _query_revision(connection: Connection, name: str) -> str | None:
    version: str | None = connection.execute(_VERSION).scalar()
    if version is not None and _UNRELEASED.fullmatch(version):
        raise DatabaseNotMigrated(
            f"the tables in {name} (revision {version}) are from before germane's first release, and cannot be "
            "upgraded: run 'germane export FILE.jsonl' with the checkout that wrote them, then import the file into a "
            "new database with 'germane import FILE.jsonl'"
        )
    if version is not None and version not in REVISIONS:
        raise DatabaseNotMigrated(
            f"the tables in {name} (revision {version}) are newer than this version of germane supports "
            f"({REVISIONS[-1]}), so germane writes nothing: upgrade germane, or restore a backup from before the "
            "migration"
        )
    return version


def _require_newest(version: str | None, name: str) -> None:
    if version != REVISIONS[-1]:
        raise DatabaseNotMigrated(f"{_describe_mismatch(version, name)}: run 'germane db upgrade'")


def _describe_mismatch(version: str | None, name: str) -> str:
    if version is None:
        return f"{name} has no germane tables"
    return (
        f"the tables in {name} (revision {version}) are older than this version of germane requires ({REVISIONS[-1]})"
    )


def _create_or_upgrade(connection: Connection) -> None:
    """Create the newest tables. Run the migrations only if there are tables, because the result is the same.

    An application creates its tables when it starts. Importing Alembic would take 11 MB of its memory.
    """
    from germane.storage.db.models import metadata
    from germane.storage.db.models.exchanges import ANSWERS_VIEW

    if not {VERSION_TABLE, *metadata.tables}.isdisjoint(inspect(connection).get_table_names()):
        _upgrade(connection)
        return
    metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(ANSWERS_VIEW)
    key = f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num)"
    connection.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, {key})")
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES (:newest)"), {"newest": REVISIONS[-1]})  # noqa: S608


def _upgrade(connection: Connection) -> None:
    with suppressed_loggers():
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
