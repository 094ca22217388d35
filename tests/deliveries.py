"""What a delivery worker does with the notifications to a channel, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from germane.alert import Notification
from germane.storage import Delivery, DeliveryOutcome, TrackingStore, channel_queue, parse_notification

LEASE = timedelta(seconds=60)
SENT = DeliveryOutcome(http_status=200)
REFUSED = DeliveryOutcome(http_status=400, error="status 400")
BUSY = DeliveryOutcome(http_status=503, error="status 503", retry_after=timedelta(seconds=5))


class Courier:
    """Claims the notifications to one channel and records outcomes, without sending anything."""

    def __init__(self, store: TrackingStore, channel: str = "oncall", owner: str = "me") -> None:
        self.store, self.queue, self.owner = store, channel_queue(channel), owner
        self.item: Delivery | None = None
        """The claimed item."""

    def claim(self) -> Notification | None:
        """Claim the next due notification, or return None if none is due."""
        claimed = self.store.outbox.claim(self.queue, self.owner, lease=LEASE)
        self.item = claimed[0] if claimed else None
        return None if self.item is None else parse_notification(self.queue.target, self.item)

    def record(self, outcome: DeliveryOutcome = SENT) -> str | None:
        """Record an outcome for the claimed item, and return its status."""
        assert self.item is not None
        statuses = self.store.outbox.record_attempt(self.queue, self.owner, {self.item.id: outcome})
        return statuses.get(self.item.id)

    def deliver(self, outcome: DeliveryOutcome = SENT) -> str | None:
        """Claim the next due notification, record an outcome, and return the notification's id; None if none is due."""
        notification = self.claim()
        if notification is not None:
            assert self.record(outcome) is not None
        return None if notification is None else notification.id


def due_channels(store: TrackingStore, names: Iterable[str]) -> set[str]:
    """Return the channels that have a due notification."""
    return store.outbox.list_due(map(channel_queue, names))
