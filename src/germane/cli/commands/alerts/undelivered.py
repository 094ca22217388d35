"""Notifications that could not be delivered: ``germane alerts --undelivered``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from germane import sanitize
from germane.cli.commands.alerts.show import ID_LENGTH
from germane.cli.core.command import wants_json
from germane.cli.core.output import print_json, print_table
from germane.errors import UsageError
from germane.records import select

if TYPE_CHECKING:
    from germane.storage import NotificationRecord, TrackingStore

MAX_NOTIFICATIONS: Final = 100
HEADINGS: Final = ("id", "channel", "created (UTC)", "notification", "attempts", "error")


def list_undelivered(store: TrackingStore, channel: str | None = None) -> Sequence[NotificationRecord]:
    """Return the newest notifications that receivers rejected, or that could not be sent for a day."""
    return store.notifications.search(status="undelivered", channel=channel, limit=MAX_NOTIFICATIONS)


def find_undelivered(store: TrackingStore, prefixes: Sequence[str], channel: str | None) -> list[str]:
    """Return the ids of undelivered notifications that begin with the prefixes, each of which must match one."""
    ids = [record.notification.id for record in list_undelivered(store, channel)]
    chosen = []
    for prefix in prefixes:
        matches = [full_id for full_id in ids if prefix and full_id.startswith(prefix)]
        if len(matches) != 1:
            which = f"{'more than one' if matches else 'no'} undelivered notification has"
            shown = sanitize.line(prefix, 40)
            raise UsageError(f"{which} an id that begins with {shown!r}; run 'germane alerts --undelivered'")
        chosen += matches
    return chosen


def print_undelivered(records: Sequence[NotificationRecord]) -> None:
    """Print notifications as a table, or as JSON."""
    listed, rows = [], []
    for record in records:
        notification = record.notification
        listed.append(
            {
                **select(notification, "id", "channel", "type", "created_at"),
                "failed_at": record.settled_at,
                "attempts": notification.attempt,
                **select(record, "http_status", "error"),
                "alerts": [select(alert, "id", "rule", "labels") for alert in notification.alerts],
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
    if wants_json():
        print_json({"undelivered": listed})
    elif rows:
        print_table(HEADINGS, rows)
    else:
        click.echo("No undelivered notifications.")
