"""A message that says that it is none, to see whether a channel works."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import uuid4

from germane.alert import Alert, Notification, key_of
from germane.monitor.channels.message import Message

RULE: Final = "test"


def trial_message(channel: str, service: str, now: datetime, *, over: bool, link: str | None) -> Message:
    """Return a test alert that fires, or the end of the last one.

    Args:
        channel: Its name.
        service: Whose test it is.
        now: UTC.
        over: Whether it is the end.
        link: As in a message.
    """
    labels = {"service": service, "channel": channel}
    alert = Alert(
        id=f"test-{channel}",
        key=key_of(RULE, labels),
        rule=RULE,
        kind=RULE,
        labels=labels,
        state="resolved" if over else "firing",
        message=f"This is a test of the channel {channel}. Nothing is wrong.",
        starts_at=now,
        fired_at=now,
        resolved_at=now if over else None,
        evaluated_at=now,
        resolve_reason="by_hand" if over else None,
    )
    notification = Notification(
        id=uuid4().hex,
        channel=channel,
        idempotency_key=uuid4().hex,
        what="resolved" if over else "firing",
        alerts=(alert,),
        event_ids=(),
        created_at=now,
    )
    return Message(notification=notification, link=link)
