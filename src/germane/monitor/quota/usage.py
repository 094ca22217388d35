"""One process's view of the budget that all processes on a database share."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from germane.errors import ScoringError, SettingsError
from germane.score import UnscoredReason
from germane.scorers import PriceList
from germane.settings import LOCAL, Budget, Settings
from germane.storage import BudgetReservation, RequestUsage, next_affordable_at

logger = logging.getLogger("germane.monitor")


def check_judge_price(settings: Settings) -> None:
    """Check that the judge has a price if the budget is limited in dollars.

    Raises:
        SettingsError: The price of the judge is unknown.
    """
    budget, judge = settings.budget, settings.judge
    if budget is None or judge == LOCAL or not settings.has_server:
        return
    limited = [name for name in ("usd_per_hour", "usd_per_day") if getattr(budget, name) is not None]
    if limited and PriceList(settings.prices).find_price(judge) is None:
        raise SettingsError(
            f"setting budget.{limited[0]}: the price of the judge {judge!r} is unknown; add it to the setting prices: "
            f'[prices."{judge}"], then input and output, in US dollars per million tokens'
        )


class BudgetUsage:
    """What is still to be settled with the budget, by day, and whether the budget is exhausted.

    It logs once when the budget is exhausted, and once when it has room again.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.exhausted_until: datetime | None = None
        """When the budget has room for the last rejected request, in UTC; None while it has room."""
        self._unsettled: dict[date, RequestUsage] = {}
        self._exhausted_in: datetime | None = None
        """The last hour in which a request was rejected."""

    def add_unsettled(self, day: date, usage: RequestUsage) -> None:
        """Add what a request of that day used in excess of its reservation; negative for what it did not use."""
        self._unsettled[day] = self._unsettled.get(day, RequestUsage()) + usage

    def unsettled(self) -> Mapping[date, RequestUsage]:
        """Return what is to be settled."""
        return {day: usage for day, usage in self._unsettled.items() if usage}

    def mark_settled(self, settled: Mapping[date, RequestUsage]) -> None:
        """Subtract what was settled; what was added in the meantime remains."""
        remaining = {day: self._unsettled[day] - usage for day, usage in settled.items()}
        self._unsettled = {day: usage for day, usage in (self._unsettled | remaining).items() if usage}

    def discard_refunds(self, attempted: Mapping[date, RequestUsage]) -> None:
        """Drop the refunds of a settlement that failed, since a lost connection hides whether it was committed.

        A refund that is settled twice would let more be spent than the budget allows.
        """
        for day, usage in attempted.items():
            self._unsettled[day] = self._unsettled[day] - usage.refund

    def record_grant(self, requested: Sequence[RequestUsage], grant: BudgetReservation) -> None:
        """Update ``exhausted_until`` from what the database granted."""
        rejected = [usage for usage, granted in zip(requested, grant.granted, strict=True) if not granted]
        hour = grant.at.replace(minute=0, second=0, microsecond=0)
        if rejected:
            self.exhausted_until = next_affordable_at(self.budget, grant.usage, rejected[0], grant.at)
            if self._exhausted_in is None:
                logger.warning("%s: scores that it does not cover are skipped", exhausted_message(self.exhausted_until))
            self._exhausted_in = hour
        elif requested and self._exhausted_in not in {None, hour}:  # in the same hour it was a refund
            self.exhausted_until = self._exhausted_in = None
            logger.warning("the budget has room again: judge requests resume")

    def budget_error(self) -> ScoringError:
        """Return the error of a request that the budget does not cover."""
        until = self.exhausted_until
        return ScoringError(UnscoredReason.BUDGET, "the budget is spent" if until is None else exhausted_message(until))


def exhausted_message(until: datetime) -> str:
    """Return a sentence that says until when the budget is spent."""
    return f"the budget is spent until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
