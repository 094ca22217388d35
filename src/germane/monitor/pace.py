"""Turns for judge requests, under limits and a budget that all processes on one database share."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, Final

from germane.errors import ScoringError, StorageError
from germane.monitor.backoff import Backoff
from germane.monitor.spending import Spending, check_price
from germane.score import Reason
from germane.scorers import Place
from germane.settings import Budget, Settings
from germane.storage import Expense, Limit, Store
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
class _Waiting:
    tokens: float
    usd: float
    since: float
    turn: asyncio.Future[Place]

    @property
    def expense(self) -> Expense:
        return Expense(1, self.tokens, self.usd)


@dataclass(slots=True, eq=False)
class _Promise:
    place: Place
    timer: asyncio.TimerHandle | None = None


class SharedPace:
    """Gives requests their turns, first come first served; serves one event loop.

    A process takes places for what waits in it, half a second's worth at a time in one transaction, and takes the next
    ones shortly before these are used up: under load that is some transactions a second, however many requests there
    are, and processes take turns. Where only a budget is set, all that waits takes its places at once. While the
    database is away nothing starts, and it is asked again until it is back: nobody knows then what the others do.
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
        self.problem: str | None = None
        """Why nothing may start now."""
        self.spending = None if budget is None else Spending(budget)
        self._store = store
        self._limits = tuple(limits)
        self._prepare = prepare
        self._close = close
        self._backoff = backoff
        self._threads: Threads | None = None
        self._waiting: deque[_Waiting] = deque()
        self._again: list[_Waiting] = []
        self._promises: set[_Promise] = set()
        self._owed = dict.fromkeys((REQUESTS, TOKENS), 0.0)
        self._serving: dict[Callable[[], Coroutine[Any, Any, None]], asyncio.Task[None]] = {}
        self._booking: asyncio.TimerHandle | None = None
        self._one = asyncio.Lock()
        self._closed = False

    async def admit(self, tokens: float, usd: float = 0.0) -> Place:
        """Wait for the turn of a request that will take about so much; return what was reserved for it.

        Raises:
            ScoringError: ``budget``, nothing is left; ``judge_rate_limited``, nobody may wait any more.
        """
        waiting = self._new(tokens, usd)
        self._waiting.append(waiting)
        self._serve(self._give_places)
        return await waiting.turn

    async def repeat(self, place: Place) -> Place:
        """Reserve as much once more, for a request that is about to be sent again.

        It waits for no turn, as it holds one of the few places in flight: the limits book it afterwards.

        Raises:
            ScoringError: as :meth:`admit`.
        """
        if self.spending is not None:
            waiting = self._new(place.tokens, place.usd)
            self._again.append(waiting)
            self._serve(self._pay_again)
            place = await waiting.turn
        self._owe(requests=1.0)
        return place

    def settle(self, place: Place, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0) -> None:
        """Book what was taken more than was reserved; below 0 what was taken less."""
        if self.spending is not None and place.day is not None:
            self.spending.owe(place.day, Expense(round(requests), tokens, usd))
        self._owe(requests=requests, tokens=tokens)

    async def aclose(self) -> None:
        """Give up, and book what is left."""
        self.give_up()
        await asyncio.gather(*self._serving.values(), return_exceptions=True)
        try:
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
        for serving in self._serving.values():
            serving.cancel()
        for waiting in (*self._waiting, *self._again):
            if not waiting.turn.done():
                waiting.turn.set_exception(_no_turn())
        for promise in list(self._promises):
            self._start(promise)
        if self._booking is not None:
            self._booking.cancel()

    def _new(self, tokens: float, usd: float) -> _Waiting:
        if self._closed:
            raise _no_turn()
        return _Waiting(tokens, usd, time.monotonic(), asyncio.get_running_loop().create_future())

    def _owe(self, *, requests: float = 0.0, tokens: float = 0.0) -> None:
        self._owed[REQUESTS] += requests
        self._owed[TOKENS] += tokens
        if self._booking is None and self._owes() and not self._closed:
            self._booking = asyncio.get_running_loop().call_later(SETTLE, self._serve, self._give_places)

    def _owes(self) -> bool:
        due = self.spending is not None and bool(self.spending.due())
        return due or any(self._owed[limit.name] for limit in self._limits)

    def _serve(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        serving = self._serving.get(work)
        if serving is None or serving.done():
            self._serving[work] = asyncio.get_running_loop().create_task(work())

    async def _give_places(self) -> None:
        await asyncio.sleep(GATHER)
        while (batch := self._next()) or self._is_due():
            waits = self._promise(batch, await self._reserve(batch))
            await asyncio.sleep(max([GATHER, *(wait - LEAD for wait in waits[-1:])]) if batch else 0)

    async def _pay_again(self) -> None:
        await asyncio.sleep(GATHER)
        while batch := self._again:
            self._again = []
            for waiting, place in zip(batch, await self._reserve(batch, paced=False), strict=True):
                self._answer(waiting, place and place[0])
            await asyncio.sleep(GATHER)

    def _next(self) -> list[_Waiting]:
        """Return those without a place that take theirs now: one at least, if there is any."""
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.turn.done())
        without = list(self._waiting)[len(self._promises) :]
        batch, worth = [], 0.0
        for waiting in without:
            batch.append(waiting)
            worth += max((_amount(limit, waiting.tokens) * limit.interval for limit in self._limits), default=0.0)
            if worth >= SHARE:
                break
        return batch

    def _is_due(self) -> bool:
        loop = asyncio.get_running_loop()
        return self._booking is not None and self._booking.when() <= loop.time()

    async def _reserve(self, batch: Sequence[_Waiting], *, paced: bool = True) -> Sequence[_Given]:
        """Take places; as often as it needs while the database is away."""
        tries = 0
        while True:
            try:
                # Not to be cancelled midway: what is booked is used, or given back.
                given = await asyncio.shield(asyncio.create_task(self._book(batch, paced=paced)))
            except StorageError as error:
                tries += 1
                self._note(str(error))
                await asyncio.sleep(self._backoff.wait(tries).total_seconds())
            else:
                self._note(None)
                return given

    async def _book(self, batch: Sequence[_Waiting], *, paced: bool = True) -> Sequence[_Given]:
        """Take places in one transaction with what is owed, if there is anything to do."""
        async with self._one:
            if not batch and not self._owes():
                return []
            owed, due = dict(self._owed), {} if self.spending is None else self.spending.due()
            given = await self._in_thread(partial(self._write, batch, self._limits if paced else (), owed, due))
            if paced:
                self._owed = {name: self._owed[name] - booked for name, booked in owed.items()}
            if self.spending is not None:
                self.spending.paid(due)
            if self._booking is not None and paced:
                self._booking.cancel()
                self._booking = None
        return self._given_back(given) if self._closed else given

    def _write(
        self, batch: Sequence[_Waiting], limits: Sequence[Limit], owed: Mapping[str, float], due: Mapping[date, Expense]
    ) -> list[_Given]:
        """Write what is to be booked; return place and wait of each request, None for one that is not paid for."""
        amounts = [[_amount(limit, waiting.tokens) for limit in limits] for waiting in batch]
        settled = [owed[limit.name] for limit in limits]
        waited = time.monotonic() - batch[0].since if batch else 0.0
        if self.spending is None:
            waits = self._store.reserve(limits, amounts, settled=settled, waited=waited)
            return [(Place(waiting.tokens), wait) for waiting, wait in zip(batch, waits, strict=True)]
        wanted = [waiting.expense for waiting in batch]
        grant = self._store.reserve_budget(
            self.spending.budget, wanted, settled=due, limits_=limits, amounts=amounts, owed=settled, waited=waited
        )
        self.spending.note(wanted, grant)
        return [
            None if wait is None else (Place(waiting.tokens, waiting.usd, grant.at.date()), wait)
            for waiting, wait in zip(batch, grant.waits, strict=True)
        ]

    async def _in_thread(self, write: Callable[[], list[_Given]]) -> list[_Given]:
        if self._threads is None:
            self._threads = Threads(1, name="germane-pace")
        if self._prepare is not None:
            await self._threads.run(self._prepare)
            self._prepare = None
        return await self._threads.run(write)

    def _promise(self, batch: Sequence[_Waiting], given: Sequence[_Given]) -> list[float]:
        """Let the requests start when their time has come, and refuse those that are not paid for; return the waits."""
        loop = asyncio.get_running_loop()
        for waiting, place in zip(batch, given, strict=True):
            if place is None:
                self._answer(waiting, None)
            else:
                promise = _Promise(place[0])
                self._promises.add(promise)
                promise.timer = loop.call_later(max(0.0, place[1]), self._start, promise)
        return [place[1] for place in given if place is not None]

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

    def _answer(self, waiting: _Waiting, place: Place | None) -> None:
        """Tell one that waits what it has got."""
        if place is None:
            if not waiting.turn.done() and self.spending is not None:
                waiting.turn.set_exception(self.spending.refusal())
        elif waiting.turn.done():
            self._give_back(place)
        else:
            waiting.turn.set_result(place)

    def _give_back(self, place: Place) -> None:
        self.settle(place, requests=-1.0, tokens=-place.tokens, usd=-place.usd)

    def _given_back(self, given: Sequence[_Given]) -> Sequence[_Given]:
        """Give all places back: whoever waited for them has been told that there are none."""
        for place in given:
            if place is not None:
                self._give_back(place[0])
        return [None] * len(given)

    def _note(self, problem: str | None) -> None:
        if problem is not None and self.problem is None:
            logger.warning("judge requests wait, because limits are kept in the database: %s", problem)
        elif problem is None and self.problem is not None:
            logger.warning("judge requests go on: the database is back")
        self.problem = problem


_Given = tuple[Place, float] | None
"""A place, and the seconds until it may be used."""


def _no_turn() -> ScoringError:
    return ScoringError(Reason.JUDGE_RATE_LIMITED, "it had no turn under the limit yet when scoring ended")


def _amount(limit: Limit, tokens: float) -> float:
    return tokens if limit.name == TOKENS else 1.0
