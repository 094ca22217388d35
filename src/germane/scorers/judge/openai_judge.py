"""The judge behind any server that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.protocols import Message, Reply
from germane.scorers.judge.client import Clients, Server, post
from germane.scorers.judge.prices import MILLION, Prices
from germane.scorers.judge.rate_limit import Pace, Paced
from germane.scorers.judge.request_options import Taken, options_for
from germane.scorers.judge.response_parser import reply_in, served_by
from germane.scorers.prompting.judge_session import TOKENS, TRIAL

if TYPE_CHECKING:
    import openai


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


CONCURRENCY = 64
"""Requests in flight, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class _Busy:
    """A server asked to be left alone."""

    since: float
    until: float
    """Of the monotonic clock, seconds."""
    error: ScoringError


class OpenAIJudge:
    """Asks a chat model, so many requests at a time. What its server turns out not to take is left out from then on."""

    def __init__(
        self,
        model: str,
        server: Server,
        *,
        concurrency: int = CONCURRENCY,
        prices: Prices | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Ask ``model`` at ``server``, no faster than the pace allows; by default only list prices are known."""
        self.model = model
        self.server = server
        self._prices = prices or Prices()
        self._paced = Paced(pace, self._cost)
        self._slots = Slots(concurrency)
        self._busy: _Busy | None = None
        self._clients = Clients(server)
        self._taken = Taken()
        self._served: str | None = None

    def __repr__(self) -> str:
        return f"OpenAIJudge({self.model!r})"

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        n: int = 1,
        temperature: float = 0.0,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
        top_tokens: int = 0,
    ) -> Reply:
        """Return ``n`` choices, or fewer where the server ignores ``n``.

        A request may wait for its turn; that does not count for its time-out. When the server asks to be left alone
        meanwhile, it is not made.

        Raises:
            ScoringError: ``judge_timeout``, ``judge_rate_limited`` (with ``retry_after`` where the server names it),
                ``judge_rejected`` (key, quota, model), ``judge_unreachable``, ``judge_refused`` or ``unparsable``;
                ``budget`` where there is one, and nothing of it is left.
        """
        wanted = options_for(
            n=n, temperature=temperature, max_tokens=max_tokens, stop=stop, schema=schema, top_tokens=top_tokens
        )
        turns = [{"role": message.role, "content": message.text} for message in messages]
        came = time.monotonic()
        async with self._paced.turn(messages, n, max_tokens) as turn:
            async with self._slots.one() as slot:
                self._heed(came)
                turn.reply = self._priced(await self._send(self._clients.of(slot), turns, wanted))
            return turn.reply

    async def identify(self) -> str:
        """Return the model as the server named it last, before any reply by a tiny request.

        Raises:
            ScoringError: as :meth:`ask`.
        """
        if self._served is None:
            await self._introduce()
        return self._served or self.model

    async def _introduce(self) -> None:
        try:
            await self.ask([TRIAL], max_tokens=TOKENS)
        except ScoringError as error:
            if error.reason is not Reason.UNPARSABLE:  # it is there, and says nothing
                raise
        self._served = self._served or self.model

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    def _heed(self, came: float) -> None:
        """Raise what the server said to others, if it asked to be left alone while this request waited."""
        busy = self._busy
        if busy is not None and busy.since >= came and (left := busy.until - time.monotonic()) > 0:
            raise ScoringError(busy.error.reason, str(busy.error), retry_after=left)

    async def _send(self, client: openai.AsyncOpenAI, turns: list[dict[str, str]], wanted: dict[str, Any]) -> Reply:
        try:
            async with self.server.request():
                completion = await self._complete(client, turns, wanted)
                self._served = served_by(completion) or self._served
                return reply_in(completion)
        except ScoringError as error:
            if error.retry_after:
                now = time.monotonic()
                self._busy = _Busy(now, now + error.retry_after, error)
            raise

    def _priced(self, reply: Reply) -> Reply:
        cost = self._prices.cost(self.model, reply.model, reply.input_tokens, reply.output_tokens)
        return replace(reply, cost=cost)

    def _cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return what a request is going to cost; of a model that its server calls by an unknown name, the asked one's.

        0 where no price is known: a budget of money refuses such a model at the start.
        """
        price = self._prices.of(self.model, self._served) or self._prices.of(self.model)
        return 0.0 if price is None else (price.input * input_tokens + price.output * output_tokens) / MILLION

    async def _complete(self, client: openai.AsyncOpenAI, turns: list[dict[str, str]], wanted: dict[str, Any]) -> Any:
        async def send(taken: Mapping[str, Any]) -> Any:
            return await post(client, "/chat/completions", {"model": self.model, "messages": turns, **taken})

        return await self._taken.send(wanted, send)
