"""``germane doctor``: what keeps answers from being captured and scored, and how to mend it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click

from germane.cli.commands.doctor.capture import look_at_export, look_at_handlers
from germane.cli.commands.doctor.finding import Finding, code, show
from germane.cli.commands.doctor.scoring import look_at_scorers, look_at_scoring
from germane.cli.core.output import as_json, database, print_json
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
    from germane.cli.commands.doctor.alerting import look_at_channels, look_at_learning, look_at_rules
    from germane.cli.commands.doctor.capture import look_at_processes
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


@click.command("doctor")
@click.option("--import", "modules", multiple=True, metavar="MODULE", help="Import your application's handlers first.")
@click.option("--offline", is_flag=True, help="Ask neither the judge nor the embedder.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    modules: tuple[str, ...],
    offline: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Name what is wrong, and how to mend it."""
    sys.path.insert(0, str(Path.cwd()))
    findings = [finding for module in modules for finding in _imported(module)]
    findings += examine(database, offline=offline)
    if as_json:
        print_json({"findings": [finding.as_dict() for finding in findings]})
    else:
        show(findings)
    context.exit(code(findings))


def _imported(module: str) -> list[Finding]:
    """Import handlers; what else goes wrong in a module is its author's to read, with the traceback."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        fix = "run this in your application's folder and environment, or correct the name"
        return [Finding("import", "fault", f"{module} cannot be imported: {error}", fix)]
    return []
