"""A week in a database of either kind, and the pages over it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
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
from germane.settings import load
from germane.storage import Store

HERE = ("127.0.0.1", 50_000)
"""Whence requests come: without a token this machine alone is answered."""


def now() -> datetime:
    """Return the moment at which the week ends."""
    return NOW


@pytest.fixture
def store(migrated_url: str, bare: Path) -> Iterator[Store]:
    """A migrated and empty database of either kind, whose clock shows the end of the week."""
    with closing(Store(migrated_url, clock=now)) as opened:
        yield opened


@dataclass(frozen=True)
class Week:
    """A database with a week in it, and what was written."""

    store: Store
    seeded: Seeded


@dataclass(frozen=True)
class Original:
    """A database with a week in it, to be copied: writing it takes two seconds, and copying it a tenth of one."""

    place: Any
    seeded: Seeded


def _written(url: str) -> Seeded:
    with closing(Store(url, clock=now)) as opened:
        opened.migrate()
        return seed(opened, NOW)


@pytest.fixture(scope="session")
def week_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """A week in a file."""
    path = tmp_path_factory.mktemp("week") / "germane.db"
    return Original(path, _written(f"sqlite:///{path}"))


@pytest.fixture(scope="session")
def week_on_postgresql(postgresql: PostgreSQL) -> Original:
    """A week in a database of the server's."""
    name = postgresql.create()
    return Original(name, _written(postgresql.url(name)))


@pytest.fixture(params=["sqlite", "postgresql"])
def week(request: pytest.FixtureRequest, tmp_path: Path, bare: Path) -> Iterator[Week]:
    """A week in a database of either kind; what a test writes into it is gone afterwards."""
    original: Original = request.getfixturevalue(f"week_on_{request.param}")
    url, done = _copied(request, original, tmp_path)
    with closing(Store(url, clock=now)) as opened:
        yield Week(opened, original.seeded)
    done()


def _copied(request: pytest.FixtureRequest, original: Original, folder: Path) -> tuple[str, Callable[[], None]]:
    """Return the URL of a copy, and what takes it away."""
    if isinstance(original.place, Path):
        path = shutil.copy(original.place, folder / "week.db")
        return f"sqlite:///{path}", path.unlink
    server: PostgreSQL = request.getfixturevalue("postgresql")
    name = f"{original.place}_copy"
    server.execute(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name} TEMPLATE {original.place}")
    return server.url(name), lambda: server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def seeded(week: Week) -> Store:
    """The store of that week."""
    return week.store


@pytest.fixture
def page(seeded: Store) -> Iterator[TestClient]:
    """Asks for pages over the week. It follows no redirect."""
    app = create_app(load(database="sqlite://"), store=seeded, now=now)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000), follow_redirects=False) as client:
        yield client
