"""Recipe of the synthetic score streams: routes, daily and weekly patterns, and injected changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Routes = NDArray[np.int64]

BASELINE_DAYS = 14
ONSET_DAY = 16
START = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
"""Start of the streams, a Monday: days 5 and 6 of each week are the weekend."""
RATE_SWING, RATE_FROM_HOUR, WEEKEND = 0.8, 8, 0.6
MEAN_SWING, MEAN_FROM_HOUR = 0.02, 14
LEAST_MEAN, MOST_MEAN = 0.02, 0.985
KEPT = 0.5
"""Correlation between a day's effect and the previous day's."""


@dataclass(frozen=True, slots=True)
class Route:
    """Score distribution of a route: beta for substantive answers, zero for noncommittal answers."""

    name: str
    mean: float
    """Mean score of substantive answers."""
    concentration: float
    zeros: float
    """Probability of a zero score."""
    share: float
    """Share of the service's scores."""


ROUTES = (
    Route("faq", 0.88, 40, 0.02, 0.5),
    Route("docs", 0.80, 20, 0.05, 0.35),
    Route("support", 0.72, 10, 0.15, 0.15),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change in the answers, applied from its onset."""

    shift: float = 0.0
    """Amount by which a route's mean falls because substantive answers get worse."""
    refusal: float = 0.0
    """Amount by which a route's mean falls because more answers score zero."""
    zeros: float = 0.0
    """Amount by which a route's share of zeros rises."""
    only: str = ""
    """The only route affected; empty for all routes."""
    ramp_days: float = 0.0
    """Days over which the change grows linearly to its full size; 0 for an immediate change."""
    shares: tuple[float, ...] = ()
    """Traffic shares of the routes during the change; empty to keep them."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One service's scores, in order of arrival."""

    names: tuple[str, ...]
    """Names of the routes."""
    routes: Routes
    """The route index of each score."""
    values: Floats
    """Scores in [0, 1]."""
    hours: Floats
    """Time of each score, in hours since the start."""
    onset: float
    """Hour at which the change begins."""
    end: float
    """Hour at which the change ends; infinite if it does not."""

    @property
    def zeros(self) -> Bools:
        """Mask of the scores of noncommittal answers."""
        return self.values <= 0


def stream(
    random: np.random.Generator,
    per_day: float,
    wander: float,
    *,
    days: int,
    change: Change | None = None,
    lasts: float = np.inf,
    routes: tuple[Route, ...] = ROUTES,
    onset_day: int = ONSET_DAY,
) -> Stream:
    """Return the scores of a service over ``days``, with ``per_day`` scores per day on average over a week.

    ``wander`` is the standard deviation of the daily mean, common to all routes. A change begins at a random time on
    ``onset_day`` and ends after ``lasts`` days. The shares of ``routes`` are relative to their sum.
    """
    change = Change() if change is None else change
    onset = 24 * (onset_day + random.random())
    end = onset + 24 * lasts
    hours = arrivals(random, per_day, days)
    during = (hours >= onset) & (hours < end)
    which = _routes(random, during, routes, change)
    grown = during * _growth(hours - onset, change)
    effects = day_effects(random, days)[(hours // 24).astype(np.int64)]
    falls, refusals = _sizes(routes, change)
    swing = MEAN_SWING * np.sin(2 * np.pi * (hours % 24 - MEAN_FROM_HOUR) / 24)
    means = np.array([route.mean for route in routes])[which] + wander * effects + swing - falls[which] * grown
    values = _committed(random, means, np.array([route.concentration for route in routes])[which])
    zeros = np.array([route.zeros for route in routes])[which] + refusals[which] * grown
    values[random.random(len(values)) < zeros] = 0.0
    return Stream(tuple(route.name for route in routes), which, values, hours, onset, end)


def rates(per_day: float, days: int) -> Floats:
    """Return the expected number of scores per hour, with a daily and a weekly cycle and a mean of ``per_day``."""
    hour = np.arange(24 * max(days, 7))
    rate = 1 + RATE_SWING * np.sin(2 * np.pi * (hour % 24 - RATE_FROM_HOUR) / 24)
    rate *= np.where(hour // 24 % 7 >= 5, WEEKEND, 1.0)
    return np.asarray(rate * per_day * 7 / rate[: 24 * 7].sum())[: 24 * days]


def arrivals(random: np.random.Generator, per_day: float, days: int) -> Floats:
    """Return the sorted arrival times in hours: Poisson counts per hour, uniform within the hour."""
    counts = random.poisson(rates(per_day, days))
    hour = np.repeat(np.arange(24 * days), counts)
    return np.sort(hour + random.random(len(hour)))


def day_effects(random: np.random.Generator, days: int) -> Floats:
    """Return a standard normal effect per day, correlated with the day before."""
    effects = random.standard_normal(days)
    for day in range(1, days):
        effects[day] = KEPT * effects[day - 1] + np.sqrt(1 - KEPT**2) * effects[day]
    return effects


def _routes(random: np.random.Generator, during: Bools, routes: tuple[Route, ...], change: Change) -> Routes:
    usual, draws = _edges([route.share for route in routes]), random.random(len(during))
    which = np.searchsorted(usual, draws, side="right")
    if change.shares:
        which[during] = np.searchsorted(_edges(change.shares), draws[during], side="right")
    return which


def _edges(shares: list[float] | tuple[float, ...]) -> Floats:
    return np.asarray(np.cumsum(shares)[:-1] / np.sum(shares))


def _growth(since: Floats, change: Change) -> Floats | float:
    return np.clip(since / (24 * change.ramp_days), 0, 1) if change.ramp_days else 1.0


def _sizes(routes: tuple[Route, ...], change: Change) -> tuple[Floats, Floats]:
    """Return, per route, the fall of the mean of substantive answers and the rise of the zero rate."""
    hit = np.array([change.only in ("", route.name) for route in routes], dtype=float)
    falls = np.array([change.shift / (1 - route.zeros) for route in routes])
    refusals = np.array([change.zeros + change.refusal / route.mean for route in routes])
    return falls * hit, refusals * hit


def _committed(random: np.random.Generator, means: Floats, concentration: Floats) -> Floats:
    means = np.clip(means, LEAST_MEAN, MOST_MEAN)
    return random.beta(means * concentration, (1 - means) * concentration)


def scores(random: np.random.Generator, routes: tuple[Route, ...], which: Routes, shifts: Floats) -> Floats:
    """Return one score for each given route, with shifted means."""
    means = np.array([route.mean for route in routes])[which] + shifts
    values = _committed(random, means, np.array([route.concentration for route in routes])[which])
    values[random.random(len(values)) < np.array([route.zeros for route in routes])[which]] = 0.0
    return values
