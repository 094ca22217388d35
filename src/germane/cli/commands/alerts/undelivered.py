"""``germane alerts dead`` and ``resend``: what no channel has taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from germane.cli.core.output import as_json, database, harmless, print_json, print_table
from germane.cli.core.store import opened
from germane.errors import UsageError
from germane.sanitize import counted

if TYPE_CHECKING:
    from germane.storage import Posted

LIMIT = 100
"""Notifications that are shown."""
SHOWN = 8
"""Digits of an id that are shown."""


@click.command("dead")
@click.option("--channel", metavar="NAME", help="Only of this channel.")
@database
@as_json
def dead(
    channel: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Show what nobody was told of, and why. It was refused, or tried for a day."""
    with opened(database) as store:
        found = store.notifications(status="dead", channel=channel, limit=LIMIT)
    if as_json:
        print_json({"dead": list(map(_as_dict, found))})
    elif found:
        print_table(("id", "channel", "written (UTC)", "what", "tries", "why"), list(map(_row, found)))
    else:
        click.echo("No notification has died.")


@click.command("resend")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--channel", metavar="NAME", help="All of this channel.")
@click.option("--all", "every", is_flag=True, help="All of the last week.")
@database
@as_json
def resend(
    ids: tuple[str, ...],
    channel: str | None,
    every: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Send again what nobody was told of. By ids, of a channel, or all of the last week.

    A process that has the channel sends it, under the key that it had. Not what later news of the same alerts has
    overtaken: nobody is told of the beginning after the end.
    """
    if not (ids or channel or every):
        raise click.UsageError("say what: ids that 'germane alerts dead' shows, --channel NAME or --all")
    with opened(database) as store:
        known = [one.notification.id for one in store.notifications(status="dead", channel=channel, limit=LIMIT)]
        chosen = [_named(id_, known) for id_ in ids]
        count = store.resend(channel=channel, ids=chosen)
    if as_json:
        print_json({"resent": count})
    else:
        overtaken = len(set(chosen)) - count
        left = f"; of {overtaken} later news went out" if overtaken > 0 else ""
        click.echo(f"{counted(count, 'notification')} will be sent again{left}")


def _named(beginning: str, known: list[str]) -> str:
    found = [id_ for id_ in known if beginning and id_.startswith(beginning)]
    if len(found) != 1:
        few = "no" if not found else "more than one"
        what = f"dead notification whose id begins with {harmless(beginning, 40)!r}"
        raise UsageError(f"there is {few} {what}: see germane alerts dead")
    return found[0]


def _row(posted: Posted) -> tuple[str, ...]:
    told = posted.notification
    what = f"{told.what}: {', '.join(sorted({alert.rule for alert in told.alerts}))}"
    written = f"{told.created_at:%Y-%m-%d %H:%M}"
    why = harmless(posted.error, 80)
    return told.id[:SHOWN], harmless(told.channel, 40), written, harmless(what, 60), str(told.attempt), why


def _as_dict(posted: Posted) -> dict[str, Any]:
    told = posted.notification
    return {
        "id": told.id,
        "channel": told.channel,
        "what": told.what,
        "created_at": told.created_at,
        "died_at": posted.settled_at,
        "tries": told.attempt,
        "http_status": posted.http_status,
        "error": posted.error,
        "alerts": [{"id": alert.id, "rule": alert.rule, "labels": dict(alert.labels)} for alert in told.alerts],
    }
