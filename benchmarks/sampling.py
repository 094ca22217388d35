"""Simulated precision of budget sampling: python benchmarks/sampling.py [--repetitions N] [--days N] [--seed N].

The streams are synthetic; selection, budget allocation and estimation are the production code. The first part simulates
days with 10,000 exchanges, of which 300 are scored, and proxy scores whose correlation with the scores is rho. The
second part simulates a budget over days on which traffic
unexpectedly triples from 8:00 to 12:00, and answers get worse after 18:00.

A variance must be at most 10% above its theoretical value, sum (1 - pi) / pi (y - mean)^2 over each day.

The tests in tests/monitor verify that requests from several processes never exceed the budget.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from common import Goals
from numpy.typing import NDArray

from germane.monitor.sampling.budget_allocation import DailyTraffic, ExchangeCost, allocate_interval
from germane.monitor.sampling.priority_sampling import draw_priority_sample
from germane.settings import Budget
from germane.statistics.control_variate import ProxySums, ScoreSums, correct_mean
from germane.statistics.estimate import Estimate, WeightedSums, estimate_mean
from germane.storage import RequestUsage

Floats = NDArray[np.float64]
EXCHANGES, CALLS, ROUTES = 10_000, 300, 12
RHOS = (0.3, 0.6, 0.9)
LOW = 0.3
MIN_ROUTE_SCORES = 10
"""Minimum number of scores for a route to count as covered."""
TOLERANCE = 0.1
LEAST_LOW = {"uniform": 27, "priority": 36}
"""Minimum number of low scores that are found a day."""
MOST_BIAS, MOST_PART_BIAS, LEAST_COVERAGE = 0.005, 0.002, 0.93
EVENING, MOST_DAY_BIAS, MOST_ERROR, FEWEST_EVENING = 18, 0.001, 0.007, 61


@dataclass(frozen=True, slots=True)
class Day:
    """One day's exchanges."""

    routes: NDArray[np.int64]
    scores: Floats
    proxies: Floats
    expected: Floats
    """Expected score by route."""
    mean: float
    """Expected score of the process that generates the answers."""


def day_of(random: np.random.Generator, rho: float) -> Day:
    """Return a day of bimodal scores: exact zeros, and scores around their route's mean."""
    shares = 1 / np.arange(1, ROUTES + 1) ** 1.2
    shares /= shares.sum()
    means, zeros = random.uniform(0.68, 0.9, ROUTES), random.uniform(0.02, 0.2, ROUTES)
    concentration = np.where(means > 0.8, 25, 12)
    # Every route has at least one exchange.
    routes = np.concatenate([np.arange(ROUTES), random.choice(ROUTES, EXCHANGES - ROUTES, p=shares)])
    committed = random.beta((means * concentration)[routes], ((1 - means) * concentration)[routes])
    scores = np.where(random.random(EXCHANGES) < zeros[routes], 0.0, committed)
    standardised = (scores - scores.mean()) / scores.std()
    noise = random.standard_normal(EXCHANGES)
    proxies = np.clip(0.75 + 0.2 * (rho * standardised + math.sqrt(1 - rho * rho) * noise), 0, 1)
    expected = (1 - zeros) * means
    return Day(routes, scores, proxies, expected, float(shares @ expected))


@dataclass(slots=True)
class Found:
    """Results of one sampling scheme, one entry per repetition."""

    hajek: list[float] = field(default_factory=list)
    """Errors relative to the day's mean."""
    regression: list[float] = field(default_factory=list)
    hajek_covers: list[bool] = field(default_factory=list)
    """Whether the 95% interval contains the mean of the process."""
    regression_covers: list[bool] = field(default_factory=list)
    expected: dict[str, float] = field(default_factory=lambda: {"hajek": 0.0, "regression": 0.0})
    """Sums of the theoretical variances, by estimator."""
    low: list[int] = field(default_factory=list)
    routes: list[int] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    part: list[float] = field(default_factory=list)
    """Deviation from the route's expected score, for exchanges that were not selected for suspicion."""

    def add(self, day: Day, chosen: Any, design: Floats, proxies: ProxySums) -> None:
        """Add a repetition; ``design`` contains the inclusion probability of each of the day's exchanges."""
        self._expect(day, design)
        probabilities = design[chosen]
        y, x = day.scores[chosen], day.proxies[chosen]
        truth = float(day.scores.mean())
        plain, better = hajek_of(y, probabilities), correct_mean(paired_sums(y, x, 1 / probabilities), proxies)
        assert better is not None
        self.hajek.append(plain.mean - truth)
        self.regression.append(better.mean - truth)
        assert plain.interval is not None
        self.hajek_covers.append(plain.interval[0] <= day.mean <= plain.interval[1])
        self.regression_covers.append(better.interval[0] <= day.mean <= better.interval[1])
        self.low.append(int((y < LOW).sum()))
        self.routes.append(int((np.bincount(day.routes[chosen], minlength=ROUTES) >= MIN_ROUTE_SCORES).sum()))
        self.scores.append(len(y))

    def _expect(self, day: Day, design: Floats) -> None:
        y, x = day.scores - day.scores.mean(), day.proxies - day.proxies.mean()
        rest = y - (x @ y) / (x @ x) * x
        self.expected["hajek"] += float(((1 - design) / design) @ y**2)
        self.expected["regression"] += float(((1 - design) / design) @ rest**2)


