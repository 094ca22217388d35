"""The part of a store in which notifications wait for their channels."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from germane.alert import Notification
from germane.storage import notifications
from germane.storage.notifications import Lane, Outcome, Posted
from germane.storage.part import Part

PATIENCE: Final = timedelta(days=1)
"""How long a notification that nobody takes is tried."""
DEAD_FOR: Final = timedelta(days=7)
"""How long those are told that died."""


class Outbox(Part):
    """Notifications on their way. Any number of processes send them; moments are by the clock that all share."""

    def due_channels(self, channels: Collection[str]) -> set[str]:
        """Return those of the channels for which something may be due. Only reads."""
        with self._database.read() as connection:
            return notifications.due(connection, channels, self._moment(connection))

    def take_notification(
        self, channel: str, owner: str, *, lease: timedelta, patience: timedelta = PATIENCE
    ) -> Notification | None:
        """Take the oldest notification of a channel that is due; None where there is none, or another was faster.

        What is about an alert of which something earlier waits is not due. What has been due for too long, since no
        process could try it, is dead then: it would tell of what may long be over.

        Args:
            channel: Its name.
            owner: Whose it is then.
            lease: For how long, unless :meth:`keep_notification` renews it. Then others may take it.
            patience: How long it may have been due.
        """
        with self._database.write() as connection:
            return notifications.take(connection, channel, owner, lease, patience, self._moment(connection))

    def keep_notification(self, notification_id: str, owner: str, *, lease: timedelta) -> bool:
        """Renew a lease; False where it is another's by now."""
        with self._database.write() as connection:
            return notifications.keep(connection, notification_id, owner, lease, self._moment(connection))

    def settle_notification(
        self, notification_id: str, owner: str, outcome: Outcome, *, patience: timedelta = PATIENCE
    ) -> str | None:
        """Note what became of a try: ``sent``, ``waiting`` for the next one, or ``dead``.

        Args:
            notification_id: Of one that this owner has taken.
            owner: Who took it.
            outcome: What became of it.
            patience: After this time since it was written it is tried no more.

        Returns:
            The status that it has now; None, and nothing is noted, where it is another's by now.
        """
        with self._database.write() as connection:
            moment = self._moment(connection)
            return notifications.settle(connection, notification_id, owner, outcome, patience, moment)

    def release_notifications(self, owner: str) -> int:
        """Hand back what this owner has taken and not settled; return how many."""
        with self._database.write() as connection:
            return notifications.release(connection, owner, self._moment(connection))

    def lanes(self, *, dead_for: timedelta = DEAD_FOR) -> list[Lane]:
        """Return, per channel, what waits and what died within this time, where there is any of it."""
        with self._database.read() as connection:
            return notifications.lanes(connection, self._moment(connection) - dead_for)

    def notifications(
        self,
        *,
        status: str | None = None,
        channel: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
    ) -> list[Posted]:
        """Return notifications, of one status (``waiting``, ``sent``, ``dead``) or channel, the newest first.

        With ``since`` and ``until`` those that were written since then and before then.
        """
        with self._database.read() as connection:
            return notifications.told(connection, (since, until), limit, status=status, channel=channel)

    def resend(self, *, channel: str | None = None, ids: Collection[str] = (), dead_for: timedelta = DEAD_FOR) -> int:
        """Have notifications tried again, in their order: by their ids, or those that died within this time.

        What a later notification of the same alerts and channel has overtaken stays dead.

        Args:
            channel: Only of this one.
            ids: Of dead ones, however old.
            dead_for: How old others may be.

        Returns:
            How many these are.
        """
        with self._database.write() as connection:
            moment = self._moment(connection)
            return notifications.resend(connection, channel, ids, moment - dead_for, moment)
