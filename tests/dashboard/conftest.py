"""Fixtures with the sample week in SQLite and PostgreSQL, and clients for its pages.

``week``, ``seeded`` and ``page`` share one database that nothing can write to. ``own_week``, ``own_seeded`` and
``own_page`` are a copy for one test.

A test with a database runs on SQLite, and in ``make thorough`` on PostgreSQL too. One test for each kind of query is
marked with ``BOTH``, and also runs on PostgreSQL in ``make test-slow``.
"""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.conftest import PostgreSQL, migrated_file
from tests.dashboard.seeding import NOW, Seeded, seed

from germane.dashboard import create_app
from germane.settings import load_settings
from germane.storage import TrackingStore

HERE = ("127.0.0.1", 50_000)
"""The address of local clients, which are the only clients with access if there is no token."""
BOTH = pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
"""Runs a test on PostgreSQL in ``make test-slow``, which otherwise happens only in ``make thorough``."""


def now() -> datetime:
    """Return the end of the sample week."""
    return NOW


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def backend(request: pytest.FixtureRequest) -> str:
    """The kind of database: SQLite or PostgreSQL."""
    kind: str = request.param
    return kind


@pytest.fixture
def migrated_url(
    request: pytest.FixtureRequest, backend: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A migrated SQLite or PostgreSQL database without rows."""
    if backend == "sqlite":
        return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.emptied()


@pytest.fixture
def store(migrated_url: str, bare: Path) -> Iterator[TrackingStore]:
    """A migrated, empty database whose clock shows the end of the week."""
    with closing(TrackingStore(migrated_url, clock=now)) as opened:
        yield opened


@dataclass(frozen=True)
class Week:
    """A database with the sample week, and the rows that were written."""

    store: TrackingStore
    seeded: Seeded


@dataclass(frozen=True)
class WeekTemplate:
    """A database with the sample week, to be copied. Writing it takes two seconds; a copy is much faster."""

    place: str
    """An SQLite file or the name of a PostgreSQL database."""
    seeded: Seeded


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Let one process of the test run at a time into the block."""
    with closing(sqlite3.connect(file, timeout=200, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


def _write_week_once(folder: Path, database: str, create: Callable[[], tuple[str, str]]) -> WeekTemplate:
    """Write the week to a new database, which ``create`` returns as place and URL, unless another process has."""
    written = folder / f"week-{database}.pickle"
    with locked(folder / "week.lock"):
        if not written.exists():
            place, url = create()
            with closing(TrackingStore(url, clock=now)) as opened:
                opened.migrate()
                written.write_bytes(pickle.dumps(WeekTemplate(place, seed(opened, NOW))))
        template: WeekTemplate = pickle.loads(written.read_bytes())
    return template


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A directory that all processes of the test run share."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def week_on_sqlite(shared_folder: Path) -> WeekTemplate:
    """The sample week in an SQLite file."""
    path = str(shared_folder / "week.db")
    return _write_week_once(shared_folder, "sqlite", lambda: (path, f"sqlite:///{path}"))


@pytest.fixture(scope="session")
def week_on_postgresql(shared_folder: Path, postgresql: PostgreSQL) -> WeekTemplate:
    """The sample week in a PostgreSQL database."""

    def create() -> tuple[str, str]:
        name = postgresql.create()
        return name, postgresql.url(name)

    return _write_week_once(shared_folder, "postgresql", create)


@pytest.fixture(scope="session")
def shared_sqlite(week_on_sqlite: WeekTemplate) -> Iterator[Week]:
    """The sample week in an SQLite file that cannot be written to."""
    url = f"sqlite:///file:{week_on_sqlite.place}?immutable=1&uri=true"
    with closing(TrackingStore(url, clock=now)) as store:
        yield Week(store, week_on_sqlite.seeded)


@pytest.fixture(scope="session")
def shared_postgresql(week_on_postgresql: WeekTemplate, postgresql: PostgreSQL) -> Iterator[Week]:
    """A copy of the sample week in a PostgreSQL database that cannot be written to."""
    # A database that has connections cannot be copied, so the original must have none.
    url = postgresql.url(postgresql.create(template=week_on_postgresql.place))
    with closing(TrackingStore(f"{url}&options=-c default_transaction_read_only=on", clock=now)) as store:
        yield Week(store, week_on_postgresql.seeded)


@pytest.fixture(scope="module")
def sqlite_pages(shared_sqlite: Week) -> Iterator[TestClient]:
    """A client for the pages of ``shared_sqlite``."""
    with _open_pages(shared_sqlite) as client:
        yield client


@pytest.fixture(scope="module")
def postgresql_pages(shared_postgresql: Week) -> Iterator[TestClient]:
    """A client for the pages of ``shared_postgresql``."""
    with _open_pages(shared_postgresql) as client:
        yield client


def _open_pages(week: Week) -> TestClient:
    app = create_app(load_settings(database="sqlite://"), store=week.store, now=now)
    return TestClient(app, base_url="http://127.0.0.1", client=HERE, follow_redirects=False)


@pytest.fixture
def week(request: pytest.FixtureRequest, backend: str, bare: Path) -> Week:
    """The sample week, which tests share and cannot write to."""
    shared: Week = request.getfixturevalue(f"shared_{backend}")
    return shared


@pytest.fixture
def seeded(week: Week) -> TrackingStore:
    """The store of the shared sample week."""
    return week.store


@pytest.fixture
def page(request: pytest.FixtureRequest, backend: str, bare: Path) -> Iterator[TestClient]:
    """A client for the pages of the shared sample week that does not follow redirects."""
    client: TestClient = request.getfixturevalue(f"{backend}_pages")
    yield client
    client.cookies.clear()


@pytest.fixture
def own_week(request: pytest.FixtureRequest, backend: str, tmp_path: Path, bare: Path) -> Iterator[Week]:
    """A copy of the sample week that only this test sees."""
    original: WeekTemplate = request.getfixturevalue(f"week_on_{backend}")
    with closing(TrackingStore(_copy_template(request, backend, original, tmp_path), clock=now)) as opened:
        yield Week(opened, original.seeded)
    (tmp_path / "week.db").unlink(missing_ok=True)


def _copy_template(request: pytest.FixtureRequest, backend: str, original: WeekTemplate, folder: Path) -> str:
    """Return the URL of a copy."""
    if backend == "sqlite":
        return f"sqlite:///{shutil.copy(original.place, folder / 'week.db')}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.url(server.create(template=original.place))


@pytest.fixture
def own_seeded(own_week: Week) -> TrackingStore:
    """The store of this test's sample week."""
    return own_week.store


@pytest.fixture
def own_page(own_week: Week) -> Iterator[TestClient]:
    """A client for the pages of this test's sample week that does not follow redirects."""
    with _open_pages(own_week) as client:
        yield client