def weighted_sums(y: Floats, w: Floats) -> WeightedSums:
    """Return the sums over weighted scores that the database computes."""
    zero = y == 0
    sums = {
        "sum_w": w, "sum_w_zero": w[zero], "sum_w2": w * w, "sum_w2_zero": w[zero] ** 2, "sum_wy": w * y,
        "sum_wy2": w * y * y, "sum_w2y": w * w * y, "sum_w2y2": (w * y) ** 2,
    }  # fmt: skip
    plain: dict[str, Any] = {name: float(each.sum()) for name, each in sums.items()}
    return WeightedSums(n=len(y), n_zero=int(zero.sum()), sum_w_low=0.0, sum_w_noncommittal=0.0, **plain)


def paired_sums(y: Floats, x: Floats, w: Floats) -> ScoreSums:
    """Return the sums over weighted scores that all have a proxy score."""
    ww = w * w
    sums = {
        "sum_w": w, "sum_w2": ww, "sum_wy": w * y, "sum_w2y": ww * y, "sum_w2y2": ww * y * y, "sum_w_with_x": w,
        "sum_wx": w * x, "sum_wy_with_x": w * y, "sum_wx2": w * x * x, "sum_wxy": w * x * y,
        "sum_wy2_with_x": w * y * y, "sum_w2_with_x": ww, "sum_w2x": ww * x, "sum_w2y_with_x": ww * y,
        "sum_w2x2": ww * x * x, "sum_w2xy": ww * x * y,
    }  # fmt: skip
    plain: dict[str, Any] = {name: float(each.sum()) for name, each in sums.items()}
    return ScoreSums(n_with_x=len(y), **plain)


def hajek_of(y: Floats, probabilities: Floats) -> Estimate:
    """Return the weighted mean of the scores, computed as for pages and reports."""
    return estimate_mean(weighted_sums(y, 1 / probabilities))


def proxy_sums(x: Floats) -> ProxySums:
    """Return the proxy sums of a day on which every exchange has a proxy score."""
    n, first, second = len(x), float(x.sum()), float((x * x).sum())
    return ProxySums(n=n, sum_v=n, sum_v2=n, sum_vx=first, sum_vx2=second, sum_v2x=first, sum_v2x2=second)


def simulated(seed: int, rho: float, repetitions: int) -> dict[str, Found]:
    """Simulate each scheme over ``repetitions`` days."""
    random = np.random.default_rng([seed, round(10 * rho)])
    found = {"uniform": Found(), "fixed": Found(), "priority": Found()}
    evenly = np.full(EXCHANGES, CALLS / EXCHANGES)
    for repetition in range(repetitions):
        day, tickets = day_of(random, rho), 1 - random.random(EXCHANGES)
        ids, proxies = [f"{repetition}-{number}" for number in range(EXCHANGES)], proxy_sums(day.proxies)
        drawn = np.flatnonzero(tickets <= CALLS / EXCHANGES)
        found["uniform"].add(day, drawn, evenly, proxies)
        fixed = np.argpartition(tickets, CALLS)[:CALLS]
        found["fixed"].add(day, fixed, evenly, proxies)
        sample = draw_priority_sample(day.routes, day.proxies, tickets, ids, CALLS)
        found["priority"].add(day, sample.selected, sample.mixture.probabilities(day.routes, day.proxies), proxies)
        part = sample.selected[[one != "suspicion" for one in sample.components]]
        found["priority"].part += (day.scores[part] - day.expected[day.routes[part]]).tolist()
    return found


