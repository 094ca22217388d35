"""The pool of candidates: at the end of each interval as many are picked as the interval may have.

What one interval comes to is decided in one transaction: it releases all picks, and notes beside the office what the
probabilities were made of. The rest follows in batches, each of which can be told again from that note. A process that
ends in between leaves it to the next one, which goes on with the same picks and the same probabilities; one that ends
before that transaction has changed nothing, and no look at new exchanges is written while such a note is open.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import numpy as np

from germane.monitor.sampling.budget_allocation import (
    LENGTHS,
    Allotment,
    Cost,
    Forecast,
    allot,
    cost_of,
    end_before,
    forecast_of,
    length_of,
)
from germane.monitor.sampling.priority_sampling import Codes, Floats, Mixture, pick
from germane.score import Reason
from germane.settings import Budget
from germane.storage import Candidate, Pick, Step, Store

BATCH: Final = 500
"""Candidates that are passed over in one transaction."""
PAGE: Final = 10_000
"""Candidates that are read at a time."""
KNOWN_DAYS: Final = 7
"""Whose traffic tells how that of today will be, and whose spending tells what a pick takes."""
LEAST_TICKET: Final = 2.0**-53
Route = tuple[str, str]
"""Service and route."""
logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True)
class Remainder:
    """What the candidates are told that an interval did not pick."""

    reason: Reason
    mixture: Mixture | None = None
    """None where nothing was drawn."""
    routes: tuple[Route, ...] = ()

    def told(self, candidates: Sequence[Candidate]) -> dict[str, float | None]:
        """Return by id how probable it was that each would be picked."""
        if self.mixture is None:
            return dict.fromkeys(one.id for one in candidates)
        codes = {route: code for code, route in enumerate(self.routes)}
        # One of another route cannot have been in the pool; it must not keep the rest from going on.
        known = replace(self.mixture, floors=(*self.mixture.floors, 0.0))
        routes = np.array([codes.get(_route(one), len(codes)) for one in candidates])
        shares = known.probabilities(routes, _proxies(candidates)) * _kept(candidates)
        return dict(zip((one.id for one in candidates), shares.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the pool has come."""

    drawn: datetime
    """End of the last interval that was drawn from, UTC."""
    remainder: Remainder | None = None
    """Of an interval that is not finished."""

    def written(self) -> str:
        """Return it as text, without loss."""
        rest = None if self.remainder is None else asdict(self.remainder)
        return json.dumps({"drawn": self.drawn.isoformat(), "remainder": rest}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Return what was written."""
        found = json.loads(text)
        return cls(datetime.fromisoformat(found["drawn"]), _remainder(found["remainder"]))


def _remainder(found: Mapping[str, Any] | None) -> Remainder | None:
    if found is None:
        return None
    mixture = found["mixture"] and Mixture(**{**found["mixture"], "floors": tuple(found["mixture"]["floors"])})
    return Remainder(Reason(found["reason"]), mixture, tuple((service, route) for service, route in found["routes"]))


class Pool:
    """Draws from the candidates, in the process that holds the sampler's office.

    Args:
        budget: Without one nothing is drawn, and what an earlier budget has left here goes by ``rate``.
        assumed: What a pick takes, as long as there are few to tell.
    """

    def __init__(
        self,
        store: Store,
        *,
        budget: Budget | None,
        rate: float,
        assumed: Cost,
        holder: tuple[str, str],
    ) -> None:
        self.holder = holder
        """The office and this process, which must hold it."""
        self._store = store
        self._budget = budget
        self._rate = rate
        self._assumed = assumed
        self._nothing_for: datetime | None = None
        """End of the interval that got no pick, and waits for the next one."""
        self._forecast = Forecast()
        self._forecast_of: date | None = None
        self._looked_at: datetime | None = None
        self._said_spent: date | None = None

    def step(self) -> int:
        """Do what is due in one transaction: draw, or finish some of what was drawn before; return how many it was."""
        text = self._store.cursor(self.holder[0])
        cursor = Cursor.read(text) if text else None
        if cursor is not None and cursor.remainder is not None:
            return self._go_on(cursor, cursor.remainder)
        return self._dissolve(cursor) if self._budget is None else self._draw_if_due(cursor, self._budget)

    def _go_on(self, cursor: Cursor, remainder: Remainder) -> int:
        """Pass over some of the rest; when there is none, the interval is finished."""
        candidates = self._store.candidates(BATCH)
        if not candidates:
            self._store.move(self._to(replace(cursor, remainder=None)))
            return 0
        done = self._store.pass_over(self._to(cursor), remainder.told(candidates), remainder.reason)
        return len(candidates) if done else 0

    def _draw_if_due(self, cursor: Cursor | None, budget: Budget) -> int:
        # By the clock that budgets are reserved by: an hour that has not begun there pays for nothing.
        now = self._store.now().astimezone(UTC)
        if end_before(now, LENGTHS[0]) == self._looked_at:  # no interval can have ended since
            return 0
        self._looked_at = end_before(now, LENGTHS[0])
        if self._forecast_of != now.date():
            self._forecast, self._forecast_of = self._known_traffic(now), now.date()
        cost = cost_of(self._store.spending(KNOWN_DAYS), self._store.under_way(), self._assumed)
        length = length_of(budget, cost, self._forecast, now)
        end = end_before(now, length)
        if cursor is None or cursor.drawn > now + timedelta(seconds=length):  # or the clock was set back since
            self._store.move(self._to(Cursor(end)))
            return 0
        if end <= cursor.drawn or end == self._nothing_for:
            return 0
        given = self._allotted(budget, cost, since=cursor.drawn, end=end)
        if not given.picks and not given.exhausted:
            self._nothing_for = end
            return 0
        return self._draw(given, end)

    def _allotted(self, budget: Budget, cost: Cost, *, since: datetime, end: datetime) -> Allotment:
        spent, under_way = self._store.spent(end.date()).expense, self._store.under_way()
        return allot(budget, spent, under_way, cost, self._forecast, since=since, end=end)

    def _draw(self, given: Allotment, end: datetime) -> int:
        candidates = self._all()
        if not candidates:
            self._store.move(self._to(Cursor(end)))
            return 0
        picks: list[Pick] = []
        remainder = Remainder(Reason.BUDGET)
        if given.exhausted:
            self._say_spent(end)
        else:
            picks, remainder = _picked(candidates, int(min(given.picks, len(candidates))))
        return len(candidates) if self._store.pick(self._to(Cursor(end, remainder)), picks) else 0

    def _say_spent(self, end: datetime) -> None:
        if self._said_spent != end.date():
            self._said_spent = end.date()
            logger.warning("the budget of %s is spent: until midnight UTC no more is scored", end.date())

    def _dissolve(self, cursor: Cursor | None) -> int:
        """Decide by the draw on candidates that nobody will pick from, as if there had never been a budget."""
        candidates = self._store.candidates(BATCH)
        if not candidates:
            return 0
        step = self._to(cursor or Cursor(self._store.now().astimezone(UTC)))
        shares = {one.id: min(self._rate, one.capture_probability) for one in candidates}
        drawn = [Pick(one.id, shares[one.id], "drawn") for one in candidates if one.draw <= self._rate]
        rest = {one.id: shares[one.id] or None for one in candidates if one.draw > self._rate}
        done = self._store.pick(step, drawn) and self._store.pass_over(step, rest, Reason.NOT_DRAWN)
        return len(candidates) if done else 0

    def _all(self) -> list[Candidate]:
        found = page = self._store.candidates(PAGE)
        while len(page) == PAGE:
            page = self._store.candidates(PAGE, after=page[-1])
            found += page
        return found

    def _known_traffic(self, now: datetime) -> Forecast:
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return forecast_of(self._store.traffic_by_hour(since=today - timedelta(days=KNOWN_DAYS), until=today))

    def _to(self, cursor: Cursor) -> Step:
        return Step(*self.holder, cursor.written())


def _picked(candidates: Sequence[Candidate], count: int) -> tuple[list[Pick], Remainder]:
    routes = sorted({_route(one) for one in candidates})
    numbers = {route: number for number, route in enumerate(routes)}
    codes: Codes = np.array([numbers[_route(one)] for one in candidates])
    ids, kept = [one.id for one in candidates], _kept(candidates)
    # Among those that the capture limit kept, the draw is uniform from 0 to the probability of being kept.
    tickets = np.clip(np.array([one.draw for one in candidates]) / kept, LEAST_TICKET, 1)
    found = pick(codes, _proxies(candidates), tickets, ids, count)
    shares = (found.probabilities * kept[found.chosen]).tolist()
    picks = [Pick(ids[at], share, part) for at, share, part in zip(found.chosen, shares, found.parts, strict=True)]
    return picks, Remainder(Reason.NOT_DRAWN, found.mixture, tuple(routes))


def _route(candidate: Candidate) -> Route:
    return candidate.service, candidate.route


def _proxies(candidates: Sequence[Candidate]) -> Floats:
    return np.array([math.nan if one.proxy is None else one.proxy for one in candidates], dtype=np.float64)


def _kept(candidates: Sequence[Candidate]) -> Floats:
    return np.array([one.capture_probability for one in candidates], dtype=np.float64)
