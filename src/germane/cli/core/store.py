"""Access to the database that ``--database`` or the settings specify."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from germane.cli.core.absent import describe_absence
from germane.cli.core.names import check_names
from germane.errors import DatabaseAbsent
from germane.settings import Settings, load_settings

if TYPE_CHECKING:
    from germane.storage import TrackingStore


def load_settings_for(database: str | None) -> Settings:
    """Load the settings. If ``database`` is given, it overrides the configured URL."""
    return load_settings() if database is None else load_settings(database=database)


@contextmanager
def open_store(database: str | None) -> Iterator[TrackingStore]:
    """Open the database and check its schema version.

    Raises:
        DatabaseAbsent: The SQLite file does not exist. The message names a file of the same name nearby, if there is
            one.
        click.BadParameter: An option of the current command names a service, route or scorer that does not exist.
        StorageError: The database is unreachable, or its schema is older or newer than this code.
    """
    from germane.storage import TrackingStore

    settings = load_settings_for(database)
    store = TrackingStore(settings.database, erase_after_scoring=settings.erase_after_scoring)
    try:
        if store.is_absent and store.path is not None:
            raise DatabaseAbsent(str(describe_absence(store.path)))
        store.check()
        if (context := click.get_current_context(silent=True)) is not None:
            check_names(context, store)
        yield store
    finally:
        store.close()
