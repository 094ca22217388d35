"""``germane alerts test``: whether a channel works."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from germane.cli.core.output import as_json, harmless, print_json
from germane.cli.core.store import settings_for
from germane.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from germane.alerting.channels import Channel, Message
    from germane.settings import Settings


@click.command("test")
@click.argument("channel", metavar="CHANNEL")
@click.option("--resolved", is_flag=True, help="Send the end of the test before: it closes an incident.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    channel: str,
    resolved: bool,  # noqa: FBT001 - click passes them by name
    as_json: bool,  # noqa: FBT001
) -> None:
    """Send a test alert by a channel, and say what came of it.

    It is marked as a test, and needs no database. PagerDuty keeps the incident until --resolved is sent.
    """
    from germane.alerting.channels.factory import trial_message

    settings = settings_for(None)
    found = _channel(settings, channel)
    message = trial_message(channel, settings.service, datetime.now(UTC), over=resolved, link=settings.alert_link)
    status, problem = asyncio.run(_tried(found, message))
    if as_json:
        told = {"channel": channel, "where": found.where, "taken": problem is None, "status": status}
        print_json({**told, "problem": problem})
    else:
        answered = "" if status is None else f", status {status}"
        click.echo(f"{channel}: {harmless(found.where)}")
        click.echo(f"taken{answered}" if problem is None else f"not taken: {harmless(problem)}")
    context.exit(0 if problem is None else 1)


def _channel(settings: Settings, name: str) -> Channel:
    from germane.alerting.channels import Log, build

    channels: dict[str, Channel] = {"log": Log(), **build(settings)}
    if name not in channels:
        known = ", ".join(channels)
        raise UsageError(f"there is no channel {harmless(name, 80)!r}; known: {known}. See channels in germane.toml")
    return channels[name]


async def _tried(channel: Channel, message: Message) -> tuple[int | None, str | None]:
    """Send it; return the status, and what went wrong."""
    from germane.alerting.channels import NotDelivered

    try:
        return await channel.send(message), None
    except NotDelivered as error:
        return error.status, error.problem
    except SettingsError as error:
        return None, str(error)
