"""The candidate pool. Under a budget, each interval ends with a selection from the exchanges that arrived during it.

The selection is one transaction. It marks all selected candidates as ready, and stores a record with the lease from
which the inclusion probabilities can be computed. The remaining candidates are then skipped in batches, with
probabilities from that record. If a process stops before all of them are skipped, the next leader continues with the
same selection and the same probabilities. If a process stops before the transaction, nothing changes. As long as the
record exists, no new candidates are added.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np

from germane.monitor.sampling.budget_allocation import (
    INTERVAL_LENGTHS,
    DailyTraffic,
    ExchangeCost,
    IntervalAllocation,
    allocate_interval,
    estimate_cost,
    forecast_traffic,
    interval_length,
    last_interval_end,
)
from germane.monitor.sampling.priority_sampling import FloatArray, IndexArray, Mixture, draw_priority_sample
from germane.score import UnscoredReason
from germane.settings import Budget
from germane.storage import Candidate, SamplerStep, SelectedCandidate, TrackingStore

MAX_SKIPPED_PER_TRANSACTION: Final = 500
CANDIDATES_PER_PAGE: Final = 10_000
HISTORY_DAYS: Final = 7
"""The number of past days whose traffic and cost determine today's selection."""
MIN_UNIFORM: Final = 2.0**-53
Route = tuple[str, str]
"""A service and a route."""

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True)
class UnselectedCandidates:
    """The candidates that were not selected: the reason, and the inputs for their inclusion probabilities."""

    reason: UnscoredReason
    mixture: Mixture | None = None
    """The weights of the interval; None if nothing was sampled."""
    routes: tuple[Route, ...] = ()

    def inclusion_probabilities(self, candidates: Sequence[Candidate]) -> dict[str, float | None]:
        """Return the inclusion probability of each candidate by exchange id; each is None if nothing was sampled."""
        if self.mixture is None:
            return dict.fromkeys(candidate.id for candidate in candidates)
        indexes = {route: index for index, route in enumerate(self.routes)}
        # A candidate with an unknown route was not in the pool. It must not block the others.
        mixture = replace(self.mixture, floors=(*self.mixture.floors, 0.0))
        routes = np.array([indexes.get(_route(candidate), len(indexes)) for candidate in candidates])
        probabilities = mixture.probabilities(routes, _proxies(candidates)) * _capture_probabilities(candidates)
        return dict(zip((candidate.id for candidate in candidates), probabilities.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class PoolCursor:
    """The sampler's position in the candidate pool, stored with the lease."""

    sampled_until: datetime
    """The end of the last interval that was sampled, in UTC."""
    unselected: UnselectedCandidates | None = None
    """The candidates in that interval that have not been skipped yet; None once the interval is finished."""

    def to_json(self) -> str:
        """Return the cursor as JSON."""
        unselected = self.unselected and asdict(self.unselected)
        stored = {"sampled_until": self.sampled_until.isoformat(), "unselected": unselected}
        return json.dumps(stored, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> PoolCursor:
        """Parse the result of :meth:`to_json`."""
        stored = json.loads(text)
        sampled_until, rest = datetime.fromisoformat(stored["sampled_until"]), stored["unselected"]
        if rest is None:
            return cls(sampled_until)
        mixture = rest["mixture"] and Mixture(**{**rest["mixture"], "floors": tuple(rest["mixture"]["floors"])})
        routes = tuple((service, route) for service, route in rest["routes"])
        return cls(sampled_until, UnselectedCandidates(UnscoredReason(rest["reason"]), mixture, routes))


class CandidatePool:
    """Selects the candidates to score, in the process that holds the sampler's lease.

    Without a budget, candidates from an earlier budget are sampled at ``sample_rate``. The lease holder is the name of
    the lease and the id of this process.
    """

    def __init__(
        self,
        store: TrackingStore,
        *,
        budget: Budget | None,
        sample_rate: float,
        default_cost: ExchangeCost,
        lease_holder: tuple[str, str],
    ) -> None:
        self.lease_holder = lease_holder
        self._store = store
        self._budget = budget
        self._sample_rate = sample_rate
        self._default_cost = default_cost
        self._skipped_interval: datetime | None = None
        """The end of an interval that selected nothing and is merged into the next interval."""
        self._forecast = DailyTraffic()
        self._forecast_date: date | None = None
        self._checked_at: datetime | None = None
        self._exhausted_date: date | None = None

    def run_step(self) -> int:
        """Select candidates, or skip a batch of the others, in one transaction. Return the number of candidates."""
        text = self._store.pool.load_cursor(self.lease_holder[0])
        cursor = PoolCursor.from_json(text) if text else None
        if cursor is None or cursor.unselected is None:
            return self._sample_at_rate(cursor) if self._budget is None else self._select_if_due(cursor, self._budget)
        # Skip a batch of unselected candidates. If there are none left, finish the interval.
        unselected = cursor.unselected
        candidates = self._store.pool.list_candidates(MAX_SKIPPED_PER_TRANSACTION)
        if not candidates:
            self._store.pool.save_cursor(self._step(replace(cursor, unselected=None)))
            return 0
        probabilities = unselected.inclusion_probabilities(candidates)
        skipped = self._store.pool.skip_candidates(self._step(cursor), probabilities, unselected.reason)
        return len(candidates) if skipped else 0

    def _select_if_due(self, cursor: PoolCursor | None, budget: Budget) -> int:
        """Select candidates if an interval has ended. An interval without an allocation is merged into the next one."""
        # Budget reservations use the database's clock. An hour that has not begun there adds no budget.
        now = self._store.now().astimezone(UTC)
        minute = last_interval_end(now, INTERVAL_LENGTHS[0])
        if minute == self._checked_at:  # no interval can have ended since the last check
            return 0
        self._checked_at = minute
        if self._forecast_date != now.date():
            today = now.replace(hour=0, minute=0, second=0, microsecond=0)
            history = self._store.quota.traffic_by_hour(since=today - timedelta(days=HISTORY_DAYS), until=today)
            self._forecast, self._forecast_date = forecast_traffic(history), now.date()
        in_progress = self._store.pool.count_in_progress()
        cost = estimate_cost(self._store.quota.load_usage_by_day(HISTORY_DAYS), in_progress, self._default_cost)
        length = interval_length(budget, cost, self._forecast, now)
        end = last_interval_end(now, length)
        if cursor is None or cursor.sampled_until > now + timedelta(seconds=length):  # first run, or clock set back
            self._store.pool.save_cursor(self._step(PoolCursor(end)))
            return 0
        if end <= cursor.sampled_until or end == self._skipped_interval:
            return 0
        spent = self._store.quota.load_usage(end.date()).usage
        allocation = allocate_interval(
            budget, spent, in_progress, cost, self._forecast, since=cursor.sampled_until, end=end
        )
        if not allocation.count and not allocation.exhausted:
            self._skipped_interval = end
            return 0
        return self._select(end, allocation)

    def _select(self, end: datetime, allocation: IntervalAllocation) -> int:
        """Select the allocated number of candidates, or none if the day's budget is exhausted."""
        candidates = page = self._store.pool.list_candidates(CANDIDATES_PER_PAGE)
        while len(page) == CANDIDATES_PER_PAGE:
            page = self._store.pool.list_candidates(CANDIDATES_PER_PAGE, after=page[-1])
            candidates += page
        if not candidates:
            self._store.pool.save_cursor(self._step(PoolCursor(end)))
            return 0
        if not allocation.exhausted:
            selected, unselected = _draw(candidates, int(min(allocation.count, len(candidates))))
        else:
            selected, unselected = [], UnselectedCandidates(UnscoredReason.BUDGET)
            if self._exhausted_date != end.date():
                self._exhausted_date = end.date()
                message = "the budget for %s is exhausted; no more exchanges will be scored before midnight UTC"
                logger.warning(message, end.date())
        written = self._store.pool.select_candidates(self._step(PoolCursor(end, unselected)), selected)
        return len(candidates) if written else 0

    def _sample_at_rate(self, cursor: PoolCursor | None) -> int:
        """Sample the candidates of a removed budget by sampling key, as if there had never been a budget."""
        candidates = self._store.pool.list_candidates(MAX_SKIPPED_PER_TRANSACTION)
        if not candidates:
            return 0
        step, rate = self._step(cursor or PoolCursor(self._store.now().astimezone(UTC))), self._sample_rate
        probabilities = {candidate.id: min(rate, candidate.capture_probability) for candidate in candidates}
        selected = [
            SelectedCandidate(candidate.id, probabilities[candidate.id], "sampled")
            for candidate in candidates
            if candidate.sampling_key <= rate
        ]
        others = [candidate.id for candidate in candidates if candidate.sampling_key > rate]
        skipped = {id_: probabilities[id_] or None for id_ in others}
        pool, reason = self._store.pool, UnscoredReason.NOT_SAMPLED
        written = pool.select_candidates(step, selected) and pool.skip_candidates(step, skipped, reason)
        return len(candidates) if written else 0

    def _step(self, cursor: PoolCursor) -> SamplerStep:
        return SamplerStep(*self.lease_holder, cursor.to_json())


def _draw(candidates: Sequence[Candidate], size: int) -> tuple[list[SelectedCandidate], UnselectedCandidates]:
    """Draw a priority sample. Return the selected candidates, and what the others' probabilities follow from."""
    routes = sorted({_route(candidate) for candidate in candidates})
    indexes = {route: index for index, route in enumerate(routes)}
    route_indexes: IndexArray = np.array([indexes[_route(candidate)] for candidate in candidates])
    ids, captured = [candidate.id for candidate in candidates], _capture_probabilities(candidates)
    # The sampling keys of captured exchanges are uniformly distributed between 0 and their capture probability.
    keys = np.array([candidate.sampling_key for candidate in candidates])
    uniforms = np.clip(keys / captured, MIN_UNIFORM, 1)
    sample = draw_priority_sample(route_indexes, _proxies(candidates), uniforms, ids, size)
    probabilities = (sample.probabilities * captured[sample.selected]).tolist()
    selected = [
        SelectedCandidate(ids[index], probability, component)
        for index, probability, component in zip(sample.selected, probabilities, sample.components, strict=True)
    ]
    return selected, UnselectedCandidates(UnscoredReason.NOT_SAMPLED, sample.mixture, tuple(routes))


def _route(candidate: Candidate) -> Route:
    return candidate.service, candidate.route


def _proxies(candidates: Sequence[Candidate]) -> FloatArray:
    proxies = (math.nan if candidate.proxy is None else candidate.proxy for candidate in candidates)
    return np.fromiter(proxies, dtype=np.float64, count=len(candidates))


def _capture_probabilities(candidates: Sequence[Candidate]) -> FloatArray:
    return np.array([candidate.capture_probability for candidate in candidates], dtype=np.float64)
