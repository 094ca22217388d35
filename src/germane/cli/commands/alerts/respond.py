"""``germane alerts respond``: acknowledge, silence or resolve alerts, and resend notifications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from germane import alerting, sanitize
from germane.cli.commands.alerts.show import ID_LENGTH, format_alert, format_silence
from germane.cli.commands.alerts.undelivered import find_undelivered
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import print_json
from germane.cli.core.params import DURATION
from germane.cli.core.store import load_command_settings, open_store

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.storage import TrackingStore

_BY: Final = frozenset({"by"})
_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "ack": _BY,
    "resolve": _BY,
    "silence": _BY | {"rule", "service", "route", "scorer", "for", "comment"},
    "unsilence": frozenset(),
    "resend": frozenset({"channel"}),
}
"""The options of each action."""


@click.command("respond", cls=Command)
@click.argument("action", type=click.Choice(list(_OPTIONS)))
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--by", metavar="NAME", help="Your name.")
@click.option("--rule", metavar="PATTERN", help="Silence only alerts from matching rules.")
@click.option("--service", metavar="PATTERN", help="Silence only alerts for matching services.")
@click.option("--route", metavar="PATTERN", help="Silence only alerts for matching routes.")
@click.option("--scorer", metavar="PATTERN", help="Silence only alerts for matching scorers.")
@click.option("--for", "duration", type=DURATION, help="Duration of the silence, such as 2h or 7d.")
@click.option("--comment", help="Reason for the silence.")
@click.option("--channel", metavar="NAME", help="Resend all undelivered notifications for this channel.")
def command(
    action: str,
    ids: tuple[str, ...],
    by: str | None,
    rule: str | None,
    service: str | None,
    route: str | None,
    scorer: str | None,
    duration: timedelta | None,
    comment: str | None,
    channel: str | None,
) -> None:
    """Acknowledge, silence or resolve alerts, or resend notifications.

    ack ID acknowledges an alert and stops reminders until it resolves. ID is the id or a prefix of it.

    resolve ID resolves an alert. If its rule is still violated, the alert fires again.

    silence suppresses notifications about matching alerts for a period; without patterns, about all alerts. Patterns
    may contain wildcards, such as `docs-*`. Silenced alerts fire and resolve as usual. When the silence ends, you are
    notified of alerts that are still firing. unsilence ID ends a silence now.

    resend ID... resends undelivered notifications with their original idempotency keys. Notifications that were
    superseded by later ones for the same alert are not sent, so an alert is never reported as firing after it has
    resolved.
    """
    matchers = {"rule": rule, "service": service, "route": route, "scorer": scorer}
    _check_options(action, ids, {**matchers, "by": by, "for": duration, "comment": comment, "channel": channel})
    content: Mapping[str, Any]
    with open_store() as store:
        if action == "silence" and duration is not None:
            patterns = {name: pattern for name, pattern in matchers.items() if pattern is not None}
            created = alerting.silence_alerts(store, patterns, until=duration, by=by, comment=comment)
            content, message = {"silence": created}, format_silence(created)
        elif action == "unsilence":
            ended = alerting.end_silence(store, ids[0])
            content, message = {"ended": ended.id}, f"Ended silence {ended.id[:ID_LENGTH]}."
        elif action == "resend":
            content, message = _resend(store, ids, channel)
        elif action == "resolve":
            content, message = _describe(alerting.resolve_alert(store, load_command_settings(), ids[0], by))
        else:
            content, message = _describe(alerting.acknowledge_alert(store, ids[0], by))
    if wants_json():
        print_json(content)
    else:
        click.echo(message)


def _check_options(action: str, ids: tuple[str, ...], options: Mapping[str, object]) -> None:
    """Check that the ids and options belong to the action."""
    for name, value in options.items():
        if value is not None and name not in _OPTIONS[action]:
            actions = " and ".join(other for other, names in _OPTIONS.items() if name in names)
            raise click.UsageError(f"--{name} applies to {actions}, not to {action}")
    if action == "silence":
        if ids:
            raise click.UsageError("silence takes patterns instead of ids: --rule, --service, --route or --scorer")
        if options["for"] is None:
            raise click.UsageError("pass the duration of the silence, such as --for 2h")
    elif action == "resend":
        if not (ids or options["channel"]):
            raise click.UsageError("pass ids from 'germane alerts --undelivered', or --channel NAME")
    elif len(ids) != 1:
        raise click.UsageError(f"{action} takes one id, as listed by 'germane alerts'")


def _describe(alert: Alert) -> tuple[dict[str, Any], str]:
    return {"alert": alert}, "\n".join(format_alert(alert))


def _resend(store: TrackingStore, ids: tuple[str, ...], channel: str | None) -> tuple[dict[str, Any], str]:
    chosen = find_undelivered(store, ids, channel)
    count = store.notifications.resend(channel=channel, ids=chosen)
    superseded = max(0, len(set(chosen)) - count)
    note = f"; {superseded} superseded by later notifications" if superseded else ""
    return {"resent": count}, f"{sanitize.count_noun(count, 'notification')} will be resent{note}."
