"""Databases that are filled and archived once per session. Tests use copies of them and of their archives."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.conftest import TEMPLATE, PostgreSQL, migrated_file
from tests.storage.archiving import FIRST_DAY, Make, fill

from germane.exchange import Exchange
from germane.storage import TrackingStore
from germane.storage.db.tables import archived_day
from germane.testing import transaction

ARCHIVED_DAYS = {"filled": 0, "half archived": 1, "archived": 2}
"""The templates. Each has two days, of which the first ones are archived: one with text, or both without text."""

POSTGRESQL_IS_SLOW = pytest.mark.parametrize(
    "templates", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
"""For tests whose statements differ little between the databases."""


@dataclass(frozen=True)
class Copy:
    """A test's own copy of a template."""

    url: str
    store: TrackingStore
    exchanges: list[Exchange]
    """All exchanges, oldest first, wherever they are."""
    folder: Path
    """The archive. It does not exist before a day is archived."""


class Templates:
    """The templates on one database system.

    Args:
        directory: Empty directory for files.
        make: Creates exchanges.
        server: The PostgreSQL server, or None for SQLite.
    """

    def __init__(self, directory: Path, make: Make, server: PostgreSQL | None) -> None:
        self._directory = directory
        self._make = make
        self._server = server
        self._databases: dict[str, str] = {}
        """A file or the name of a PostgreSQL database for each template that exists."""
        self._exchanges: list[Exchange] = []

    @contextmanager
    def copy(self, name: str, directory: Path, clock: Any) -> Iterator[Copy]:
        """Copy a template, whose files are copied to a directory. The copy is deleted when the context ends."""
        template = self._databases.get(name) or self._create(name, clock)
        directory.mkdir(exist_ok=True)
        database = self._copy_database(template, directory / "copy.db")
        folder = directory / "archive"
        with closing(TrackingStore(self._url(database), clock=clock)) as store:
            if ARCHIVED_DAYS[name]:
                shutil.copytree(self._directory / name, folder)
                with transaction(store) as connection:
                    connection.execute(update(archived_day).values(location=str(folder)))
            yield Copy(self._url(database), store, list(self._exchanges), folder)
        if self._server:
            self._server.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def _create(self, name: str, clock: Any) -> str:
        file, days = self._directory / f"{name}.db", ARCHIVED_DAYS[name]
        if days:
            database = self._copy_database(self._databases.get("filled") or self._create("filled", clock), file)
        else:
            database = self._copy_database(TEMPLATE if self._server else str(migrated_file(self._directory)), file)
        with closing(TrackingStore(self._url(database), clock=clock)) as store:
            if days:
                until, folder = FIRST_DAY + timedelta(days=days), str(self._directory / name)
                store.archive.archive_days(folder, before=until, has_text=name == "half archived")
            else:
                self._exchanges = fill(store, self._make, days=2)
        self._databases[name] = database
        return database

    def _copy_database(self, template: str, file: Path) -> str:
        return self._server.create(template) if self._server else str(shutil.copy(template, file))

    def _url(self, database: str) -> str:
        return self._server.url(database) if self._server else f"sqlite:///{database}"
