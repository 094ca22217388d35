"""``germane alerts ack``, ``resolve`` and ``accept``: what a person says of an alert."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from germane.cli.alerts.listing import lines_of
from germane.cli.opening import opened, settings_for
from germane.cli.output import as_json, database, print_json

if TYPE_CHECKING:
    from germane.alert import Alert

_by = click.option("--by", metavar="NAME", help="Who says so.")


@click.command("ack")
@click.argument("alert_id", metavar="ID")
@_by
@database
@as_json
def ack(
    alert_id: str,
    by: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Say that somebody knows: it is not told again while it lasts."""
    from germane.monitor import acts

    with opened(database) as store:
        _tell(acts.acknowledge(store, alert_id, by), as_json=as_json)


@click.command("resolve")
@click.argument("alert_id", metavar="ID")
@_by
@database
@as_json
def resolve(
    alert_id: str,
    by: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Close an alert. Where its rule still finds it bad it fires anew; a silence keeps that quiet."""
    from germane.monitor import acts

    with opened(database) as store:
        _tell(acts.resolve(store, settings_for(database), alert_id, by), as_json=as_json)


@click.command("accept")
@click.argument("alert_id", metavar="ID")
@database
@as_json
def accept(
    alert_id: str,
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Take what a drop led to for normal. There is a new baseline, and the alert is over at the next look."""
    from germane.monitor import acts

    with opened(database) as store:
        alert = acts.accept(store, alert_id)
    _tell(alert, as_json=as_json)


def _tell(alert: Alert, *, as_json: bool) -> None:
    if as_json:
        print_json({"alert": alert.as_dict()})
    else:
        click.echo("\n".join(lines_of(alert)))
