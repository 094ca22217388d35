"""Access to the database that ``--database`` or the settings specify, and a check of names in options."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import click

from germane import sanitize, storage
from germane.cli.core.absent import describe_absence
from germane.cli.core.command import database_setting
from germane.cli.core.output import log_line
from germane.errors import DatabaseAbsent, StorageError
from germane.settings import Settings, load_settings

if TYPE_CHECKING:
    from germane.cli.core.signals import ShutdownSignal
    from germane.storage import TrackingStore

GC_THRESHOLD: Final = 20_000
"""Number of new container objects that trigger a garbage collection once modules are imported. Each page of a long
command leaves its statements in reference cycles, with the ids that they contain."""


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
        sinks=list(settings.sinks),
    )
    try:
        if store.is_absent and store.path is not None:
            raise DatabaseAbsent(str(describe_absence(store.path)))
        store.check()
        if check_names and (context := click.get_current_context(silent=True)) is not None:
            _check_option_names(context, store)
        gc.set_threshold(GC_THRESHOLD)
        yield store
    finally:
        store.close()


def wait_for_database(
    store: TrackingStore, settings: Settings, shutdown: ShutdownSignal, *, retry: bool = True, once: bool = False
) -> bool:
    """Wait until the database is ready. Return False after a shutdown signal, or if it is not and ``once`` is true."""
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


MAX_NAMES_SHOWN: Final = 8
_PARAMETERS: Final[Mapping[str, str]] = {
    "service": "service", "route": "route", "scorer": "scorer", "scorers": "scorer",
}  # fmt: skip
"""Kind of name by command parameter."""
MAY_BE_NEW: Final = frozenset({"alerts respond", "baseline import", "mark"})
"""Commands that also accept names that have no answers yet. If such a name resembles an existing one, they print a
warning, because it may be a typo.
"""


def _check_option_names(context: click.Context, store: TrackingStore) -> None:
    """Check each name that was passed to the command, so that a typo is not reported as missing data.

    Raises:
        click.BadParameter: The database has names of this kind, but not this one.
    """
    for parameter in context.command.params:
        kind = _PARAMETERS.get(parameter.name or "")
        given: Any = context.params.get(parameter.name or "")
        if kind is None or not given:
            continue
        for name in (given,) if isinstance(given, str) else given:
            names = {str(getattr(coverage, kind)) for coverage in store.trends.coverage()} - {""}
            if not _matches(name, names):  # it may have only scores or markers
                names |= {str(getattr(summary, kind)) for summary in store.trends.summary(histograms=False)}
                names |= {marker.service for marker in store.trends.list_markers()} if kind == "service" else set()
            if not names or _matches(name, names):
                continue
            known = sorted(names)
            similar = get_close_matches(name, known, n=1)
            if similar:
                hint = f"did you mean {sanitize.line(similar[0], 60)!r}?"
            else:
                more = ", ..." if len(known) > MAX_NAMES_SHOWN else ""
                hint = f"there are {', '.join(sanitize.line(each, 40) for each in known[:MAX_NAMES_SHOWN])}{more}"
            message = f"no {kind} {sanitize.line(name, 60)!r} in this database; {hint}"
            if context.command_path.partition(" ")[2] not in MAY_BE_NEW:
                raise click.BadParameter(message, context, parameter)
            if similar:
                click.echo(f"Warning: {message}", err=True)


def _matches(name: str, known: Iterable[str]) -> bool:
    return any(fnmatchcase(existing, name) or existing == name for existing in known)
