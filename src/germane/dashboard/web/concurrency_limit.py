"""How many pages are made at once: each reads the database, which also has applications to serve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from starlette.types import Message, Send

from germane.dashboard.web.http_error import Refusal

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
    async def turn(self, send: Send) -> AsyncIterator[Send]:
        """Wait for a turn, and have it; what is sent by the function returned waits for its reader out of turn.

        Who takes a page slowly, or not at all, keeps nobody else from theirs.

        Raises:
            Refusal: none came in time.
        """
        await self._wait()
        turn = _Turn(self._turns, send)
        try:
            yield turn.send
        finally:
            turn.end()

    async def _wait(self) -> None:
        with anyio.move_on_after(self._patience) as waiting:
            await self._turns.acquire()
        if waiting.cancelled_caught:
            step = "Come again in a few seconds. A shorter window is read faster."
            raise Refusal(503, "Too many pages are being made at this moment.", step, headers={"Retry-After": "5"})


class _Turn:
    """One that is had, and given back for as long as something is sent."""

    def __init__(self, turns: anyio.Semaphore, send: Send) -> None:
        self._turns = turns
        self._send = send
        self._waiting = list[Message]()
        self._had = True

    def end(self) -> None:
        """Give it back."""
        if self._had:
            self._had = False
            self._turns.release()

    async def send(self, message: Message) -> None:
        """Send, and take a turn again where more is to come. The head goes with the first of what follows it."""
        self._waiting.append(message)
        if message["type"] == "http.response.start":
            return
        self.end()
        while self._waiting:
            await self._send(self._waiting.pop(0))
        if message.get("more_body", False):
            await self._turns.acquire()
            self._had = True
