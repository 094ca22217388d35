"""A judge for servers with an OpenAI-compatible API."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers.base.protocols import CHECK_MESSAGE, DEFAULT_JUDGE_OPTIONS, MAX_REPLY_TOKENS, JudgeOptions, Reply
from germane.scorers.judge.client import ClientPool, ModelServer, post_json
from germane.scorers.judge.http_client import MAX_REPLY_BYTES
from germane.scorers.judge.openai_protocol import (
    JUDGE_OPTIONS,
    SupportedOptions,
    build_request_options,
    parse_reply,
    served_model,
)
from germane.scorers.judge.prices import PriceList
from germane.scorers.judge.rate_limit import RateLimiter, RateLimitGuard

if TYPE_CHECKING:
    import openai

DEFAULT_CONCURRENCY = 64
"""Default limit on concurrent requests."""


class RequestSlots:
    """A fair limit on concurrent requests.

    It can be used from several event loops, one after another. All slots are free when a new loop starts.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._loop: asyncio.AbstractEventLoop | None = None
        self._semaphore = asyncio.Semaphore(count)
        self._free_numbers: list[int] = []

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[int]:
        """Wait for a slot in order of arrival, and yield the lowest free slot number. Numbering starts at 0."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._semaphore = loop, asyncio.Semaphore(self.count)
            self._free_numbers = list(range(self.count))
        free_numbers = self._free_numbers
        async with self._semaphore:
            number = heapq.heappop(free_numbers)
            try:
                yield number
            finally:
                heapq.heappush(free_numbers, number)


@dataclass(frozen=True, slots=True)
class _ServerPause:
    """A pause requested by the server."""

    since: float
    """The time at which the pause was requested, in seconds on the monotonic clock, as for ``until``."""
    until: float
    error: ScoringError


class OpenAIJudge:
    """Sends requests to a chat model, with limited concurrency.

    After the server rejects an option, requests omit it.
    """

    def __init__(
        self,
        model: str,
        server: ModelServer,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        prices: PriceList | None = None,
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        """Use ``model`` on ``server``. If ``prices`` is omitted, only the built-in price list applies."""
        self.model = model
        self.server = server
        self._prices = prices or PriceList()
        self._rate_limit = RateLimitGuard(rate_limiter, self._estimate_cost)
        self._slots = RequestSlots(concurrency)
        self._server_pause: _ServerPause | None = None
        self._clients = ClientPool(server)
        self._options = SupportedOptions(JUDGE_OPTIONS)
        self._served_model: str | None = None

    def __repr__(self) -> str:
        return f"OpenAIJudge({self.model!r})"

    async def ask(self, messages: Sequence[Message], **given: Unpack[JudgeOptions]) -> Reply:
        """Send a request, and return the reply with up to ``n`` choices. There are fewer if the server ignores ``n``.

        Time spent waiting for a slot does not count towards the timeout. If the server requests a pause during that
        time, the request is not sent.

        Raises:
            ScoringError: ``judge_timeout``, ``judge_rate_limited`` (with ``retry_after`` if the server sends it),
                ``judge_rejected`` (key, quota, model), ``judge_unreachable``, ``judge_refused`` or ``unparsable``;
                ``budget`` if a budget is exhausted.
        """
        options: JudgeOptions = {**DEFAULT_JUDGE_OPTIONS, **given}
        body = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
        }
        called = time.monotonic()
        async with self._rate_limit.slot(messages, options["n"], options["max_tokens"]) as rate_slot:
            async with self._slots.acquire() as slot:
                pause = self._server_pause  # the server may have requested it since the call
                if pause is not None and pause.since >= called and (remaining := pause.until - time.monotonic()) > 0:
                    raise ScoringError(pause.error.reason, str(pause.error), retry_after=remaining)
                reply = await self._send(self._clients.client_for(slot), body, build_request_options(options))
                cost = self._prices.request_cost(self.model, reply.model, reply.input_tokens, reply.output_tokens)
                rate_slot.reply = replace(reply, cost=cost)
            return rate_slot.reply

    async def identify(self) -> str:
        """Return the model name from the latest reply. If there has been no reply yet, send a minimal request first."""
        if self._served_model is None:
            try:
                await self.ask([CHECK_MESSAGE], max_tokens=MAX_REPLY_TOKENS)
            except ScoringError as error:
                if error.reason is not UnscoredReason.UNPARSABLE:  # the judge is reachable, but the reply is empty
                    raise
        self._served_model = self._served_model or self.model
        return self._served_model

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _send(self, client: openai.AsyncOpenAI, body: dict[str, Any], options: dict[str, Any]) -> Reply:
        async def post(supported: Mapping[str, Any]) -> Any:
            # Log probabilities take about 20 times as many bytes as the text.
            max_bytes = MAX_REPLY_BYTES * (4 if "logprobs" in supported else 1)
            return await post_json(client, "/chat/completions", {**body, **supported}, max_bytes=max_bytes)

        try:
            async with self.server.guard_request("/chat/completions"):
                completion = await self._options.send(options, post)
                self._served_model = served_model(completion) or self._served_model
                return parse_reply(completion)
        except ScoringError as error:
            if error.retry_after:
                now = time.monotonic()
                self._server_pause = _ServerPause(now, now + error.retry_after, error)
            raise

    def _estimate_cost(self, input_tokens: float, output_tokens: float) -> float:
        """Estimate a request's cost in US dollars at the price of the served or configured model, or else 0."""
        costs = (
            self._prices.request_cost(self.model, served, input_tokens, output_tokens)
            for served in (self._served_model, None)
        )
        return next((cost for cost in costs if cost is not None), 0.0)


def exchange_concurrency(slots: int) -> int:
    """Return the number of exchanges to score concurrently to keep the slots busy.

    At any time, about half of the exchanges are waiting for embeddings or for a slot.
    """
    return 2 * slots
