"""Fixtures with the sample week in SQLite and PostgreSQL, and clients for its pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.conftest import PostgreSQL
from tests.dashboard.seeding import NOW, Seeded, seed

from germane.dashboard import create_app
from germane.settings import load_settings
from germane.storage import TrackingStore

HERE = ("127.0.0.1", 50_000)
"""The address of local clients, which are the only clients with access if there is no token."""


def now() -> datetime:
    """Return the end of the sample week."""
    return NOW


@pytest.fixture
def store(migrated_url: str, bare: Path) -> Iterator[TrackingStore]:
    """A migrated, empty SQLite or PostgreSQL database whose clock shows the end of the week."""
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

    place: Any
    seeded: Seeded


def _write_week(url: str) -> Seeded:
    with closing(TrackingStore(url, clock=now)) as opened:
        opened.migrate()
        return seed(opened, NOW)


@pytest.fixture(scope="session")
def week_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> WeekTemplate:
    """The sample week in an SQLite file."""
    path = tmp_path_factory.mktemp("week") / "germane.db"
    return WeekTemplate(path, _write_week(f"sqlite:///{path}"))


@pytest.fixture(scope="session")
def week_on_postgresql(postgresql: PostgreSQL) -> WeekTemplate:
    """The sample week in a PostgreSQL database."""
    name = postgresql.create()
    return WeekTemplate(name, _write_week(postgresql.url(name)))


@pytest.fixture(params=["sqlite", "postgresql"])
def week(request: pytest.FixtureRequest, tmp_path: Path, bare: Path) -> Iterator[Week]:
    """The sample week in SQLite or PostgreSQL; tests do not see each other's writes."""
    original: WeekTemplate = request.getfixturevalue(f"week_on_{request.param}")
    with closing(TrackingStore(_copy_template(request, original, tmp_path), clock=now)) as opened:
        yield Week(opened, original.seeded)
    (tmp_path / "week.db").unlink(missing_ok=True)


def _copy_template(request: pytest.FixtureRequest, original: WeekTemplate, folder: Path) -> str:
    """Return the URL of a copy."""
    if isinstance(original.place, Path):
        return f"sqlite:///{shutil.copy(original.place, folder / 'week.db')}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.url(server.create(template=original.place))


@pytest.fixture
def seeded(week: Week) -> TrackingStore:
    """The store of the sample week."""
    return week.store


@pytest.fixture
def page(seeded: TrackingStore) -> Iterator[TestClient]:
    """A client for the pages of the sample week that does not follow redirects."""
    app = create_app(load_settings(database="sqlite://"), store=seeded, now=now)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000), follow_redirects=False) as client:
        yield client
