"""What the doctor looks at, one thing after another. Each look returns what it found; none changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from germane.cli.doctor.export import look_at_export
from germane.cli.doctor.finding import Finding
from germane.cli.doctor.handlers import look_at_handlers
from germane.cli.doctor.scorers import look_at_scorers
from germane.cli.doctor.scoring import look_at_scoring
from germane.errors import DatabaseNotMigrated, SettingsError, StorageError
from germane.settings import Settings, load


def examine(database: str | None, *, offline: bool) -> list[Finding]:
    """Look at settings, database, judge, handlers, background and export."""
    try:
        settings = load() if database is None else load(database=database)
    except SettingsError as error:
        return [Finding("settings", "fault", str(error), "correct or remove it")]
    return [
        Finding("settings", "ok", f"service {settings.service!r}, {_choice(settings)}"),
        *_look_at_database(settings),
        *look_at_scorers(settings, offline=offline),
        *look_at_export(),
    ]


def _choice(settings: Settings) -> str:
    """Return by what exchanges are chosen: a budget takes the rate's place."""
    return f"rate {settings.rate:g}" if settings.budget is None else "picks by budget"


def _look_at_database(settings: Settings) -> Iterator[Finding]:
    from germane.cli.doctor.channels import look_at_channels
    from germane.cli.doctor.processes import look_at_processes
    from germane.cli.doctor.watching import look_at_learning, look_at_rules
    from germane.storage import Store

    try:
        store = Store(settings.database)
    except SettingsError as error:
        yield Finding("database", "fault", str(error), "correct the setting database")
        return
    try:
        store.check()
        store.elect("doctor", settings.service, ttl=timedelta())  # a lease that has ended: to write something
        yield Finding("database", "ok", f"{store.name} is there, up to date, and can be written to")
        yield from look_at_handlers(store, settings)
        yield from look_at_scoring(store, settings)
        yield from look_at_processes(store, settings)
        yield from look_at_channels(store, settings)
        yield from look_at_learning(store)
        yield from look_at_rules(store, settings)
    except DatabaseNotMigrated as error:
        yield Finding("database", "fault", str(error), "germane db upgrade")
    except StorageError as error:
        yield Finding("database", "fault", str(error), "start the database, or correct its URL, path or permissions")
    finally:
        store.close()
