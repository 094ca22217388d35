"""Turns for judge requests, under limits and a budget that all processes on one database share."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from germane.errors import ScoringError
from germane.monitor.loop.backoff import Backoff
from germane.monitor.quota.reservations import REQUESTS, TOKENS, Booking, Given, Waiting, amount
from germane.monitor.quota.usage import check_price
from germane.score import Reason
from germane.scorers import Place
from germane.settings import Budget, Settings
from germane.storage import Limit, Store

EARLY: Final = 0.1
"""Seconds for which a request may come early after a rest, so that what a database call takes is not lost."""
GATHER: Final = 0.005
"""Seconds in which requests are gathered, to be given their places in one transaction."""
SHARE: Final = 0.5
"""Seconds' worth of places that a process takes at a time: what a killed one takes along, and others wait for."""
LEAD: Final = 0.25
"""Seconds before its last place at which a process takes the next ones."""
TOKENS_EACH: Final = 1_000
"""Tokens of a usual request."""
LONG: Final = 600.0
"""Seconds that an exchange at work may always wait for its turns."""
MANY: Final = 20
"""Requests for whose turns it may wait in any case."""
SETTLE: Final = 1.0
"""Seconds after which what was settled is booked at the latest; before, it goes along with the next places."""
PATIENCE: Final = Backoff(first=0.5, limit=10.0)
"""Between tries of a database that is away."""


def limits_of(settings: Settings) -> list[Limit]:
    """Return what the settings limit; nothing by default."""
    wanted = {REQUESTS: settings.requests_per_minute, TOKENS: settings.tokens_per_minute}
    return [
        Limit(name, per_minute, burst=max(1.0, per_minute / 60 * EARLY))
        for name, per_minute in wanted.items()
        if per_minute is not None
    ]


def places_for(settings: Settings) -> int:
    """Return how many requests may be at work at a time: no more than get a turn before the first ones have ended.

    What cannot start soon stays in the database, for whichever process is first to have a turn for it.
    """
    worth = {REQUESTS: 1.0, TOKENS: TOKENS_EACH}
    soon = [settings.judge_timeout / (worth[limit.name] * limit.interval) for limit in limits_of(settings)]
    return min([settings.concurrency, *(1 + math.ceil(count) for count in soon)])


def longest_wait(settings: Settings) -> float:
    """Return the seconds that an exchange at work may wait for turns; 0 where nothing is limited."""
    worth = {REQUESTS: 1.0, TOKENS: TOKENS_EACH}
    return max([0.0, *(max(LONG, MANY * worth[limit.name] * limit.interval) for limit in limits_of(settings))])


def shared_pace(settings: Settings, store: Store) -> SharedPace | None:
    """Return the pace that all processes on this database keep together, or None where nothing is limited.

    Raises:
        SettingsError: the budget is one of money, and nobody knows what the judge costs.
    """
    check_price(settings)
    limits = limits_of(settings)
    return SharedPace(store, limits, budget=settings.budget) if limits or settings.budget else None


def own_pace(settings: Settings) -> SharedPace | None:
    """Return a pace that limits this process alone, by the same arithmetic on a database in memory."""
    limits = limits_of(settings)
    if not limits:
        return None
    store = Store("sqlite://")
    return SharedPace(store, limits, prepare=store.migrate, close=store.close)


@dataclass(slots=True, eq=False)
class _Promise:
    place: Place
    timer: asyncio.TimerHandle | None = None


