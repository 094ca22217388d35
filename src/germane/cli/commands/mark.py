"""``germane mark``: a moment under a name, which comparisons go by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from germane.annotation import Mark
from germane.cli.core.output import as_json, database, harmless, print_json
from germane.cli.core.params import Past
from germane.cli.core.store import opened, settings_for
from germane.exchange import new_exchange_id

LONGEST = 500
"""Characters of a name."""


@click.command("mark")
@click.argument("name")
@click.option("--at", type=Past(), help="When it was: a moment, or a span up to now. By default now.")
@click.option("--service", help="Of which service; by default that of the settings.")
@click.option("--attribute", "attributes", multiple=True, metavar="NAME=VALUE", help="What else is to be known of it.")
@database
@as_json
def command(
    name: str,
    at: datetime | None,
    service: str | None,
    attributes: Sequence[str],
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Mark a moment: a deploy, a new index, another model.

    `germane report --since mark:NAME --compare` tells what changed with it.
    """
    if not name.strip() or len(name) > LONGEST:
        raise click.UsageError(f"NAME must be text of at most {LONGEST} characters")
    made = Mark(
        id=new_exchange_id(),
        name=name.strip(),
        service=service or settings_for(database).service,
        at=at or datetime.now(UTC),
        attributes=dict(_pair(one) for one in attributes),
    )
    with opened(database) as store:
        store.add_marks([made])
    if as_json:
        print_json({"mark": as_dict(made)})
    else:
        click.echo(f"marked {harmless(made.name)!r} at {made.at:%Y-%m-%d %H:%M:%S} UTC, {harmless(made.service, 40)}")


def _pair(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--attribute {given!r}: say NAME=VALUE, such as commit=4f2a9c1")
    return name, value


def as_dict(mark: Mark) -> dict[str, object]:
    """Return it ready for JSON."""
    return {
        "id": mark.id,
        "name": mark.name,
        "service": mark.service,
        "at": mark.at,
        "attributes": dict(mark.attributes),
    }
