"""Opening the database that the settings, or an option, name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from germane.settings import Settings, load

if TYPE_CHECKING:
    from germane.storage import Store


def settings_for(database: str | None) -> Settings:
    """Read the settings, with another database when one is named."""
    return load() if database is None else load(database=database)


@contextmanager
def opened(database: str | None) -> Iterator[Store]:
    """Open the database and look whether its tables are the ones expected.

    Raises:
        StorageError: it cannot be reached, or its tables are older or newer than this code.
    """
    from germane.storage import Store

    settings = settings_for(database)
    store = Store(settings.database, erase_after_scoring=settings.erase_after_scoring)
    try:
        store.check()
        yield store
    finally:
        store.close()
