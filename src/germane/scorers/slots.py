"""How many requests may be in flight at a time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def at_work(slots: int) -> int:
    """Return how many exchanges keep that many slots full: about as many wait for vectors, or for a slot."""
    return 2 * slots


class Slots:
    """So many at a time, the others in the order in which they came.

    Serves one event loop after another; what an ended loop left behind does not count.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(count)
        self._numbers: list[int] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[int]:
        """Wait for a slot; yields its number, from 0 on, the lowest that is free."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._free, self._numbers = loop, asyncio.Semaphore(self.count), list(range(self.count))
        numbers = self._numbers
        async with self._free:
            number = heapq.heappop(numbers)
            try:
                yield number
            finally:
                heapq.heappush(numbers, number)
