"""Connections to one server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from germane.scorers.server import Server

if TYPE_CHECKING:
    import openai

CONNECTIONS = 4
"""Of one client."""


class Clients:
    """Clients of one server, each made when it is first needed.

    Serves one event loop after another: what an ended loop left behind is forgotten, as it can neither be used nor
    closed any more.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients = [server.connect()]

    def of(self, slot: int) -> openai.AsyncOpenAI:
        """Return the client of a slot: one looks at all its connections at each request, so they have few each."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            self._clients = []
        self._loop = loop
        while len(self._clients) <= slot // CONNECTIONS:
            self._clients.append(self.server.connect())
        return self._clients[slot // CONNECTIONS]

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        clients, self._clients = self._clients, []
        if self._loop in (None, asyncio.get_running_loop()):
            for client in clients:
                await client.close()
