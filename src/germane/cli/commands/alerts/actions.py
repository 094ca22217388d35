"""``germane alerts ack``, ``resolve`` and ``accept``: what a person says of an alert."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from germane.cli.commands.alerts.list import SHOWN, lines_of, silence_as_dict, silence_line
from germane.cli.core.output import as_json, database, print_json
from germane.cli.core.params import Span
from germane.cli.core.store import opened, settings_for

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
    from germane.alerting import actions

    with opened(database) as store:
        _tell(actions.acknowledge(store, alert_id, by), as_json=as_json)


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
    from germane.alerting import actions

    with opened(database) as store:
        _tell(actions.resolve(store, settings_for(database), alert_id, by), as_json=as_json)


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
    from germane.alerting import actions

    with opened(database) as store:
        alert = actions.accept(store, alert_id)
    _tell(alert, as_json=as_json)


def _tell(alert: Alert, *, as_json: bool) -> None:
    if as_json:
        print_json({"alert": alert.as_dict()})
    else:
        click.echo("\n".join(lines_of(alert)))


@click.command("silence")
@click.option("--rule", metavar="PATTERN", help="Only alerts of such rules.")
@click.option("--service", metavar="PATTERN", help="Only of such services.")
@click.option("--route", metavar="PATTERN", help="Only of such routes.")
@click.option("--scorer", metavar="PATTERN", help="Only of such scorers.")
@click.option("--for", "span", type=Span(), required=True, help="How long, such as 2h or 7d.")
@click.option("--by", metavar="NAME", help="Who says so.")
@click.option("--comment", help="Why.")
@database
@as_json
def silence(
    rule: str | None,
    service: str | None,
    route: str | None,
    scorer: str | None,
    span: timedelta,
    by: str | None,
    comment: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Have nobody told of alerts that match. Of all if nothing is named; they fire and end as ever.

    Patterns are such as `docs-*`. What still fires afterwards is told then.
    """
    from germane.alerting import actions

    named = {"rule": rule, "service": service, "route": route, "scorer": scorer}
    matchers = {name: pattern for name, pattern in named.items() if pattern is not None}
    with opened(database) as store:
        made = actions.silence(store, matchers, until=span, by=by, comment=comment)
    if as_json:
        print_json({"silence": silence_as_dict(made)})
    else:
        click.echo(silence_line(made))


@click.command("unsilence")
@click.argument("silence_id", metavar="ID")
@database
@as_json
def unsilence(
    silence_id: str,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """End a silence now, by its id or the beginning of it."""
    from germane.alerting import actions

    with opened(database) as store:
        ended = actions.unsilence(store, silence_id)
    if as_json:
        print_json({"ended": ended.id})
    else:
        click.echo(f"silence {ended.id[:SHOWN]} is over")
