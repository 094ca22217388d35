"""``germane alerts ack``, ``resolve``, ``silence`` and ``unsilence``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from germane.cli.commands.alerts.show import ID_LENGTH, format_alert, format_silence, silence_as_dict
from germane.cli.core.output import as_json, database, print_json
from germane.cli.core.params import Duration
from germane.cli.core.store import load_settings_for, open_store

if TYPE_CHECKING:
    from germane.alert import Alert

_by = click.option("--by", metavar="NAME", help="Your name.")


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
    """Acknowledge an alert and stop reminders until it resolves."""
    from germane import alerting

    with open_store(database) as store:
        _print_alert(alerting.acknowledge_alert(store, alert_id, by), as_json=as_json)


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
    """Resolve an alert.

    The alert fires again if its rule is still violated. To prevent notifications, use a silence.
    """
    from germane import alerting

    with open_store(database) as store:
        _print_alert(alerting.resolve_alert(store, load_settings_for(database), alert_id, by), as_json=as_json)


def _print_alert(alert: Alert, *, as_json: bool) -> None:
    if as_json:
        print_json({"alert": alert.as_dict()})
    else:
        click.echo("\n".join(format_alert(alert)))


@click.command("silence")
@click.option("--rule", metavar="PATTERN", help="Only alerts of matching rules.")
@click.option("--service", metavar="PATTERN", help="Only alerts of matching services.")
@click.option("--route", metavar="PATTERN", help="Only alerts of matching routes.")
@click.option("--scorer", metavar="PATTERN", help="Only alerts of matching scorers.")
@click.option("--for", "duration", type=Duration(), required=True, help="Duration, such as 2h or 7d.")
@_by
@click.option("--comment", help="Reason for the silence.")
@database
@as_json
def silence(
    rule: str | None,
    service: str | None,
    route: str | None,
    scorer: str | None,
    duration: timedelta,
    by: str | None,
    comment: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Suppress notifications of matching alerts for some time.

    Without patterns, silences all alerts. Patterns may contain wildcards, such as `docs-*`. Silenced alerts fire and
    resolve as usual. When the silence ends, you are notified of alerts that are still firing.
    """
    from germane import alerting

    patterns = {"rule": rule, "service": service, "route": route, "scorer": scorer}
    matchers = {name: pattern for name, pattern in patterns.items() if pattern is not None}
    with open_store(database) as store:
        created = alerting.silence_alerts(store, matchers, until=duration, by=by, comment=comment)
    if as_json:
        print_json({"silence": silence_as_dict(created)})
    else:
        click.echo(format_silence(created))


@click.command("unsilence")
@click.argument("silence_id", metavar="ID")
@database
@as_json
def unsilence(
    silence_id: str,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """End a silence now.

    ID is the silence's id or the beginning of it.
    """
    from germane import alerting

    with open_store(database) as store:
        ended = alerting.end_silence(store, silence_id)
    if as_json:
        print_json({"ended": ended.id})
    else:
        click.echo(f"Ended silence {ended.id[:ID_LENGTH]}.")
