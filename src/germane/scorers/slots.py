"""How many requests may be in flight at a time."""

from __future__ import annotations

import asyncio
from types import TracebackType


def at_work(slots: int) -> int:
    """Return how many exchanges keep that many slots full: about as many wait for vectors, or for a slot."""
    return 2 * slots


class Slots:
    """So many at a time, the others in the order in which they came: ``async with slots: ...``.

    Serves one event loop after another; what an ended loop left behind does not count.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(count)

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._free = loop, asyncio.Semaphore(self.count)
        await self._free.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if asyncio.get_running_loop() is self._loop:
            self._free.release()
