"""What one process takes of the budget that all processes on a database share."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from germane.errors import ScoringError, SettingsError
from germane.score import Reason
from germane.scorers import Prices
from germane.settings import LOCAL, Budget, Settings
from germane.storage import Expense, Grant, frees_at

logger = logging.getLogger("germane.monitor")


def check_price(settings: Settings) -> None:
    """Return if what the judge costs is known, where a budget of money needs that.

    Raises:
        SettingsError: it is not.
    """
    budget, judge = settings.budget, settings.judge
    if budget is None or judge == LOCAL or not settings.has_server:
        return
    limited = [name for name in ("usd_per_hour", "usd_per_day") if getattr(budget, name) is not None]
    if limited and Prices(settings.prices).of(judge) is None:
        raise SettingsError(
            f"setting budget.{limited[0]}: nobody knows what the judge {judge!r} costs; name it in the setting prices: "
            f'[prices."{judge}"], then input and output, in US dollars for a million tokens'
        )


class Spending:
    """Keeps what is owed to each day, and says once when the budget is spent, and once when there is room again."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.until: datetime | None = None
        """Until when a request was not paid for, in UTC; None while there is room."""
        self._owed: dict[date, Expense] = {}
        self._spent_in: datetime | None = None

    def owe(self, day: date, expense: Expense) -> None:
        """Keep what a request of that day took more than was reserved for it, or less: below 0."""
        self._owed[day] = self._owed.get(day, Expense()) + expense

    def due(self) -> Mapping[date, Expense]:
        """Return what is to be booked."""
        return {day: expense for day, expense in self._owed.items() if expense}

    def paid(self, due: Mapping[date, Expense]) -> None:
        """Forget what was booked; what came up meanwhile is still owed."""
        left = {day: self._owed[day] - booked for day, booked in due.items()}
        self._owed = {day: expense for day, expense in (self._owed | left).items() if expense}

    def doubt(self, due: Mapping[date, Expense]) -> None:
        """Take note that nobody knows whether it was booked: a connection may break while it says that it was.

        What was to be given back is not given back again, or more would be spent than is allowed.
        """
        for day, expense in due.items():
            self._owed[day] = self._owed[day] - expense.returned

    def note(self, wanted: Sequence[Expense], grant: Grant) -> None:
        """Learn whether there is room."""
        refused = [expense for expense, granted in zip(wanted, grant.granted, strict=True) if not granted]
        hour = grant.at.replace(minute=0, second=0, microsecond=0)
        if refused:
            self._spent(refused[0], grant, hour)
        elif wanted and self._spent_in not in {None, hour}:  # in the same hour it is what somebody gave back
            self.until = self._spent_in = None
            logger.warning("there is room in the budget again: judge requests go on")

    def _spent(self, refused: Expense, grant: Grant, hour: datetime) -> None:
        self.until = frees_at(self.budget, grant.spent, refused, grant.at)
        if self._spent_in is None:
            logger.warning("%s: what it does not pay for is skipped", told_spent(self.until))
        self._spent_in = hour

    def refusal(self) -> ScoringError:
        """Return what is said to a request that is not paid for."""
        return ScoringError(Reason.BUDGET, "the budget is spent" if self.until is None else told_spent(self.until))


def told_spent(until: datetime) -> str:
    """Say until when there is no room."""
    return f"the budget is spent until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
