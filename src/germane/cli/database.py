"""``germane db``: the tables."""

from __future__ import annotations

import click

from germane.cli.opening import opened, settings_for
from germane.cli.output import as_json, database, print_json
from germane.shown import counted


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
    from germane.cli.doctor.finding import code, show
    from germane.cli.whole import look

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
