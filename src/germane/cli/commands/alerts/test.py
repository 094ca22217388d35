"""``germane alerts test``: send a test notification through a channel."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from germane import alerting, sanitize
from germane.cli.core.command import JSON, Command, wants_json
from germane.cli.core.output import EXIT_ERROR, print_json
from germane.cli.core.store import load_command_settings
from germane.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from germane.alerting import Channel


@click.command("test", cls=Command, shared=(JSON,))
@click.argument("channel", metavar="CHANNEL")
@click.option("--resolved", metavar="ID", help="Send the resolution of an earlier test alert.")
@click.pass_context
def command(
    context: click.Context,
    channel: str,
    resolved: str | None,
) -> None:
    """Send a test notification through a channel.

    The notification is marked as a test, and no database is needed. In PagerDuty, it opens an incident. To resolve the
    incident, pass --resolved with the ID that this command prints. Exits with 1 if delivery fails.
    """
    from germane.delivery import DeliveryError

    settings = load_command_settings()
    channels: dict[str, Channel] = {"log": alerting.Log(), **alerting.build_channels(settings)}
    if channel not in channels:
        name, known = sanitize.line(channel, 80), ", ".join(channels)
        raise UsageError(f"unknown channel {name!r}; configured: {known}. Configure channels in germane.toml")
    message_format = alerting.message_formats(settings, [channel])[channel]
    test_id = resolved or uuid4().hex[:8]
    message = alerting.build_test_message(
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
    if wants_json():
        result = {"channel": channel, "destination": destination, "id": test_id, "delivered": problem is None}
        print_json({**result, "status": status, "error": problem})
    else:
        click.echo(f"{channel}: {sanitize.line(destination)}")
        http_status = "" if status is None else f", status {status}"
        click.echo(f"delivered{http_status}" if problem is None else f"not delivered: {sanitize.line(problem)}")
        if problem is None and resolved is None:
            click.echo(f"To resolve the test alert: germane alerts test {sanitize.line(channel)} --resolved {test_id}")
    context.exit(0 if problem is None else EXIT_ERROR)
