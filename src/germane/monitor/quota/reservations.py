"""Reservations for judge requests. The rate limits and the budget are shared by all processes on a database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff
from germane.errors import ScoringError, SettingsError, StorageError
from germane.score import UnscoredReason
from germane.scorers import PriceList, RequestReservation
from germane.settings import LOCAL, Budget, Settings
from germane.storage import BudgetReservation, RateLimit, RequestUsage, TrackingStore

logger = logging.getLogger("germane.monitor")
REQUESTS: Final = "requests"
TOKENS: Final = "tokens"


def check_judge_price(settings: Settings) -> None:
    """Check that the judge has a price if the budget is limited in dollars.

    Raises:
        SettingsError: The judge's price is unknown.
    """
    budget, judge = settings.budget, settings.judge
    if budget is None or judge == LOCAL or not settings.has_server:
        return
    limited = [name for name in ("usd_per_hour", "usd_per_day") if getattr(budget, name) is not None]
    if limited and PriceList(settings.prices).find_price(judge) is None:
        raise SettingsError(
            f"setting budget.{limited[0]}: the price of the judge {judge!r} is unknown; add it to the prices setting "
            f'as [prices."{judge}"] with input and output in US dollars per million tokens'
        )


class BudgetUsage:
    """Usage that has not been settled against the budget yet, by day, and whether the budget is exhausted.

    Logs once when the budget is exhausted and once when it is available again.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.exhausted_until: datetime | None = None
        """The time (UTC) at which the budget will cover the last rejected request; None if the budget is not exhausted.
        """
        self._unsettled: dict[date, RequestUsage] = {}
        self._exhausted_in: datetime | None = None
        """The last hour in which a request was rejected."""

    def add_unsettled(self, day: date, usage: RequestUsage) -> None:
        """Add the difference between a request's actual and reserved usage, which is negative if less was used."""
        self._unsettled[day] = self._unsettled.get(day, RequestUsage()) + usage

    def unsettled(self) -> Mapping[date, RequestUsage]:
        """Return the usage to settle, by day."""
        return {day: usage for day, usage in self._unsettled.items() if usage}

    def mark_settled(self, settled: Mapping[date, RequestUsage]) -> None:
        """Subtract settled usage; usage added in the meantime remains."""
        remaining = {day: self._unsettled[day] - usage for day, usage in settled.items()}
        self._unsettled = {day: usage for day, usage in (self._unsettled | remaining).items() if usage}

    def discard_refunds(self, attempted: Mapping[date, RequestUsage]) -> None:
        """Drop the refunds of a failed settlement, because they may have been committed before the connection was lost.

        Settling a refund twice would allow spending more than the budget.
        """
        for day, usage in attempted.items():
            self._unsettled[day] = self._unsettled[day] - usage.refund

    def record_grant(self, requested: Sequence[RequestUsage], grant: BudgetReservation) -> None:
        """Update ``exhausted_until`` from the grant that the database returned."""
        rejected = [usage for usage, granted in zip(requested, grant.granted, strict=True) if not granted]
        hour = grant.at.replace(minute=0, second=0, microsecond=0)
        if rejected:
            self.exhausted_until = grant.next_affordable_at(self.budget, rejected[0])
            if self._exhausted_in is None:
                logger.warning(
                    "%s; scores that the budget does not cover are being skipped",
                    exhausted_message(self.exhausted_until),
                )
            self._exhausted_in = hour
        elif requested and self._exhausted_in not in {
            None,
            hour,
        }:  # within the same hour, only a refund can free up budget
            self.exhausted_until = self._exhausted_in = None
            logger.warning("budget is available again: judge requests have resumed")

    def budget_error(self) -> ScoringError:
        """Return the error for a request that the budget does not cover."""
        until = self.exhausted_until
        return ScoringError(
            UnscoredReason.BUDGET, "the budget is exhausted" if until is None else exhausted_message(until)
        )


def exhausted_message(until: datetime) -> str:
    """Describe an exhausted budget, for example ``the budget is exhausted until 2026-03-02 00:00 UTC``."""
    return f"the budget is exhausted until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A judge request that is waiting for a reservation."""

    tokens: float
    usd: float
    since: float
    """The time at which the request started waiting, in seconds on the monotonic clock."""
    future: asyncio.Future[RequestReservation]

    @property
    def usage(self) -> RequestUsage:
        """The estimated budget usage."""
        return RequestUsage(1, self.tokens, self.usd)


@dataclass(frozen=True, slots=True)
class GrantedReservation:
    """A reservation, and the delay before its request can start."""

    reservation: RequestReservation
    wait: float
    """Seconds until the request can start."""


