"""The part of a store that judge requests take their turns from: limits a minute, and the budget of the day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date

from germane.settings import Budget
from germane.storage.db.component import Part
from germane.storage.quota import budget_ledger, rate_limits
from germane.storage.quota.budget_ledger import Expense, Grant, Spent
from germane.storage.quota.rate_limits import Limit, LimitUse


class QuotaStore(Part):
    """What all processes that ask a judge share."""

    def reserve(
        self,
        limits_: Sequence[Limit],
        amounts: Sequence[Sequence[float]],
        *,
        settled: Sequence[float] = (),
        waited: float = 0.0,
        within: float = math.inf,
    ) -> list[float]:
        """Give requests their places under the limits that all processes share; return how long each has to wait.

        Args:
            limits_: What holds.
            amounts: By request, first come first served, what it takes of each limit.
            settled: By limit, what earlier requests took more than was reserved for them, or less: below 0.
            waited: Seconds that the first of the requests has waited already.
            within: Who would have to wait for longer than these seconds gets no place: then fewer waits are returned.

        Returns:
            Seconds from now, in the order of the requests.
        """
        with self._database.write() as connection:
            return rate_limits.reserve(
                connection, limits_, amounts, settled=settled, waited=waited, within=within, at=self._given_time()
            )

    def reserve_budget(
        self,
        budget_: Budget,
        wanted: Sequence[Expense],
        *,
        settled: Mapping[date, Expense] | None = None,
        limits_: Sequence[Limit] = (),
        amounts: Sequence[Sequence[float]] = (),
        owed: Sequence[float] = (),
        waited: float = 0.0,
    ) -> Grant:
        """Book requests on the day's budget, first come first served: those that do not fit are not granted.

        Where there are limits too, those that are granted get their places under them, as :meth:`reserve` gives them.

        Args:
            budget_: What holds.
            wanted: By request, what it is going to take.
            settled: By day, what earlier requests took more than was reserved for them, or less: below 0.
            limits_: What else holds.
            amounts: By request, what it takes of each limit.
            owed: By limit, what earlier requests took more or less.
            waited: Seconds that the first of the requests has waited already.
        """
        at = self._given_time()
        with self._database.write() as connection:
            grant = budget_ledger.reserve(connection, budget_, wanted, settled=settled or {}, at=at)
            if not limits_:
                return grant.starting([0.0] * sum(grant.granted))
            chosen = [each for each, granted in zip(amounts, grant.granted, strict=True) if granted]
            return grant.starting(
                rate_limits.reserve(connection, limits_, chosen, settled=owed, waited=waited, within=math.inf, at=at)
            )

    def spent(self, day: date | None = None) -> Spent:
        """Return what judging took on a day (UTC), requests under way included; by default today."""
        with self._database.read() as connection:
            return budget_ledger.spent(connection, day, self._given_time())

    def spending(self, days: int) -> list[Spent]:
        """Return what judging took in the last so many days, today included, oldest first; empty days are left out."""
        with self._database.read() as connection:
            return budget_ledger.spending(connection, days, self._given_time())

    def limit_uses(self) -> list[LimitUse]:
        """Return how the limits were used last, by name."""
        with self._database.read() as connection:
            return rate_limits.uses(connection)
