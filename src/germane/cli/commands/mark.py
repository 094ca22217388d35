"""``germane mark``: record a marker for an event, such as a deployment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import click

from germane import sanitize
from germane.annotation import Marker
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import print_json
from germane.cli.core.params import NAME_VALUE, PAST_TIME
from germane.cli.core.store import load_command_settings, open_store
from germane.exchange import new_exchange_id

MAX_NAME_LENGTH: Final = 500


@click.command("mark", cls=Command)
@click.argument("name")
@click.option("--at", type=PAST_TIME, help="Time of the event, or a duration before now. Defaults to now.")
@click.option("--service", help="Service that the marker applies to. Defaults to the `service` setting.")
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    type=NAME_VALUE,
    metavar="NAME=VALUE",
    help="Attribute of the event, such as commit=4f2a9c1. Repeatable.",
)
def command(
    name: str,
    at: datetime | None,
    service: str | None,
    attributes: tuple[tuple[str, str], ...],
) -> None:
    """Record a marker for an event, such as a deployment or a new index.

    `germane report --since mark:NAME --compare` shows what changed since then.
    """
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        raise click.UsageError(f"NAME must be 1 to {MAX_NAME_LENGTH} characters long")
    marker = Marker(
        id=new_exchange_id(),
        name=name.strip(),
        service=service or load_command_settings().service,
        at=at or datetime.now(UTC),
        attributes=dict(attributes),
    )
    with open_store() as store:
        store.trends.add_markers([marker])
    if wants_json():
        print_json({"marker": marker})
    else:
        name, service = sanitize.line(marker.name), sanitize.line(marker.service, 40)
        click.echo(f"Added marker {name!r} at {marker.at:%Y-%m-%d %H:%M:%S} UTC for service {service}.")
