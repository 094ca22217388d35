"""Alerts in the log."""

from __future__ import annotations

import logging

from germane.alerting.channels.message import Message, sentence

logger = logging.getLogger("germane.monitor")


class Log:
    """Writes a warning per alert to the log ``germane.monitor``, on one line whatever the names in it hold."""

    answers = False
    problem: str | None = None
    where = "log germane.monitor"

    def __repr__(self) -> str:
        return "Log()"

    async def send(self, message: Message) -> None:
        """Write the alerts' sentences."""
        for alert in message.alerts:
            state = "resolved" if alert.state == "resolved" else message.notification.what
            grave = " (critical)" if alert.severity == "critical" else ""
            logger.warning("alert %s%s: %s", state, grave, sentence(alert))
