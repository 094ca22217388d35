"""Alerts to a function of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from germane.alert import Alert
from germane.alerting.channels.channel import NotDelivered
from germane.alerting.channels.message import Message
from germane.daemon_pool import Threads
from germane.errors import place_of


class Callback:
    """Calls a function of the user's, sync or async, with each alert: once, also where it raises."""

    answers = False
    problem: str | None = None

    def __init__(self, function: Callable[[Alert], object] | Callable[[Alert], Awaitable[object]]) -> None:
        self._function = function

    def __repr__(self) -> str:
        return f"Callback({self.where})"

    @property
    def where(self) -> str:
        """The function's name."""
        return getattr(self._function, "__qualname__", type(self._function).__name__)

    async def send(self, message: Message) -> None:
        """Call the function: a coroutine function on the monitor's loop, any other in a thread."""
        problems = [problem for alert in message.alerts if (problem := await self._try(alert)) is not None]
        if problems:
            raise NotDelivered(problems[0], again=False)

    async def _try(self, alert: Alert) -> str | None:
        try:
            await self._call(alert)
        except Exception as error:  # noqa: BLE001 - the user's own code: nothing of it spreads
            return place_of(error)
        return None

    async def _call(self, alert: Alert) -> None:
        if inspect.iscoroutinefunction(self._function):
            await self._function(alert)
            return
        threads = Threads(1, name="germane-callback")
        try:
            result = await threads.run(self._function, alert)
        finally:
            threads.close()
        if inspect.isawaitable(result):
            await result
