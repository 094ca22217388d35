"""The rate limiter for judge requests: rate limits and a budget, shared by all processes on a database."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, MutableSequence, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from germane.delivery import Backoff
from germane.errors import ScoringError
from germane.monitor.quota.reservations import (
    REQUESTS,
    TOKENS,
    GrantedReservation,
    PendingRequest,
    ReservationLedger,
    check_judge_price,
    limit_cost,
)
from germane.score import UnscoredReason
from germane.scorers import RequestReservation
from germane.settings import Budget, Settings
from germane.storage import RateLimit, TrackingStore

MAX_EARLY_SECONDS: Final = 0.1
"""Maximum number of seconds by which a request can start early after an idle period, to make up for the database
call."""
BATCH_WINDOW: Final = 0.005
"""Seconds for which requests are collected before one transaction reserves them."""
BATCH_SECONDS: Final = 0.5
"""Number of seconds for which a process reserves requests at a time. If the process is killed, other processes have to
wait this long.
"""
REFILL_LEAD_SECONDS: Final = 0.25
"""Number of seconds before the start of its last reserved request at which a process makes its next reservations."""
TYPICAL_REQUEST_TOKENS: Final = 1_000
MIN_QUEUE_TIMEOUT: Final = 600.0
"""The shortest queue timeout in seconds. It applies under high rate limits."""
MIN_REQUESTS_AWAITED: Final = 20
"""The shortest queue timeout, as a number of typical requests. It applies under low rate limits."""
SETTLE_DELAY: Final = 1.0
"""Seconds after which settlements are written, unless a reservation has already written them."""
DATABASE_BACKOFF: Final = Backoff(initial=0.5, maximum=10.0)
"""The delays between attempts to reach the database."""
_TYPICAL_COST: Final = {REQUESTS: 1.0, TOKENS: float(TYPICAL_REQUEST_TOKENS)}


def rate_limits(settings: Settings) -> list[RateLimit]:
    """Return the configured rate limits; none by default."""
    configured = {REQUESTS: settings.requests_per_minute, TOKENS: settings.tokens_per_minute}
    return [
        RateLimit(name, per_minute, burst=max(1.0, per_minute / 60 * MAX_EARLY_SECONDS))
        for name, per_minute in configured.items()
        if per_minute is not None
    ]


def max_concurrency(settings: Settings) -> int:
    """Return the maximum number of exchanges that a process scores at a time.

    Under a rate limit, it is at most the number that can start within the judge timeout. The others stay in the
    database, where any process can claim them.
    """
    startable = [
        settings.judge_timeout / (_TYPICAL_COST[limit.name] * limit.interval) for limit in rate_limits(settings)
    ]
    return min([settings.concurrency, *(1 + math.ceil(count) for count in startable)])


def max_queue_wait(settings: Settings) -> float:
    """Return the maximum time that an exchange waits for the rate limiter, in seconds; 0 without a rate limit."""
    waits = [MIN_REQUESTS_AWAITED * _TYPICAL_COST[limit.name] * limit.interval for limit in rate_limits(settings)]
    return max([0.0, *(max(MIN_QUEUE_TIMEOUT, wait) for wait in waits)])


def shared_rate_limiter(settings: Settings, store: TrackingStore) -> SharedRateLimiter | None:
    """Return a rate limiter shared by all processes on this database; None if there is no rate limit and no budget.

    Raises:
        SettingsError: The budget is limited in dollars, but the judge's price is unknown.
    """
    check_judge_price(settings)
    limits = rate_limits(settings)
    return SharedRateLimiter(store, limits, budget=settings.budget) if limits or settings.budget else None


def local_rate_limiter(settings: Settings) -> SharedRateLimiter | None:
    """Return a rate limiter for this process alone, which uses an in-memory database; None without a rate limit.

    It continues the schedule of a closed limiter with the same limits, so that many limiters one after the other grant
    as many requests as a single one. Limiters that are open at the same time, for example in the threads of an
    executor, are independent of each other.
    """
    limits = rate_limits(settings)
    if not limits:
        return None
    idle = _idle_stores[tuple(limits)]
    try:
        store = idle.pop()
    except IndexError:
        store = TrackingStore("sqlite://")
    return SharedRateLimiter(store, limits, prepare=store.migrate, close=partial(idle.append, store))


_idle_stores: Final = defaultdict[tuple[RateLimit, ...], list[TrackingStore]](list)
"""The in-memory databases of closed limiters, by their limits."""


@dataclass(slots=True, eq=False)
class _ScheduledStart:
    """A reservation whose request starts when the timer fires."""

    reservation: RequestReservation
    timer: asyncio.TimerHandle | None = None


class SharedRateLimiter:
    """Grants judge requests in order of arrival. Serves one event loop.

    A process reserves up to half a second's worth of waiting requests in one transaction, and makes the next
    reservations shortly before these are used up. Under load, this takes a few transactions per second, regardless of
    the number of requests, and the processes take turns. With a budget but no rate limit, all waiting requests are
    reserved in one transaction. The limits are named ``requests`` and ``tokens``. ``prepare`` is called before the
    first reservation.
    """

    def __init__(
        self,
        store: TrackingStore,
        limits: Sequence[RateLimit],
        *,
        budget: Budget | None = None,
        prepare: Callable[[], None] | None = None,
        close: Callable[[], None] | None = None,
        backoff: Backoff = DATABASE_BACKOFF,
    ) -> None:
        self._ledger = ReservationLedger(store, limits, budget, prepare=prepare, backoff=backoff)
        self._limits = tuple(limits)
        self._close = close
        self._queue: deque[PendingRequest] = deque()
        self._retries: list[PendingRequest] = []
        self._scheduled: set[_ScheduledStart] = set()
        self._tasks: dict[Callable[[], Coroutine[Any, Any, None]], asyncio.Task[None]] = {}
        self._settle_timer: asyncio.TimerHandle | None = None

    @property
    def problem(self) -> str | None:
        """The reason why no request can start, or None if requests can start."""
        return self._ledger.problem

    @property
    def budget_exhausted_until(self) -> datetime | None:
        """The time in UTC from which budget is available again; None if the budget is not exhausted or not set."""
        return None if self._ledger.budget_usage is None else self._ledger.budget_usage.exhausted_until

    async def acquire(self, tokens: float, usd: float = 0.0) -> RequestReservation:
        """Wait until a request with this estimated usage may start, and return its reservation.

        Raises:
            ScoringError: With the reason ``budget`` if the budget does not cover the request, and with
                ``judge_rate_limited`` if scoring stopped while the request was waiting.
        """
        return await self._reserve(self._queue, self._serve_queue, tokens, usd)

    async def reserve_retry(self, reservation: RequestReservation) -> RequestReservation:
        """Reserve the same amount again for a request that is about to be resent, and return the new reservation.

        The request does not wait for the rate limits, because it is already in flight. They count it afterwards.

        Raises:
            ScoringError: See :meth:`acquire`.
        """
        if self._ledger.budget_usage is not None:
            reservation = await self._reserve(self._retries, self._serve_retries, reservation.tokens, reservation.usd)
        self._ledger.settle_resend()
        self._schedule_settlement()
        return reservation

    def settle(
        self, reservation: RequestReservation, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0
    ) -> None:
        """Settle the difference between actual and reserved usage. Negative amounts are refunds."""
        self._ledger.settle(reservation, requests=requests, tokens=tokens, usd=usd)
        self._schedule_settlement()

    async def aclose(self) -> None:
        """Reject all waiting requests, and write the remaining settlements."""
        self.stop_waiting()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        try:
            await self._ledger.aclose()
        finally:
            if self._close is not None:
                self._close()

    def stop_waiting(self) -> None:
        """Reject all waiting and all future requests, and refund their reservations."""
        self._ledger.closed = True
        for task in self._tasks.values():
            task.cancel()
        for request in (*self._queue, *self._retries):
            if not request.future.done():
                request.future.set_exception(_stopped_error())
        for start in list(self._scheduled):
            self._start_next(start)
        if self._settle_timer is not None:
            self._settle_timer.cancel()

    async def _reserve(
        self,
        queue: MutableSequence[PendingRequest],
        serve: Callable[[], Coroutine[Any, Any, None]],
        tokens: float,
        usd: float,
    ) -> RequestReservation:
        if self._ledger.closed:
            raise _stopped_error()
        future: asyncio.Future[RequestReservation] = asyncio.get_running_loop().create_future()
        queue.append(PendingRequest(tokens, usd, time.monotonic(), future))
        self._run_once(serve)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._cancel(future.result())  # the reservation was granted at the same moment
            raise

    def _run_once(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task for this work unless it is already running."""
        task = self._tasks.get(work)
        if task is None or task.done():
            self._tasks[work] = asyncio.get_running_loop().create_task(work())

    def _schedule_settlement(self) -> None:
        """Ensure that settlements are written even if no further request arrives."""
        if self._settle_timer is None and self._ledger.has_unsettled and not self._ledger.closed:
            loop = asyncio.get_running_loop()
            self._settle_timer = loop.call_later(SETTLE_DELAY, self._run_once, self._serve_queue)

    async def _serve_queue(self) -> None:
        """Make reservations for queued requests, batch by batch, until the queue is empty and all usage is settled."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(BATCH_WINDOW)
        while True:
            batch = self._next_batch()
            settlement_due = self._settle_timer is not None and self._settle_timer.when() <= loop.time()
            if not batch and not settlement_due:
                return
            granted = await self._ledger.reserve(batch)
            last_wait: float | None = None
            for request, grant in zip(batch, granted, strict=True):
                if grant is None:
                    self._resolve(request, None)
                    continue
                start, last_wait = _ScheduledStart(grant.reservation), grant.wait
                self._scheduled.add(start)
                start.timer = loop.call_later(max(0.0, grant.wait), self._start_next, start)
            if self._settle_timer is not None:
                self._settle_timer.cancel()
                self._settle_timer = None
            self._schedule_settlement()  # settle usage that was added in the meantime
            refill_in = 0.0 if last_wait is None else last_wait - REFILL_LEAD_SECONDS
            await asyncio.sleep(max(BATCH_WINDOW, refill_in) if batch else 0)

    def _next_batch(self) -> list[PendingRequest]:
        """Return the next requests without a reservation: half a second's worth, but at least one if any waits."""
        waiting = [request for request in self._queue if not request.future.done()]
        if len(waiting) < len(self._queue):
            self._queue.clear()
            self._queue.extend(waiting)
        batch, seconds = [], 0.0
        for request in waiting[len(self._scheduled) :]:
            batch.append(request)
            seconds += max((limit_cost(limit, request.tokens) * limit.interval for limit in self._limits), default=0.0)
            if seconds >= BATCH_SECONDS:
                break
        return batch

    async def _serve_retries(self) -> None:
        await asyncio.sleep(BATCH_WINDOW)
        while batch := self._retries.copy():  # keep them in the list until resolved, for stop_waiting()
            granted = await self._ledger.reserve(batch, rate_limited=False)
            for request, grant in zip(batch, granted, strict=True):
                self._resolve(request, grant)
            del self._retries[: len(batch)]
            await asyncio.sleep(BATCH_WINDOW)

    def _start_next(self, start: _ScheduledStart) -> None:
        """Start the first request in the queue, or refund the reservation if the queue is empty."""
        self._scheduled.discard(start)
        if start.timer is not None:
            start.timer.cancel()
        while self._queue:
            request = self._queue.popleft()
            if not request.future.done():
                request.future.set_result(start.reservation)
                return
        self._cancel(start.reservation)

    def _resolve(self, request: PendingRequest, granted: GrantedReservation | None) -> None:
        if granted is None:
            if not request.future.done() and self._ledger.budget_usage is not None:
                request.future.set_exception(self._ledger.budget_usage.budget_error())
        elif request.future.done():
            self._cancel(granted.reservation)
        else:
            request.future.set_result(granted.reservation)

    def _cancel(self, reservation: RequestReservation) -> None:
        self._ledger.cancel(reservation)
        self._schedule_settlement()


def _stopped_error() -> ScoringError:
    return ScoringError(
        UnscoredReason.JUDGE_RATE_LIMITED, "scoring stopped while the request was waiting for the rate limit"
    )
