"""Turns for judge requests, under limits that all processes on one database share."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from germane.errors import ScoringError, StorageError
from germane.monitor.backoff import Backoff
from germane.score import Reason
from germane.settings import Settings
from germane.storage import Limit, Store
from germane.threads import Threads

logger = logging.getLogger("germane.monitor")

REQUESTS: Final = "requests"
TOKENS: Final = "tokens"
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
    """Return the pace that all processes on this database keep together, or None where nothing is limited."""
    limits = limits_of(settings)
    return SharedPace(store, limits) if limits else None


def own_pace(settings: Settings) -> SharedPace | None:
    """Return a pace that limits this process alone, by the same arithmetic on a database in memory."""
    limits = limits_of(settings)
    if not limits:
        return None
    store = Store("sqlite://")
    return SharedPace(store, limits, prepare=store.migrate, close=store.close)


@dataclass(slots=True, eq=False)
class _Waiting:
    tokens: float
    since: float
    turn: asyncio.Future[float]


@dataclass(slots=True, eq=False)
class _Place:
    tokens: float
    timer: asyncio.TimerHandle | None = None


class SharedPace:
    """Gives requests their turns, first come first served; serves one event loop.

    A process takes places for what waits in it, half a second's worth at a time in one transaction, and takes the next
    ones shortly before these are used up: under load that is some transactions a second, however many requests there
    are, and processes take turns. While the database is away nothing starts, and it is asked again until it is back:
    nobody knows then what the others do.
    """

    def __init__(
        self,
        store: Store,
        limits: Sequence[Limit],
        *,
        prepare: Callable[[], None] | None = None,
        close: Callable[[], None] | None = None,
        backoff: Backoff = PATIENCE,
    ) -> None:
        """Keep ``limits``, named requests and tokens; call ``prepare`` before the first place, ``close`` at the end."""
        self.problem: str | None = None
        """Why nothing may start now."""
        self._store = store
        self._limits = tuple(limits)
        self._prepare = prepare
        self._close = close
        self._backoff = backoff
        self._threads: Threads | None = None
        self._waiting: deque[_Waiting] = deque()
        self._places: set[_Place] = set()
        self._owed = dict.fromkeys((REQUESTS, TOKENS), 0.0)
        self._serving: asyncio.Task[None] | None = None
        self._booking: asyncio.TimerHandle | None = None
        self._closed = False

    async def admit(self, tokens: float) -> float:
        """Wait for the turn of a request of about so many tokens; return how many were reserved for it.

        Raises:
            ScoringError: ``judge_rate_limited``, nobody may wait any more.
        """
        if self._closed:
            raise _no_turn()
        waiting = _Waiting(tokens, time.monotonic(), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._serve()
        return await waiting.turn

    def settle(self, *, requests: float = 0.0, tokens: float = 0.0) -> None:
        """Book what was taken more than was reserved; below 0 what was taken less."""
        self._owed[REQUESTS] += requests
        self._owed[TOKENS] += tokens
        if self._booking is None and self._owes() and not self._closed:
            self._booking = asyncio.get_running_loop().call_later(SETTLE, self._serve)

    async def aclose(self) -> None:
        """Give up, and book what is left."""
        self.give_up()
        if self._serving is not None:
            await asyncio.gather(self._serving, return_exceptions=True)
        try:
            if self._owes():
                await self._book([])
        except StorageError as error:
            logger.info("the last judge requests were not booked: %s", error)
        finally:
            if self._threads is not None:
                self._threads.close()
            if self._close is not None:
                self._close()

    def give_up(self) -> None:
        """Let nobody wait any more, now or later; places that are promised are given back."""
        self._closed = True
        if self._serving is not None:
            self._serving.cancel()
        for waiting in self._waiting:
            if not waiting.turn.done():
                waiting.turn.set_exception(_no_turn())
        for place in list(self._places):
            self._start(place)
        if self._booking is not None:
            self._booking.cancel()

    def _owes(self) -> bool:
        return any(self._owed[limit.name] for limit in self._limits)

    def _serve(self) -> None:
        if self._serving is None or self._serving.done():
            self._serving = asyncio.get_running_loop().create_task(self._give_places())

    async def _give_places(self) -> None:
        await asyncio.sleep(GATHER)
        while (batch := self._next()) or self._is_due():
            waits = await self._reserve(batch)
            self._promise(batch, waits)
            await asyncio.sleep(max(GATHER, waits[-1] - LEAD) if waits else 0)

    def _next(self) -> list[_Waiting]:
        """Return those without a place that take theirs now: one at least, if there is any."""
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.turn.done())
        without = list(self._waiting)[len(self._places) :]
        batch, worth = [], 0.0
        for waiting in without:
            batch.append(waiting)
            worth += max(_amount(limit, waiting.tokens) * limit.interval for limit in self._limits)
            if worth >= SHARE:
                break
        return batch

    def _is_due(self) -> bool:
        loop = asyncio.get_running_loop()
        return self._booking is not None and self._booking.when() <= loop.time()

    async def _reserve(self, batch: Sequence[_Waiting]) -> list[float]:
        """Take places; as often as it needs while the database is away."""
        tries = 0
        while True:
            try:
                waits = await self._book(batch)
            except StorageError as error:
                tries += 1
                self._note(str(error))
                await asyncio.sleep(self._backoff.wait(tries).total_seconds())
            else:
                self._note(None)
                return waits

    async def _book(self, batch: Sequence[_Waiting]) -> list[float]:
        owed = dict(self._owed)
        reserve = partial(
            self._store.reserve,
            self._limits,
            [[_amount(limit, waiting.tokens) for limit in self._limits] for waiting in batch],
            settled=[owed[limit.name] for limit in self._limits],
            waited=time.monotonic() - batch[0].since if batch else 0.0,
        )
        waits = await self._in_thread(reserve)
        self._owed = {name: self._owed[name] - booked for name, booked in owed.items()}
        if self._booking is not None:
            self._booking.cancel()
            self._booking = None
        return waits

    async def _in_thread(self, reserve: Callable[[], list[float]]) -> list[float]:
        if self._threads is None:
            self._threads = Threads(1, name="germane-pace")
        if self._prepare is not None:
            await self._threads.run(self._prepare)
            self._prepare = None
        return await self._threads.run(reserve)

    def _promise(self, batch: Sequence[_Waiting], waits: Sequence[float]) -> None:
        for waiting, wait in zip(batch, waits, strict=True):
            place = _Place(waiting.tokens)
            self._places.add(place)
            place.timer = asyncio.get_running_loop().call_later(max(0.0, wait), self._start, place)

    def _start(self, place: _Place) -> None:
        """Let the first in the line start; a place that nobody wants any more is given back."""
        self._places.discard(place)
        if place.timer is not None:
            place.timer.cancel()
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                waiting.turn.set_result(place.tokens)
                return
        self.settle(requests=-1, tokens=-place.tokens)

    def _note(self, problem: str | None) -> None:
        if problem is not None and self.problem is None:
            logger.warning("judge requests wait, because limits are kept in the database: %s", problem)
        elif problem is None and self.problem is not None:
            logger.warning("judge requests go on: the database is back")
        self.problem = problem


def _no_turn() -> ScoringError:
    return ScoringError(Reason.JUDGE_RATE_LIMITED, "it had no turn under the limit yet when scoring ended")


def _amount(limit: Limit, tokens: float) -> float:
    return tokens if limit.name == TOKENS else 1.0
