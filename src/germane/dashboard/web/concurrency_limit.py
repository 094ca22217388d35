"""A limit of pages that are generated at once, because each of them queries the database that applications use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from starlette.types import Message, Send

from germane.dashboard.web.http_error import http_error

MAX_CONCURRENT: Final = 8
MAX_WAIT: Final = 2.0
"""Seconds that a request waits for a slot."""


class ConcurrencyLimit:
    """Runs a limited number of requests at once; others wait, and fail with 503 if they wait too long.

    Args:
        limit: The number of requests.
        max_wait: Seconds that other requests wait.
    """

    def __init__(self, limit: int = MAX_CONCURRENT, max_wait: float = MAX_WAIT) -> None:
        self._slots = anyio.Semaphore(limit)
        self._max_wait = max_wait

    @asynccontextmanager
    async def slot(self, send: Send) -> AsyncIterator[Send]:
        """Acquire a slot. The returned ``send`` releases it while a message is sent, so slow clients block no one.

        Raises:
            HTTPException: No slot became free in time.
        """
        with anyio.move_on_after(self._max_wait) as waiting:
            await self._slots.acquire()
        if waiting.cancelled_caught:
            step = "Try again in a few seconds. Pages with a shorter window load faster."
            raise http_error(503, "Too many pages are being loaded.", step, headers={"Retry-After": "5"})
        slot = _Slot(self._slots, send)
        try:
            yield slot.send
        finally:
            slot.release()


class _Slot:
    """An acquired slot that is released while a message is sent."""

    def __init__(self, slots: anyio.Semaphore, send: Send) -> None:
        self._slots = slots
        self._send = send
        self._pending = list[Message]()
        self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.release()

    async def send(self, message: Message) -> None:
        """Send a message, and acquire the slot again if more follow. The start is sent with the first body."""
        self._pending.append(message)
        if message["type"] == "http.response.start":
            return
        self.release()
        while self._pending:
            await self._send(self._pending.pop(0))
        if message.get("more_body", False):
            await self._slots.acquire()
            self._is_held = True
