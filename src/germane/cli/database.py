"""``germane db``: the tables."""

from __future__ import annotations

import click

from germane.cli.opening import settings_for
from germane.cli.output import as_json, database, print_json


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
