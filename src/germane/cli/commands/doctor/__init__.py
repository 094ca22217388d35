"""``germane doctor``: check capture, scoring, alerting and trace export, and suggest fixes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click

from germane import storage
from germane.cli.commands.doctor.capture import check_export, check_handlers, check_uncalled_handlers
from germane.cli.commands.doctor.finding import Finding, exit_code, print_findings
from germane.cli.commands.doctor.reported import load_reported_settings
from germane.cli.commands.doctor.scoring import check_reported_judge, check_scorers, check_scoring
from germane.cli.core.absent import describe_absence
from germane.cli.core.command import Command, import_option, wants_json
from germane.cli.core.output import print_json
from germane.cli.core.store import load_command_settings
from germane.errors import ArchiveError, DatabaseNotMigrated, SettingsError, StorageError
from germane.settings import Settings


@click.command("doctor", cls=Command)
@import_option("Import this module of your application first, so that its handlers are checked. Repeatable.")
@click.option("--offline", is_flag=True, help="Do not contact the judge or the embedder.")
@click.pass_context
def command(
    context: click.Context,
    modules: tuple[str, ...],
    offline: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Check the installation and suggest fixes.

    Checks settings, database, handlers, workers, scorers, judge, embedder, alert channels, baselines, rules, archive
    and trace export. Each finding is an error, a warning or ok. Exits with 4 if there is an error.
    """
    sys.path.insert(0, str(Path.cwd()))
    findings = []
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:  # other exceptions are bugs in the module, so keep their traceback
            fix = "run this command in your application's directory and environment, or correct the name"
            findings.append(Finding("import", "error", f"cannot import {module}: {error}", fix))
    findings += run_checks(offline=offline)
    if wants_json():
        print_json({"findings": [finding.as_dict() for finding in findings]})
    else:
        print_findings(findings)
    context.exit(exit_code(findings))


def run_checks(*, offline: bool) -> list[Finding]:
    """Run all checks that do not need the application's code, and return their findings."""
    try:
        settings = load_command_settings()
    except SettingsError as error:
        return [Finding("settings", "error", line, "correct or remove the setting") for line in str(error).splitlines()]
    reported = load_reported_settings(settings)
    if reported is not None:
        settings = reported.settings
    sampling = f"sample rate {settings.sample_rate:g}" if settings.budget is None else "sampling by budget"
    return [
        Finding("settings", "ok", f"service {settings.service!r}, {sampling}{f'; {reported}' if reported else ''}"),
        *_check_database(settings),
        *(
            check_reported_judge(reported.process, settings)
            if reported is not None and reported.has_unknown_server
            else check_scorers(settings, offline=offline)
        ),
        *check_export(),
    ]


def _check_database(settings: Settings) -> Iterator[Finding]:
    from germane.cli.commands.doctor.alerting import check_channels, check_learning, check_rules, check_sinks
    from germane.cli.commands.doctor.archiving import check_archive, check_permissions
    from germane.cli.commands.doctor.capture import check_workers
    from germane.cli.commands.doctor.watching import check_receiving, check_watching

    try:
        store = storage.TrackingStore(settings.database)
    except SettingsError as error:
        yield Finding("database", "error", str(error), "correct the `database` setting")
        return
    if store.is_absent and store.path is not None:
        absence = describe_absence(store.path)
        yield Finding("database", "warning", absence.problem, absence.fix)
        yield from check_uncalled_handlers()
        return
    try:
        store.check()
        # Acquiring a lease proves that the database is writable. With a TTL of zero, it expires immediately.
        store.workers.acquire_lease("doctor", settings.service, ttl=timedelta())
        yield Finding("database", "ok", f"{store.name} is reachable, up to date and writable")
        yield from check_permissions(store.files)
        yield from check_archive(store, settings)
        yield from check_handlers(store, settings)
        yield from check_watching(store, settings)
        yield from check_receiving(store)
        yield from check_scoring(store, settings)
        yield from check_workers(store, settings)
        yield from check_channels(store, settings)
        yield from check_sinks(store, settings)
        yield from check_learning(store)
        yield from check_rules(store, settings)
    except ArchiveError as error:
        yield Finding("archive", "error", f"other checks could not be completed: {error}", "repair the archive")
    except DatabaseNotMigrated as error:
        yield Finding("database", "error", str(error), "germane db upgrade")
    except StorageError as error:
        yield Finding("database", "error", str(error), "start the database, or correct its URL, path or permissions")
    finally:
        store.close()
