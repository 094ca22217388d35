"""``germane alerts test``, ``undelivered`` and ``resend``: test channels, and handle undelivered notifications."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import click

from germane import sanitize
from germane.cli.commands.alerts.actions import ID_LENGTH
from germane.cli.core.output import EXIT_ERROR, as_json, database, print_json, print_table
from germane.cli.core.store import load_settings_for, open_store
from germane.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from germane.alerting import Channel

MAX_NOTIFICATIONS: Final = 100
HEADINGS: Final = ("id", "channel", "created (UTC)", "notification", "attempts", "error")


@click.command("test")
@click.argument("channel", metavar="CHANNEL")
@click.option("--resolved", metavar="ID", help="Send the resolution of an earlier test alert.")
@as_json
@click.pass_context
def test(
    context: click.Context,
    channel: str,
    resolved: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Send a test notification through a channel.

    The notification is marked as a test, and no database is needed. In PagerDuty, it opens an incident. To resolve the
    incident, pass --resolved with the ID that this command prints. Exits with 1 if delivery fails.
    """
    from germane.alerting import DeliveryError, Log, build_channels, build_test_message, message_formats

    settings = load_settings_for(None)
    channels: dict[str, Channel] = {"log": Log(), **build_channels(settings)}
    if channel not in channels:
        name, known = sanitize.line(channel, 80), ", ".join(channels)
        raise UsageError(f"unknown channel {name!r}; configured: {known}. Configure channels in germane.toml")
    message_format = message_formats(settings, [channel])[channel]
    test_id = resolved or uuid4().hex[:8]
    message = build_test_message(
        channel, settings.service, datetime.now(UTC), test_id, resolved=resolved is not None, format=message_format
    )
    status: int | None = None
    problem: str | None = None
    try:
        status = asyncio.run(channels[channel].send(message))
    except DeliveryError as error:
        status, problem = error.status, error.problem
    except SettingsError as error:
        problem = str(error)
    destination = channels[channel].destination
    if as_json:
        result = {"channel": channel, "destination": destination, "id": test_id, "delivered": problem is None}
        print_json({**result, "status": status, "error": problem})
    else:
        click.echo(f"{channel}: {sanitize.line(destination)}")
        http_status = "" if status is None else f", status {status}"
        click.echo(f"delivered{http_status}" if problem is None else f"not delivered: {sanitize.line(problem)}")
        if problem is None and resolved is None:
            click.echo(f"To resolve the test alert: germane alerts test {sanitize.line(channel)} --resolved {test_id}")
    context.exit(0 if problem is None else EXIT_ERROR)


@click.command("undelivered")
@click.option("--channel", metavar="NAME", help="Only notifications for this channel.")
@database
@as_json
def undelivered(
    channel: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """List notifications that could not be delivered.

    The receiver rejected them, or could not be reached for a day.
    """
    with open_store(database) as store:
        records = store.notifications.search(status="undelivered", channel=channel, limit=MAX_NOTIFICATIONS)
    listed, rows = [], []
    for record in records:
        notification = record.notification
        listed.append(
            {
                "id": notification.id,
                "channel": notification.channel,
                "type": notification.type,
                "created_at": notification.created_at,
                "failed_at": record.settled_at,
                "attempts": notification.attempt,
                "http_status": record.http_status,
                "error": record.error,
                "alerts": [
                    {"id": alert.id, "rule": alert.rule, "labels": dict(alert.labels)} for alert in notification.alerts
                ],
            }
        )
        rules = ", ".join(sorted({alert.rule for alert in notification.alerts}))
        rows.append(
            (
                notification.id[:ID_LENGTH],
                sanitize.line(notification.channel, 40),
                f"{notification.created_at:%Y-%m-%d %H:%M}",
                sanitize.line(f"{notification.type}: {rules}", 60),
                str(notification.attempt),
                sanitize.line(record.error, 80),
            )
        )
    if as_json:
        print_json({"undelivered": listed})
    elif rows:
        print_table(HEADINGS, rows)
    else:
        click.echo("No undelivered notifications.")


@click.command("resend")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--channel", metavar="NAME", help="Resend all notifications for this channel.")
@click.option("--all", "every", is_flag=True, help="Resend all notifications from the last week.")
@database
@as_json
def resend(
    ids: tuple[str, ...],
    channel: str | None,
    every: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Resend undelivered notifications.

    They are sent by a process in which the channel is configured, with their original idempotency keys. Notifications
    that were superseded by later ones for the same alert are not sent, so an alert is never reported as firing after it
    has resolved.
    """
    if not (ids or channel or every):
        raise click.UsageError("pass ids from 'germane alerts undelivered', --channel NAME or --all")
    with open_store(database) as store:
        undelivered_entries = store.notifications.search(status="undelivered", channel=channel, limit=MAX_NOTIFICATIONS)
        undelivered_ids = [each.notification.id for each in undelivered_entries]
        chosen = []
        for prefix in ids:
            matches = [full_id for full_id in undelivered_ids if prefix and full_id.startswith(prefix)]
            if len(matches) != 1:
                which = f"{'more than one' if matches else 'no'} undelivered notification has"
                shown = sanitize.line(prefix, 40)
                raise UsageError(f"{which} an id that begins with {shown!r}; run 'germane alerts undelivered'")
            chosen += matches
        count = store.notifications.resend(channel=channel, ids=chosen)
    if as_json:
        print_json({"resent": count})
    else:
        superseded = max(0, len(set(chosen)) - count)
        note = f"; {superseded} superseded by later notifications" if superseded else ""
        click.echo(f"{sanitize.count_noun(count, 'notification')} will be resent{note}.")