class ReservationLedger:
    """Makes reservations, one transaction at a time, and settles earlier reservations in the same transaction.

    While the database is unreachable, nothing is granted, because the usage of other processes is unknown. The ledger
    retries until the database is reachable again. The limits are named ``requests`` and ``tokens``. ``prepare`` is
    called before the first transaction.
    """

    def __init__(
        self,
        store: TrackingStore,
        limits: Sequence[RateLimit],
        budget: Budget | None,
        *,
        prepare: Callable[[], None] | None,
        backoff: Backoff,
    ) -> None:
        self.problem: str | None = None
        """Why no reservation can be made; None if reservations can be made."""
        self.closed = False
        """Whether all waiting requests have been rejected."""
        self.budget_usage = None if budget is None else BudgetUsage(budget)
        self._store = store
        self._limits = tuple(limits)
        self._prepare = prepare
        self._backoff = backoff
        self._thread_pool: DaemonThreadPool | None = None
        self._unsettled = dict.fromkeys((REQUESTS, TOKENS), 0.0)
        """The difference between actual and reserved usage, by rate limit."""
        self._transaction = asyncio.Lock()

    @property
    def has_unsettled(self) -> bool:
        """Whether there is usage to settle."""
        of_budget = self.budget_usage is not None and bool(self.budget_usage.unsettled())
        return of_budget or any(self._unsettled[limit.name] for limit in self._limits)

    def settle(
        self, reservation: RequestReservation, *, requests: float = 0.0, tokens: float = 0.0, usd: float = 0.0
    ) -> None:
        """Settle the difference between actual and reserved usage in the next transaction. Refunds are negative."""
        if self.budget_usage is not None and reservation.day is not None:
            self.budget_usage.add_unsettled(reservation.day, RequestUsage(round(requests), tokens, usd))
        self._unsettled[REQUESTS] += requests
        self._unsettled[TOKENS] += tokens

    def settle_resend(self) -> None:
        """Count a resent request towards the rate limits in the next transaction. The budget already covers it."""
        self._unsettled[REQUESTS] += 1.0

    def cancel(self, reservation: RequestReservation) -> None:
        """Refund an unused reservation in the next transaction."""
        self.settle(reservation, requests=-1.0, tokens=-reservation.tokens, usd=-reservation.usd)

    async def reserve(
        self, batch: Sequence[PendingRequest], *, rate_limited: bool = True
    ) -> Sequence[GrantedReservation | None]:
        """Reserve a batch in order of arrival, retrying while the database is unreachable.

        Args:
            batch: The requests to reserve.
            rate_limited: Whether the requests count towards the rate limits in addition to the budget.

        Returns:
            The reservation for each request, or None for a request that the budget does not cover.
        """
        attempts = 0
        while True:
            # Shielded against cancellation: committed reservations must be used or refunded.
            commit = asyncio.create_task(self._commit(batch, rate_limited=rate_limited))
            try:
                granted = await asyncio.shield(commit)
            except asyncio.CancelledError:
                if commit.done() and not commit.cancelled() and commit.exception() is None:
                    self._refund(commit.result())  # granted at the same moment
                raise
            except StorageError as error:
                attempts += 1
                if self.problem is None:
                    logger.warning(
                        "judge requests are paused: the rate limits in the database are unavailable: %s", error
                    )
                self.problem = str(error)
                await asyncio.sleep(self._backoff.delay(attempts).total_seconds())
            else:
                if self.problem is not None:
                    logger.warning("judge requests have resumed: the database is reachable again")
                self.problem = None
                return granted

    async def aclose(self) -> None:
        """Wait for the transaction in progress, and then write the remaining settlements."""
        try:
            await self._commit([])
        except StorageError as error:
            logger.info("could not settle the usage of the last judge requests: %s", error)
        finally:
            if self._thread_pool is not None:
                self._thread_pool.close()

    async def _commit(
        self, batch: Sequence[PendingRequest], *, rate_limited: bool = True
    ) -> Sequence[GrantedReservation | None]:
        """Reserve a batch and settle earlier reservations in one transaction, if there is anything to do."""
        async with self._transaction:
            if not batch and not self.has_unsettled:
                return []
            limits = self._limits if rate_limited else ()
            of_limits = {limit.name: self._unsettled[limit.name] for limit in limits}
            of_budget = {} if self.budget_usage is None else self.budget_usage.unsettled()
            if self._thread_pool is None:
                self._thread_pool = DaemonThreadPool(1, name="germane-rate-limiter")
            try:
                if self._prepare is not None:
                    await self._thread_pool.run(self._prepare)
                    self._prepare = None
                granted = await self._thread_pool.run(partial(self._write, batch, limits, of_limits, of_budget))
            except StorageError:
                if self.budget_usage is not None:
                    self.budget_usage.discard_refunds(of_budget)
                raise
            # More usage may have been added in the meantime, so subtract only what was written.
            for name, settled in of_limits.items():
                self._unsettled[name] -= settled
            if self.budget_usage is not None:
                self.budget_usage.mark_settled(of_budget)
        if not self.closed:
            return granted
        self._refund(granted)  # the requests have already been rejected
        return [None] * len(granted)

    def _refund(self, granted: Sequence[GrantedReservation | None]) -> None:
        for grant in filter(None, granted):
            self.cancel(grant.reservation)

    def _write(
        self,
        batch: Sequence[PendingRequest],
        limits: Sequence[RateLimit],
        of_limits: Mapping[str, float],
        of_budget: Mapping[date, RequestUsage],
    ) -> list[GrantedReservation | None]:
        amounts = [[limit_cost(limit, request.tokens) for limit in limits] for request in batch]
        settled = [of_limits[limit.name] for limit in limits]
        waited = time.monotonic() - batch[0].since if batch else 0.0
        if self.budget_usage is None:
            waits = self._store.quota.reserve_slots(limits, amounts, settled=settled, waited=waited)
            return [
                GrantedReservation(RequestReservation(request.tokens), wait)
                for request, wait in zip(batch, waits, strict=True)
            ]
        requested = [request.usage for request in batch]
        grant = self._store.quota.reserve_budget(
            self.budget_usage.budget,
            requested,
            settled=of_budget,
            limits=limits,
            amounts=amounts,
            settled_amounts=settled,
            waited=waited,
        )
        self.budget_usage.record_grant(requested, grant)
        day = grant.at.date()
        return [
            None if wait is None else GrantedReservation(RequestReservation(request.tokens, request.usd, day), wait)
            for request, wait in zip(batch, grant.waits, strict=True)
        ]


def limit_cost(limit: RateLimit, tokens: float) -> float:
    """Return how much of a rate limit a request uses: its tokens for the token limit, and 1 for the request limit."""
    return tokens if limit.name == TOKENS else 1.0