def report(rho: float, found: dict[str, Found], goals: Goals) -> None:
    """Print the figures for one rho."""
    for name, base in (("uniform", "uniform"), ("priority", "fixed")):
        one = found[name]
        for way in ("hajek", "regression"):
            title, errors = f"rho {rho} {name} {way}", np.array(getattr(one, way))
            expected = one.expected[way] / found[base].expected["hajek"]
            variance = float(errors.var() / np.var(found[base].hajek))
            goals.line(f"{title}: relative variance", variance, most=(1 + TOLERANCE) * expected)
            goals.line(f"{title}: bias", abs(float(errors.mean())), most=MOST_BIAS)
            goals.line(f"{title}: coverage", float(np.mean(getattr(one, f"{way}_covers"))), least=LEAST_COVERAGE)
        goals.line(f"rho {rho} {name}: low scores found", float(np.mean(one.low)), least=LEAST_LOW[name])
        goals.line(f"rho {rho} {name}: routes covered", float(np.mean(one.routes)))
    one = found["priority"]
    goals.line(f"rho {rho} priority: bias within a route", abs(float(np.mean(one.part))), most=MOST_PART_BIAS)


@dataclass(slots=True)
class Hour:
    """One hour's answers, and the selected answers."""

    scores: Floats
    picked: Floats = field(default_factory=lambda: np.array([]))
    probabilities: Floats = field(default_factory=lambda: np.array([]))


def usual_traffic() -> DailyTraffic:
    """Return a day's traffic by hour: 1.5 times the mean in the early afternoon, 0.5 times at night."""
    return DailyTraffic(tuple(1 + 0.5 * math.cos(2 * math.pi * (hour + 0.5 - 14) / 24) for hour in range(24)))


def budgeted(seed: int, days: int, goals: Goals) -> None:
    """Print the figures for a budget that follows the forecast, and for a first-come-first-served budget."""
    random, forecast = np.random.default_rng([seed, 24]), usual_traffic()
    budget, each = Budget(requests_per_day=CALLS), ExchangeCost(1, 0, 0)
    start, spent, day_spent = datetime(2026, 1, 1, tzinfo=UTC), 0, []
    hours: list[Hour] = []
    for number in range(24 * days):
        hour = number % 24
        expected = EXCHANGES * forecast.hours[hour] / sum(forecast.hours) * (3 if 8 <= hour < 12 else 1)
        scores = random.beta(16, 4, random.poisson(expected))
        hours.append(Hour(np.clip(scores - (0.15 if hour >= EVENING else 0), 0, 1)))
        end = start + timedelta(hours=number + 1)
        if end.hour == 0:  # an interval that ends at midnight is scored and paid for on the next day
            day_spent.append(spent)
            spent = 0
        since = end - timedelta(hours=1)
        given = allocate_interval(budget, RequestUsage(spent), 0, each, forecast, since=since, end=end)
        spent += _pick(random, hours[-1], int(given.count), number)
    errors, evenings, first_errors = [], [], []
    for some in (hours[at : at + 24] for at in range(0, len(hours), 24)):
        scores = np.concatenate([hour.scores for hour in some])
        picked, probabilities = (
            np.concatenate([getattr(hour, name) for hour in some]) for name in ("picked", "probabilities")
        )
        errors.append(hajek_of(picked, probabilities).mean - float(scores.mean()))
        evenings.append(sum(len(hour.picked) for hour in some[EVENING:]))
        first_errors.append(float(scores[:CALLS].mean()) - float(scores.mean()))
    goals.line("budget: most calls a day", max(day_spent), most=CALLS)
    goals.line("budget: bias of the daily mean", abs(float(np.mean(errors))), most=MOST_DAY_BIAS)
    goals.line("budget: error of the daily mean", float(np.sqrt(np.mean(np.square(errors)))), most=MOST_ERROR)
    goals.line("budget: evening samples", float(np.mean(evenings)), least=FEWEST_EVENING)
    goals.line("first come: bias of the daily mean", abs(float(np.mean(first_errors))))


def _pick(random: np.random.Generator, hour: Hour, count: int, number: int) -> int:
    many = len(hour.scores)
    if not count or not many:
        return 0
    ids, tickets = [f"{number}-{one}" for one in range(many)], 1 - random.random(many)
    sample = draw_priority_sample(np.zeros(many, dtype=np.int64), np.full(many, math.nan), tickets, ids, count)
    hour.picked, hour.probabilities = hour.scores[sample.selected], sample.probabilities
    return len(sample.selected)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all figures; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--days", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261120)
    given = parser.parse_args(arguments)
    goals = Goals()
    for rho in RHOS:
        report(rho, simulated(given.seed, rho, given.repetitions), goals)
    budgeted(given.seed, given.days, goals)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
