"""``germane db``: the tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from germane.cli.commands.doctor.finding import Finding
from germane.cli.core.output import as_json, database, print_json
from germane.cli.core.store import opened, settings_for
from germane.errors import DatabaseNotMigrated, StorageError
from germane.sanitize import counted, harmless

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Inspection, Room, Store


MANY_DUE: Final = 24
"""More hours than this that are due are a day that nobody rolled up."""
_TIGHT: Final = 1.2
"""Packing a file takes as much room again as it has."""


def look(settings: Settings, *, quick: bool, hours: int) -> tuple[str, list[Finding], dict[str, Any]]:
    """Return the database's name, what is found, and the numbers behind it, ready for JSON.

    Raises:
        SettingsError: the URL is of no database that germane can use.
    """
    from germane.storage import Store

    store = Store(settings.database)
    try:
        return store.name, *_looked_at(store, quick=quick, hours=hours)
    except DatabaseNotMigrated as error:
        return store.name, [Finding("tables", "fault", str(error), "germane db upgrade")], {}
    except StorageError as error:
        fix = "start the database, or correct its URL, path or permissions; a damaged file: bring back a copy"
        return store.name, [Finding("database", "fault", str(error), fix)], {}
    finally:
        store.close()


def _looked_at(store: Store, *, quick: bool, hours: int) -> tuple[list[Finding], dict[str, Any]]:
    store.check()
    found, room = store.inspect(quick=quick, hours=hours), store.room()
    findings = [*_whole(store.name, found), *_counts(found), *_rollups(found), _room(room)]
    return findings, {"inspection": asdict(found), "room": asdict(room)}


def _whole(name: str, found: Inspection) -> Iterator[Finding]:
    for damage in found.damage:
        fix = "stop what writes, keep a copy of the file, bring back the last good one; or save rows: germane export"
        yield Finding("database", "fault", f"{name} is damaged: {damage}", fix)
    if not found.damage:
        yield Finding("database", "ok", f"{name} can be read, and is not damaged")
    for missing in found.missing:
        yield Finding("tables", "fault", f"{missing} is missing", "bring back a copy, or import into a new database")
    if not found.missing:
        yield Finding("tables", "ok", f"up to date; {found.tables} tables and {found.indexes} indexes are there")


def _counts(found: Inspection) -> Iterator[Finding]:
    for one in found.uneven:
        of = ", ".join(harmless(name, 40) for name in (one.service, one.route, one.scorer) if name)
        message = f"{of}: {one.seen} seen, but {one.accounted} scored, skipped, failed or pending"
        yield Finding("counts", "fault", message, "somebody else wrote into the table tally; means are not concerned")
    if not found.uneven:
        said = f"seen = scored + skipped + failed + pending, of each service, route and scorer ({found.counted})"
        yield Finding("counts", "ok", said)


def _rollups(found: Inspection) -> Iterator[Finding]:
    for hour in found.different:
        message = f"the rollup of the hour from {hour:%Y-%m-%d %H:%M} UTC is another than its rows"
        yield Finding("rollups", "fault", message, "somebody else wrote into the tables: write to the maintainers")
    if found.due > MANY_DUE:
        message = f"{counted(found.due, 'hour')} changed and were not rolled up since: trends are right, but slow"
        yield Finding("rollups", "note", message, "germane db roll, or run a worker")
    if not found.different:
        said = f"{counted(len(found.hours), 'hour')} summed up anew, as rolled up; {counted(found.due, 'hour')} due"
        yield Finding("rollups", "ok", said)


def _room(room: Room) -> Finding:
    told = f"{_bytes(room.rows)} of rows"
    if room.file is None:
        return Finding("room", "ok", told)
    told += f"; the file {_bytes(room.file_size)}, its log {_bytes(room.log_size)}"
    disk = f"; {_bytes(room.free or 0)} free{f' on {room.kind}' if room.kind else ''}"
    if room.free is not None and room.free < _TIGHT * room.file_size:
        fix = "make room, or keep less: germane prune"
        return Finding("room", "note", f"{told}{disk}: too little to pack the file in", fix)
    return Finding("room", "ok", told + disk)


def _bytes(count: int) -> str:
    """Return "1.2 MB"."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


@click.group("db")
def command() -> None:
    """Look after the database."""


@command.command("upgrade")
@database
@as_json
def upgrade(database: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Make the tables, or bring them up to date."""
    from germane.storage import Store

    store = Store(settings_for(database).database)
    try:
        store.migrate()
        store.check()
    finally:
        store.close()
    if as_json:
        print_json({"database": store.name, "up_to_date": True})
    else:
        click.echo(f"The tables in {store.name} are up to date.")


@command.command("check")
@click.option("--quick", is_flag=True, help="Leave out whether indexes fit their rows.")
@click.option(
    "--hours", type=click.IntRange(0, 10_000), default=8, show_default=True, help="Hours that are summed up anew."
)
@database
@as_json
@click.pass_context
def check(context: click.Context, quick: bool, hours: int, database: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes them by name
    """Look whether file, tables, counts and rollups are whole. It reads all, and writes nothing."""
    from germane.cli.commands.doctor.finding import code, show

    name, findings, content = look(settings_for(database), quick=quick, hours=hours)
    if as_json:
        print_json({"database": name, "findings": [finding.as_dict() for finding in findings], **content})
    else:
        show(findings)
    context.exit(code(findings))


@command.command("vacuum")
@database
@as_json
def vacuum(database: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Pack the rows, after much was pruned. On SQLite whoever writes waits meanwhile."""
    with opened(database) as store:
        before = store.size()
        store.vacuum()
        after, name = store.size(), store.name
    if as_json:
        print_json({"database": name, "size_before": before, "size": after})
    else:
        click.echo(f"{name} is packed: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB now.")


@command.command("roll")
@database
@as_json
def roll(database: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Roll up all hours that changed. Trends stay as they are, and are read faster."""
    trend_by = settings_for(database).trend_by
    with opened(database) as store:
        count, name = store.roll(trend_by=trend_by), store.name
    if as_json:
        print_json({"database": name, "hours": count})
    else:
        click.echo(f"{counted(count, 'hour')} of {name} rolled up.")
