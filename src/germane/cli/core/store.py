"""Access to the database that ``--database`` or the settings specify."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from germane import storage
from germane.cli.core.absent import describe_absence
from germane.cli.core.command import database_setting
from germane.cli.core.names import check_names as check_option_names
from germane.cli.core.output import log_line
from germane.errors import DatabaseAbsent, StorageError
from germane.settings import Settings, load_settings

if TYPE_CHECKING:
    from germane.cli.core.signals import ShutdownSignal
    from germane.storage import TrackingStore


def load_command_settings() -> Settings:
    """Load the settings. ``--database`` overrides the configured URL."""
    return load_settings(**database_setting())


@contextmanager
def open_store(*, check_names: bool = True) -> Iterator[storage.TrackingStore]:
    """Open the database that ``--database`` or the settings specify, and check that its tables match this version.

    With ``check_names``, the services, routes and scorers in the command's options must exist in the database.

    Raises:
        DatabaseAbsent: The SQLite file does not exist. The message names a file of the same name nearby, if there is
            one.
        click.BadParameter: An option of the current command names a service, route or scorer that does not exist.
        StorageError: The database is unreachable, or its schema is older or newer than this code.
    """
    settings = load_command_settings()
    store = storage.TrackingStore(
        settings.database,
        erase_after_scoring=settings.erase_after_scoring,
        archive=None if settings.archive is None else settings.archive.location,
    )
    try:
        if store.is_absent and store.path is not None:
            raise DatabaseAbsent(str(describe_absence(store.path)))
        store.check()
        if check_names and (context := click.get_current_context(silent=True)) is not None:
            check_option_names(context, store)
        yield store
    finally:
        store.close()


def wait_for_database(
    store: TrackingStore, settings: Settings, shutdown: ShutdownSignal, *, retry: bool = True, once: bool = False
) -> bool:
    """Wait until the database is reachable and migrated. Return False if a shutdown signal arrives first, or if it is
    not and ``once`` is true.

    Raises:
        StorageError: The database is unreachable or not migrated, and ``retry`` is false.
    """
    from germane.process import prepare_database

    logged = ""
    while not shutdown.received:
        try:
            prepare_database(store, settings)
        except StorageError as error:
            if once:
                return False
            if not retry:
                raise
            if logged != str(error):
                logged = str(error)
                log_line(f"waiting for the database: {error}")
        else:
            return True
        shutdown.wait(settings.poll_interval)
    return False
