"""``germane db``: migrate, check or maintain the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import click

from germane import sanitize, storage
from germane.cli.commands.doctor.finding import Finding, exit_code, print_findings
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import print_json
from germane.cli.core.store import load_command_settings, open_store
from germane.errors import DatabaseNotMigrated, StorageError

if TYPE_CHECKING:
    from germane.storage import DiskUsage, IntegrityReport

MAX_DIRTY_HOURS: Final = 24
"""If more hours than this lack an up-to-date rollup, no process is updating the rollups."""
VACUUM_SPACE_FACTOR: Final = 1.2
"""Free space that a vacuum needs, relative to the file's size."""


@click.command("db", cls=Command)
@click.argument("action", type=click.Choice(["upgrade", "check", "rollup", "vacuum"]))
@click.option("--quick", is_flag=True, help="With check, do not compare indexes with their rows.")
@click.pass_context
def command(context: click.Context, action: str, quick: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Migrate, check or maintain the database.

    upgrade creates the tables, or migrates them to this version. A migration cannot be undone, so back up the database
    first.

    check checks the integrity of the database, its counts and rollups. It reads the whole database and writes nothing.
    Exits with 4 if there is an error.

    rollup updates the rollups for all hours that changed. Rollups speed up trend queries without changing their
    results. Workers update them in the background.

    vacuum reclaims disk space after pruning. On SQLite, writers wait until the command finishes.
    """
    if quick and action != "check":
        raise click.UsageError("--quick applies to 'germane db check'")
    if action == "check":
        context.exit(_check(quick=quick))
    content, message = {"upgrade": _upgrade, "rollup": _update_rollups, "vacuum": _vacuum}[action]()
    if wants_json():
        print_json(content)
    else:
        click.echo(message)


def _upgrade() -> tuple[dict[str, Any], str]:
    with closing(storage.TrackingStore(load_command_settings().database)) as store:
        store.migrate()
        store.check()
    return {"database": store.name, "up_to_date": True}, f"The tables in {store.name} are up to date."


def _update_rollups() -> tuple[dict[str, Any], str]:
    breakdowns = load_command_settings().breakdowns
    with open_store() as store:
        hours, name = store.rollups.update(breakdowns=breakdowns), store.name
    message = f"Updated the rollups for {sanitize.count_noun(hours, 'hour')} in {name}."
    return {"database": name, "hours": hours}, message


def _vacuum() -> tuple[dict[str, Any], str]:
    with open_store() as store:
        size_before = store.retention.measure_size()
        store.retention.vacuum()
        size, name = store.retention.measure_size(), store.name
    message = f"Vacuumed {name}: {size_before / 1e6:.1f} MB before, {size / 1e6:.1f} MB now."
    return {"database": name, "size_before": size_before, "size": size}, message


def _check(*, quick: bool) -> int:
    """Print what is wrong with the database, and return the exit code."""
    content: dict[str, Any] = {}
    with closing(storage.TrackingStore(load_command_settings().database)) as store:
        try:
            store.check()
            report, usage = store.integrity.check_integrity(quick=quick), store.integrity.measure_disk_usage()
            findings = [*_check_integrity(store.name, report), _check_disk_usage(usage)]
            content = {"integrity": report, "disk_usage": usage}
        except DatabaseNotMigrated as error:
            findings = [Finding("tables", "error", str(error), "germane db upgrade")]
        except StorageError as error:
            fix = "start the database, or correct its URL, path or permissions; restore a backup if the file is damaged"
            findings = [Finding("database", "error", str(error), fix)]
    if wants_json():
        print_json({"database": store.name, "findings": [finding.as_dict() for finding in findings], **content})
    else:
        print_findings(findings)
    return exit_code(findings)


def _check_integrity(name: str, report: IntegrityReport) -> Iterator[Finding]:
    """Report problems with the file, the tables, the counts and the rollups."""
    for damage in report.damage:
        fix = "stop all writers, copy the file and restore the last backup; or save the rows: germane export"
        yield Finding("database", "error", f"{name} is damaged: {damage}", fix)
    if not report.damage:
        yield Finding("database", "ok", f"{name} is readable and not damaged")
    for missing in report.missing:
        yield Finding("tables", "error", f"{missing} is missing", "restore a backup, or import into a new database")
    if not report.missing:
        yield Finding("tables", "ok", f"up to date, with {report.tables} tables and {report.indexes} indexes")
    for tally in report.tally_mismatches:
        names = (sanitize.line(name, 40) for name in (tally.service, tally.route, tally.scorer) if name)
        message = f"{', '.join(names)}: {tally.seen} seen, but {tally.accounted} scored, skipped, failed or pending"
        fix = "stop other programs from writing to the `tally` table; means are not affected"
        yield Finding("counts", "error", message, fix)
    if not report.tally_mismatches:
        message = f"seen = scored + skipped + failed + pending for all {report.counted} services, routes and scorers"
        yield Finding("counts", "ok", message)
    for hour in report.wrong_hours:
        message = f"the rollup for the hour that starts at {hour:%Y-%m-%d %H:%M} UTC does not match its rows"
        fix = "stop other programs from writing to the tables; if there are none, report a bug"
        yield Finding("rollups", "error", message, fix)
    due = sanitize.count_noun(report.dirty_hours, "hour")
    if report.dirty_hours > MAX_DIRTY_HOURS:
        message = f"{due} without an up-to-date rollup: trends are correct but slow"
        yield Finding("rollups", "warning", message, "run 'germane db rollup' or a worker")
    if not report.wrong_hours:
        recomputed = sanitize.count_noun(len(report.recomputed_hours), "hour")
        yield Finding("rollups", "ok", f"{recomputed} recomputed without differences; {due} to update")


def _check_disk_usage(usage: DiskUsage) -> Finding:
    from germane.insights import format_bytes

    rows = f"{format_bytes(usage.rows)} of rows"
    if usage.file is None:
        return Finding("disk usage", "ok", rows)
    file_system = f" on {usage.filesystem}" if usage.filesystem else ""
    message = (
        f"{rows}; file {format_bytes(usage.file_size)}, log {format_bytes(usage.log_size)}; "
        f"{format_bytes(usage.free or 0)} free{file_system}"
    )
    if usage.free is not None and usage.free < VACUUM_SPACE_FACTOR * usage.file_size:
        fix = "free up disk space, or shrink the database: germane prune"
        return Finding("disk usage", "warning", f"{message}: not enough for a vacuum", fix)
    return Finding("disk usage", "ok", message)
