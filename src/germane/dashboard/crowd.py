"""How many pages are made at once: each reads the database, which also has applications to serve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from germane.dashboard.refusal import Refusal

AT_ONCE: Final = 8
PATIENCE: Final = 2.0
"""Seconds that a request waits for its turn."""


class Crowd:
    """Lets in so many at once; others wait for a short while, and are then asked to come again.

    Args:
        at_once: How many.
        patience: Seconds that others wait.
    """

    def __init__(self, at_once: int = AT_ONCE, patience: float = PATIENCE) -> None:
        self._turns = anyio.Semaphore(at_once)
        self._patience = patience

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it.

        Raises:
            Refusal: none came in time.
        """
        with anyio.move_on_after(self._patience) as waiting:
            await self._turns.acquire()
        if waiting.cancelled_caught:
            step = "Come again in a few seconds. A shorter window is read faster."
            raise Refusal(503, "Too many pages are being made at this moment.", step, headers={"Retry-After": "5"})
        try:
            yield
        finally:
            self._turns.release()