class SharedPace:
    """Gives requests their turns, first come first served; serves one event loop.

    A process takes places for what waits in it, half a second's worth at a time in one transaction, and takes the next
    ones shortly before these are used up: under load that is some transactions a second, however many requests there
    are, and processes take turns. Where only a budget is set, all that waits takes its places at once.
    """

    def __init__(
        self,
        store: Store,
        limits: Sequence[Limit],
        *,
        budget: Budget | None = None,
        prepare: Callable[[], None] | None = None,
        close: Callable[[], None] | None = None,
        backoff: Backoff = PATIENCE,
    ) -> None:
        """Keep ``limits``, named requests and tokens; call ``prepare`` before the first place, ``close`` at the end."""
        self._booking = Booking(store, limits, budget, prepare=prepare, backoff=backoff)
        self._limits = tuple(limits)
        self._close = close
        self._waiting: deque[Waiting] = deque()
        self._again: list[Waiting] = []
        self._promises: set[_Promise] = set()
        self._serving: dict[Callable[[], Coroutine[Any, Any, None]], asyncio.Task[None]] = {}
        self._reminder: asyncio.TimerHandle | None = None

    @property
    def problem(self) -> str | None:
        """Why nothing may start now."""
        return self._booking.problem

    @property
    def spent_until(self) -> datetime | None:
        """Until when a request was not paid for, in UTC; None while there is room, or without a budget."""
        return None if self._booking.spending is None else self._booking.spending.until

    async def admit(self, tokens: float, usd: float = 0.0) -> Place:
        """Wait for the turn of a request that will take about so much; return what was reserved for it.

        Raises:
            ScoringError: ``budget``, nothing is left; ``judge_rate_limited``, nobody may wait any more.
        """
        waiting = self._new(tokens, usd)
        self._waiting.append(waiting)
        self._serve(self._give_places)
        return await self._turn_of(waiting)

    async def repeat(self, place: Place) -> Place:
        """Reserve as much once more, for a request that is about to be sent again.

        It waits for no turn, as it holds one of the few places in flight: the limits book it afterwards.

        Raises:
            ScoringError: as :meth:`admit`.
        """
        if self._booking.spending is not None:
            waiting = self._new(place.tokens, place.usd)
            self._again.append(waiting)
            self._serve(self._pay_again)
            place = await self._turn_of(waiting)
        self._booking.owe_sending()
        self._remind()
        return place

    def settle(self, place: Place, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0) -> None:
        """Book what was taken more than was reserved; below 0 what was taken less."""
        self._booking.owe(place, requests=requests, tokens=tokens, usd=usd)
        self._remind()

    async def aclose(self) -> None:
        """Give up, and book what is left."""
        self.give_up()
        await asyncio.gather(*self._serving.values(), return_exceptions=True)
        try:
            await self._booking.aclose()
        finally:
            if self._close is not None:
                self._close()

    def give_up(self) -> None:
        """Let nobody wait any more, now or later; places that are promised are given back."""
        self._booking.closed = True
        for serving in self._serving.values():
            serving.cancel()
        for waiting in (*self._waiting, *self._again):
            if not waiting.turn.done():
                waiting.turn.set_exception(_no_turn())
        for promise in list(self._promises):
            self._start(promise)
        if self._reminder is not None:
            self._reminder.cancel()

    def _new(self, tokens: float, usd: float) -> Waiting:
        if self._booking.closed:
            raise _no_turn()
        return Waiting(tokens, usd, time.monotonic(), asyncio.get_running_loop().create_future())

    async def _turn_of(self, waiting: Waiting) -> Place:
        try:
            return await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled() and waiting.turn.exception() is None:
                self._give_back(waiting.turn.result())  # it came in the same moment
            raise

    def _serve(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        serving = self._serving.get(work)
        if serving is None or serving.done():
            self._serving[work] = asyncio.get_running_loop().create_task(work())

    def _remind(self) -> None:
        """Have what is owed booked soon, also when no further request comes."""
        if self._reminder is None and self._booking.owes and not self._booking.closed:
            self._reminder = asyncio.get_running_loop().call_later(SETTLE, self._serve, self._give_places)

    async def _give_places(self) -> None:
        await asyncio.sleep(GATHER)
        while (batch := self._next()) or self._is_due():
            waits = self._promise(batch, await self._booking.reserve(batch))
            self._forget_reminder()
            await asyncio.sleep(max([GATHER, *(wait - LEAD for wait in waits[-1:])]) if batch else 0)

    async def _pay_again(self) -> None:
        await asyncio.sleep(GATHER)
        while batch := self._again.copy():  # which stay there until they are answered: give_up() looks for them
            for waiting, given in zip(batch, await self._booking.reserve(batch, paced=False), strict=True):
                self._answer(waiting, given)
            self._again = self._again[len(batch) :]
            await asyncio.sleep(GATHER)

    def _next(self) -> list[Waiting]:
        """Return those without a place that take theirs now: one at least, if there is any."""
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.turn.done())
        without = list(self._waiting)[len(self._promises) :]
        batch, worth = [], 0.0
        for waiting in without:
            batch.append(waiting)
            worth += max((amount(limit, waiting.tokens) * limit.interval for limit in self._limits), default=0.0)
            if worth >= SHARE:
                break
        return batch

    def _is_due(self) -> bool:
        loop = asyncio.get_running_loop()
        return self._reminder is not None and self._reminder.when() <= loop.time()

    def _forget_reminder(self) -> None:
        if self._reminder is not None:
            self._reminder.cancel()
            self._reminder = None
        self._remind()  # of what came up meanwhile

    def _promise(self, batch: Sequence[Waiting], given: Sequence[Given | None]) -> list[float]:
        """Let the requests start when their time has come, and refuse those that are not paid for; return the waits."""
        loop = asyncio.get_running_loop()
        for waiting, each in zip(batch, given, strict=True):
            if each is None:
                self._answer(waiting, None)
            else:
                promise = _Promise(each.place)
                self._promises.add(promise)
                promise.timer = loop.call_later(max(0.0, each.wait), self._start, promise)
        return [each.wait for each in given if each is not None]

    def _start(self, promise: _Promise) -> None:
        """Let the first in the line start; a place that nobody wants any more is given back."""
        self._promises.discard(promise)
        if promise.timer is not None:
            promise.timer.cancel()
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                waiting.turn.set_result(promise.place)
                return
        self._give_back(promise.place)

    def _answer(self, waiting: Waiting, given: Given | None) -> None:
        """Tell one that waits what it has got."""
        if given is None:
            if not waiting.turn.done() and self._booking.spending is not None:
                waiting.turn.set_exception(self._booking.spending.refusal())
        elif waiting.turn.done():
            self._give_back(given.place)
        else:
            waiting.turn.set_result(given.place)

    def _give_back(self, place: Place) -> None:
        self._booking.give_back(place)
        self._remind()


def _no_turn() -> ScoringError:
    return ScoringError(Reason.JUDGE_RATE_LIMITED, "it had no turn under the limit yet when scoring ended")
