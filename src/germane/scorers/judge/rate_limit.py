"""The client side of rate limits and budgets. Each judge request waits for a slot and reports its usage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from germane.exchange import Message
from germane.scorers.base.protocols import Reply

BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token, as is typical of English. In all languages, the reply's actual count replaces the estimate."""
INITIAL_OUTPUT_TOKENS = 100.0
"""The expected number of output tokens per choice before the first reply."""
OUTPUT_SMOOTHING = 0.2
"""The weight of the latest reply in the exponential moving average of output tokens."""


@dataclass(frozen=True, slots=True)
class RequestReservation:
    """The tokens and the budget reserved for one request."""

    tokens: float = 0.0
    usd: float = 0.0
    day: date | None = None
    """The day whose budget is charged; None if there is no budget."""


class RateLimiter(Protocol):
    """Enforces rate limits and the budget by delaying or rejecting requests."""

    @property
    def budget_exhausted_until(self) -> datetime | None:
        """The time (UTC) at which budget is available again; None if the budget is not exhausted or not set."""

    async def acquire(self, tokens: float, usd: float = 0.0) -> RequestReservation:
        """Wait until a request with this estimated usage may start, and return its reservation.

        Raises:
            ScoringError: ``budget`` if the budget is exhausted; ``judge_rate_limited`` after :meth:`stop_waiting`.
        """

    async def reserve_retry(self, reservation: RequestReservation) -> RequestReservation:
        """Reserve the same amount again before the client repeats a request, and return the new reservation.

        Raises:
            ScoringError: see :meth:`acquire`. The request must not be sent.
        """

    def settle(
        self, reservation: RequestReservation, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0
    ) -> None:
        """Record the difference between actual and reserved usage. Negative amounts are refunds."""

    def stop_waiting(self) -> None:
        """Reject all waiting and future calls of :meth:`acquire` with ``judge_rate_limited``."""

    async def aclose(self) -> None:
        """Reject waiting requests, and record all outstanding usage."""


@dataclass(slots=True)
class RateSlot:
    """Permission to send one judge request, with its reservation, attempts and reply."""

    rate_limiter: RateLimiter | None = None
    reservation: RequestReservation = RequestReservation()
    """The reservation for the current attempt."""
    attempts: int = 0
    """The number of times that the request was sent, including the client's retries and redirects."""
    reply: Reply | None = None

    async def record_attempt(self) -> None:
        """Count an attempt before it is sent. For every attempt after the first, reserve the amount again.

        Otherwise, retries could exceed the budget. It would not be enough to disable the client's retries, because
        unsupported options and redirects also cause further requests. The client's request hook sees all of them.

        Raises:
            ScoringError: the request must not be sent again.
        """
        if self.attempts and self.rate_limiter is not None:
            self.reservation = await self.rate_limiter.reserve_retry(self.reservation)
        self.attempts += 1


_current_slot: ContextVar[RateSlot | None] = ContextVar("germane_rate_slot", default=None)


class RateLimitGuard:
    """Reserves the estimated usage of each judge request, and settles the actual usage."""

    def __init__(
        self, rate_limiter: RateLimiter | None, request_cost: Callable[[float, float], float] = lambda *_: 0.0
    ) -> None:
        """Limit requests with the given rate limiter, if any.

        ``request_cost`` returns the cost, in US dollars, of the given numbers of input and output tokens.
        """
        self.rate_limiter = rate_limiter
        self._request_cost = request_cost
        self._expected_output = INITIAL_OUTPUT_TOKENS

    @asynccontextmanager
    async def slot(self, messages: Sequence[Message], choices: int, max_tokens: int) -> AsyncIterator[RateSlot]:
        """Wait for a slot, yield it, and settle its usage on exit. Without a rate limiter, there is no wait.

        If there is no usable reply, the reservation is charged, because the actual usage is unknown. If the request was
        never sent, the reservation is refunded.

        Raises:
            ScoringError: see :meth:`RateLimiter.acquire`.
        """
        if self.rate_limiter is None:
            yield RateSlot()
            return
        input_tokens = estimate_tokens(messages)
        output_tokens = choices * min(self._expected_output, max_tokens)
        cost = self._request_cost(input_tokens, output_tokens)
        slot = RateSlot(self.rate_limiter, await self.rate_limiter.acquire(input_tokens + output_tokens, cost))
        token = _current_slot.set(slot)
        try:
            yield slot
        finally:
            _current_slot.reset(token)
            reply, reservation = slot.reply, slot.reservation
            if reply is not None and reply.output_tokens is not None:
                self._expected_output += OUTPUT_SMOOTHING * (reply.output_tokens / choices - self._expected_output)
            used_tokens, used_usd = self._usage(slot)
            self.rate_limiter.settle(
                reservation,
                requests=0.0 if slot.attempts else -1.0,
                tokens=used_tokens - reservation.tokens,
                usd=used_usd - reservation.usd,
            )

    def _usage(self, slot: RateSlot) -> tuple[float, float]:
        """Return the tokens and the US dollars that the last attempt used."""
        reply = slot.reply
        if not slot.attempts:
            return 0.0, 0.0
        if reply is None or reply.input_tokens is None or reply.output_tokens is None:
            return slot.reservation.tokens, slot.reservation.usd
        cost = self._request_cost(reply.input_tokens, reply.output_tokens) if reply.cost is None else reply.cost
        return reply.input_tokens + reply.output_tokens, cost


def estimate_tokens(messages: Sequence[Message]) -> float:
    """Return the approximate number of tokens in the messages."""
    return sum(len(message.content.encode("utf-8", "replace")) for message in messages) / BYTES_PER_TOKEN


async def count_request(_request: Any) -> None:
    """Count a request for the current slot. The HTTP client calls this hook for each request, including retries."""
    slot = _current_slot.get()
    if slot is not None:
        await slot.record_attempt()
