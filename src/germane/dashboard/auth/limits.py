"""Limits on concurrent page requests and on sign-in attempts with an invalid token.

Page requests are limited because they query the database that applications use.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

import anyio
from starlette.types import Message, Send

from germane.dashboard.web.routing import http_error

MAX_CONCURRENT: Final = 8
MAX_WAIT: Final = 2.0
"""Maximum number of seconds for which a request waits for a slot."""
WINDOW: Final = timedelta(minutes=1)
MAX_FAILURES_PER_ADDRESS: Final = 10
MAX_FAILURES: Final = 100
"""Maximum number of failures from all addresses combined."""
MAX_ADDRESSES: Final = 1_000
"""Maximum number of addresses to remember."""


class ConcurrencyLimit:
    """Limits the number of concurrent requests. Other requests wait, and fail with status 503 if they wait too long."""

    def __init__(self, limit: int = MAX_CONCURRENT, max_wait: float = MAX_WAIT) -> None:
        self._slots = anyio.Semaphore(limit)
        self._max_wait = max_wait

    @asynccontextmanager
    async def slot(self, send: Send) -> AsyncIterator[Send]:
        """Acquire a slot, or raise HTTPException. The returned ``send`` releases it for slow clients."""
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
        """Send an ASGI message with the slot released, and reacquire the slot if more body messages follow.

        The start of the response is delayed until the first body message.
        """
        self._pending.append(message)
        if message["type"] == "http.response.start":
            return
        self.release()
        while self._pending:
            await self._send(self._pending.pop(0))
        if message.get("more_body", False):
            await self._slots.acquire()
            self._is_held = True


class LoginThrottle:
    """Counts invalid tokens over the last minute. Above the limit, further invalid tokens get status 429.

    The correct token is always accepted. Its length of at least 16 characters protects it, and if the limit applied to
    it too, anyone could lock everyone out. The limit slows down scripts that keep sending an outdated token.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._by_address: OrderedDict[str, deque[datetime]] = OrderedDict()
        self._all: deque[datetime] = deque(maxlen=MAX_FAILURES)

    def seconds_to_wait(self, address: str) -> int:
        """Return the number of seconds for which an address is still rejected; 0 if it is not rejected."""
        with self._lock:
            limits = [(self._by_address.get(address, ()), MAX_FAILURES_PER_ADDRESS), (self._all, MAX_FAILURES)]
            ends = [failures[-limit] + WINDOW for failures, limit in limits if len(failures) >= limit]
        remaining = max((end - self._now() for end in ends), default=timedelta())
        return max(0, math.ceil(remaining.total_seconds()))

    def record_failure(self, address: str) -> None:
        """Count an invalid token from an address."""
        with self._lock:
            self._by_address.setdefault(address, deque(maxlen=MAX_FAILURES_PER_ADDRESS)).append(self._now())
            self._by_address.move_to_end(address)
            self._all.append(self._now())
            while len(self._by_address) > MAX_ADDRESSES:
                self._by_address.popitem(last=False)
