"""Channels inside the process: the log and Python callbacks."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable

from germane.alert import Alert
from germane.alerting.channels.channel import ChannelMessage
from germane.daemon_pool import DaemonThreadPool
from germane.delivery import DeliveryError
from germane.errors import error_location

logger = logging.getLogger("germane.alerting")


class Log:
    """Logs each alert as a warning to ``germane.alerting``.

    A message is one line, even if names contain line breaks.
    """

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
            logger.warning("alert %s%s: %s", state, severity, message.text_for(alert))


class Callback:
    """Calls a plain or coroutine function once for each alert. A call that raises an exception is not retried."""

    include_text = False
    config_error: str | None = None

    def __init__(self, function: Callable[[Alert], object] | Callable[[Alert], Awaitable[object]]) -> None:
        self._function = function

    def __repr__(self) -> str:
        return f"Callback({self.destination})"

    @property
    def destination(self) -> str:
        """The name of the function."""
        return getattr(self._function, "__qualname__", type(self._function).__name__)

    async def send(self, message: ChannelMessage) -> None:
        """Call the function with each alert.

        Coroutine functions run on the monitor's event loop, others in a thread.
        """
        problems = []
        for alert in message.alerts:
            try:
                if inspect.iscoroutinefunction(self._function):
                    await self._function(alert)
                    continue
                threads = DaemonThreadPool(1, name="germane-callback")
                try:
                    result = await threads.run(self._function, alert)
                finally:
                    threads.close()
                if inspect.isawaitable(result):
                    await result
            except Exception as error:  # noqa: BLE001 - user code must not break the monitor
                problems.append(error_location(error))
        if problems:
            raise DeliveryError(problems[0], retryable=False)
