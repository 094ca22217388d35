"""What judge requests take, written to the database that all processes share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final

from germane.daemon_pool import Threads
from germane.errors import StorageError
from germane.monitor.loop.backoff import Backoff
from germane.monitor.quota.usage import Spending
from germane.scorers import Place
from germane.settings import Budget
from germane.storage import Expense, Limit, Store

logger = logging.getLogger("germane.monitor")

REQUESTS: Final = "requests"
TOKENS: Final = "tokens"


@dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits for its place."""

    tokens: float
    usd: float
    since: float
    """Of the monotonic clock, seconds."""
    turn: asyncio.Future[Place]

    @property
    def expense(self) -> Expense:
        """What it is going to take of a budget."""
        return Expense(1, self.tokens, self.usd)


@dataclass(frozen=True, slots=True)
class Given:
    """What a request was given."""

    place: Place
    wait: float
    """Seconds until it may start."""


class Booking:
    """Takes places for requests, one transaction at a time, and books along what earlier ones took more or less.

    While the database is away nothing is given, and it is asked again until it is back: nobody knows then what other
    processes do.
    """

    def __init__(
        self,
        store: Store,
        limits: Sequence[Limit],
        budget: Budget | None,
        *,
        prepare: Callable[[], None] | None,
        backoff: Backoff,
    ) -> None:
        """Keep ``limits``, named requests and tokens, and the budget; call ``prepare`` before the first transaction."""
        self.problem: str | None = None
        """Why nothing may start now."""
        self.closed = False
        """Whether nobody waits any more."""
        self.spending = None if budget is None else Spending(budget)
        self._store = store
        self._limits = tuple(limits)
        self._prepare = prepare
        self._backoff = backoff
        self._threads: Threads | None = None
        self._owed = dict.fromkeys((REQUESTS, TOKENS), 0.0)
        self._one = asyncio.Lock()

    @property
    def owes(self) -> bool:
        """Whether there is something to be booked."""
        due = self.spending is not None and bool(self.spending.due())
        return due or any(self._owed[limit.name] for limit in self._limits)

    def owe(self, place: Place, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0) -> None:
        """Book with the next transaction what was taken more than was reserved; below 0 what was taken less."""
        if self.spending is not None and place.day is not None:
            self.spending.owe(place.day, Expense(round(requests), tokens, usd))
        self._owed[REQUESTS] += requests
        self._owed[TOKENS] += tokens

    def owe_sending(self) -> None:
        """Book with the next transaction that a request was sent again, which the budget has paid for already."""
        self._owed[REQUESTS] += 1.0

    def give_back(self, place: Place) -> None:
        """Book with the next transaction that a place was not used."""
        self.owe(place, requests=-1.0, tokens=-place.tokens, usd=-place.usd)

    async def reserve(self, batch: Sequence[Waiting], *, paced: bool = True) -> Sequence[Given | None]:
        """Take places, as often as it needs while the database is away; None for what is not paid for.

        Args:
            batch: The requests, first come first served.
            paced: Whether they take places under the limits as well, not from the budget alone.
        """
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

    async def aclose(self) -> None:
        """Book what is left, once what is under way has ended."""
        try:
            await self._book([])
        except StorageError as error:
            logger.info("the last judge requests were not booked: %s", error)
        finally:
            if self._threads is not None:
                self._threads.close()

    async def _book(self, batch: Sequence[Waiting], *, paced: bool = True) -> Sequence[Given | None]:
        """Take places in one transaction with what is owed, if there is anything to do."""
        async with self._one:
            if not batch and not self.owes:
                return []
            limits = self._limits if paced else ()
            owed = {limit.name: self._owed[limit.name] for limit in limits}
            due = {} if self.spending is None else self.spending.due()
            try:
                given = await self._in_thread(partial(self._write, batch, limits, owed, due))
            except StorageError:
                if self.spending is not None:
                    self.spending.doubt(due)
                raise
            for name, booked in owed.items():
                self._owed[name] -= booked
            if self.spending is not None:
                self.spending.paid(due)
        return self._all_back(given) if self.closed else given

    def _write(
        self, batch: Sequence[Waiting], limits: Sequence[Limit], owed: Mapping[str, float], due: Mapping[date, Expense]
    ) -> list[Given | None]:
        amounts = [[amount(limit, waiting.tokens) for limit in limits] for waiting in batch]
        settled = [owed[limit.name] for limit in limits]
        waited = time.monotonic() - batch[0].since if batch else 0.0
        if self.spending is None:
            waits = self._store.reserve(limits, amounts, settled=settled, waited=waited)
            return [Given(Place(waiting.tokens), wait) for waiting, wait in zip(batch, waits, strict=True)]
        wanted = [waiting.expense for waiting in batch]
        grant = self._store.reserve_budget(
            self.spending.budget, wanted, settled=due, limits_=limits, amounts=amounts, owed=settled, waited=waited
        )
        self.spending.note(wanted, grant)
        return [
            None if wait is None else Given(Place(waiting.tokens, waiting.usd, grant.at.date()), wait)
            for waiting, wait in zip(batch, grant.waits, strict=True)
        ]

    async def _in_thread(self, write: Callable[[], list[Given | None]]) -> list[Given | None]:
        if self._threads is None:
            self._threads = Threads(1, name="germane-pace")
        if self._prepare is not None:
            await self._threads.run(self._prepare)
            self._prepare = None
        return await self._threads.run(write)

    def _all_back(self, given: Sequence[Given | None]) -> Sequence[Given | None]:
        """Give all places back: whoever waited for them has been told that there are none."""
        for each in given:
            if each is not None:
                self.give_back(each.place)
        return [None] * len(given)

    def _note(self, problem: str | None) -> None:
        if problem is not None and self.problem is None:
            logger.warning("judge requests wait, because limits are kept in the database: %s", problem)
        elif problem is None and self.problem is not None:
            logger.warning("judge requests go on: the database is back")
        self.problem = problem


def amount(limit: Limit, tokens: float) -> float:
    """Return what a request of so many tokens takes of a limit."""
    return tokens if limit.name == TOKENS else 1.0
