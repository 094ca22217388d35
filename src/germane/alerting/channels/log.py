"""Alerts in the log."""

from __future__ import annotations

import logging

from germane.alerting.channels.message import ChannelMessage, message_line

logger = logging.getLogger("germane.alerting")


class Log:
    """Logs one warning per alert to ``germane.alerting``, on one line whatever the names contain."""

    include_text = False
    config_error: str | None = None
    destination = "log germane.alerting"

    def __repr__(self) -> str:
        return "Log()"

    async def send(self, message: ChannelMessage) -> None:
        """Log the alerts' messages."""
        for alert in message.alerts:
            state = "resolved" if alert.state == "resolved" else message.notification.type
            severity = " (critical)" if alert.severity == "critical" else ""
            logger.warning("alert %s%s: %s", state, severity, message_line(alert))
