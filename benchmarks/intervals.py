"""Measured coverage of 95% intervals: python benchmarks/intervals.py [--repetitions N] [--seed N].

Scores are synthetic: refusals score exactly 0, and other scores vary around the mean of their route. Three routes are
measured, each on its own and mixed as in a service. Exchanges are selected in two ways: all with the same probability,
and by a budget, which prefers suspicious exchanges. Each score represents ten exchanges, all with a proxy score whose
correlation with the scores is 0.6. Selection and estimation use the production code.

The table compares three intervals for the mean of the process that generates the answers: germane's interval, germane's
interval for the mean corrected with proxy scores (with 30 or more scores, if the correction makes it more precise), and
the plain t-interval of the weighted mean.

With 50 or more scores, at least 93% of germane's intervals must contain the mean, and with 500 at most 97%. For 20
and 30 scores, the coverage is printed without a goal; with fewer than 20 scores, pages and commands show "not enough
data". The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from germane.monitor.sampling.priority_sampling import draw_priority_sample
from germane.statistics.control_variate import MIN_PAIRS as ENOUGH_PROXIES
from germane.statistics.control_variate import ProxySums, ScoreSums, narrow_interval
from germane.statistics.estimate import Interval, WeightedSums, estimate_mean, t_quantile

Floats = NDArray[np.float64]
SIZES = (20, 30, 50, 100, 200, 500)
MIN_COVERAGE, MAX_COVERAGE = 0.93, 0.97
BEHIND = 10
"""Number of exchanges that each score represents."""
RHO = 0.6
WAYS = ("germane", "corrected", "plain t")
JUDGED = WAYS[:2]


@dataclass(frozen=True, slots=True)
class Route:
    """Score distribution of a route: mean and concentration of substantive answers, and share of refusals."""

    mean: float
    concentration: float
    refusals: float


ROUTES = {"faq": Route(0.88, 40, 0.02), "docs": Route(0.80, 20, 0.05), "support": Route(0.72, 10, 0.15)}
SERVICES: dict[str, dict[str, float]] = {
    **{name: {name: 1.0} for name in ROUTES},
    "mixed": {"faq": 0.5, "docs": 0.35, "support": 0.15},
}
"""Traffic shares of the routes in each service."""


@dataclass(frozen=True, slots=True)
class Service:
    """A process that generates answers."""

    routes: tuple[Route, ...]
    shares: Floats

    @classmethod
    def of(cls, name: str) -> Service:
        """Return a measured service by name."""
        shares = SERVICES[name]
        return cls(tuple(ROUTES[route] for route in shares), np.array(list(shares.values())))

    @property
    def mean(self) -> float:
        """Expected score."""
        return float(self.shares @ [route.mean * (1 - route.refusals) for route in self.routes])

    @property
    def deviation(self) -> float:
        """Standard deviation of individual scores: a beta distribution with a share of zeros."""
        squares = [
            (1 - route.refusals) * (route.mean**2 + route.mean * (1 - route.mean) / (route.concentration + 1))
            for route in self.routes
        ]
        return math.sqrt(float(self.shares @ squares) - self.mean**2)

    def answers(self, random: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return route numbers (consecutive), scores and proxy scores."""
        _, routes = np.unique(random.choice(len(self.routes), count, p=self.shares), return_inverse=True)
        mean, concentration, refusals = (
            np.array([getattr(route, name) for route in self.routes])[routes]
            for name in ("mean", "concentration", "refusals")
        )
        committed = random.beta(mean * concentration, (1 - mean) * concentration)
        scores = np.where(random.random(count) < refusals, 0.0, committed)
        noise = random.standard_normal(count)
        standardised = (scores - self.mean) / self.deviation
        proxies = np.clip(0.75 + 0.2 * (RHO * standardised + math.sqrt(1 - RHO**2) * noise), 0, 1)
        return routes, scores, proxies


@dataclass(frozen=True, slots=True)
class Sample:
    """Scores, proxy scores and weights of the selected exchanges."""

    y: Floats
    x: Floats
    w: Floats
    everything: Floats
    """Proxy scores for all exchanges."""


def sample(random: np.random.Generator, service: Service, n: int, *, weighted: bool, ids: Sequence[str]) -> Sample:
    """Return n scores: the first n, or the n that a budget selects."""
    routes, y, x = service.answers(random, BEHIND * n)
    if not weighted:
        return Sample(y[:n], x[:n], np.full(n, float(BEHIND)), x)
    sample = draw_priority_sample(routes, x, 1 - random.random(BEHIND * n), ids[: BEHIND * n], n)
    return Sample(y[sample.selected], x[sample.selected], 1 / sample.probabilities, x)


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


def proxy_sums(x: Floats) -> ProxySums:
    """Return the proxy sums of a day on which every exchange has a proxy score."""
    n, first, second = len(x), float(x.sum()), float((x * x).sum())
    return ProxySums(n=n, sum_v=n, sum_v2=n, sum_vx=first, sum_vx2=second, sum_v2x=first, sum_v2x2=second)


def intervals(one: Sample) -> dict[str, Interval]:
    """Return the intervals by kind; the corrected interval needs at least 30 scores."""
    sums = weighted_sums(one.y, one.w)
    found = estimate_mean(sums)
    assert found.interval is not None
    made = {"germane": found.interval, "plain t": _plain(one, found.mean)}
    if len(one.y) < ENOUGH_PROXIES:
        return made
    better = narrow_interval(sums, paired_sums(one.y, one.x, one.w), proxy_sums(one.everything))
    return {**made, "corrected": found.interval if better is None else better.interval}


def _plain(one: Sample, mean: float) -> Interval:
    n = len(one.y)
    variance = float(((one.w * (one.y - mean)) ** 2).sum()) / float(one.w.sum()) ** 2 * n / (n - 1)
    half = t_quantile(n - 1) * math.sqrt(variance)
    return mean - half, mean + half


@dataclass(frozen=True, slots=True)
class Line:
    """Coverage of one kind of interval by number of scores; None if the interval does not exist."""

    design: str
    service: str
    way: str
    shares: tuple[float | None, ...]

    @property
    def missed(self) -> list[str]:
        """Descriptions of the missed goals."""
        sized = zip(SIZES, self.shares, strict=True)
        return [
            f"{self.design} {self.service} {self.way} n={n}: {share:.3f}"
            for n, share in sized
            if self._is_out(n, share)
        ]

    def _is_out(self, n: int, share: float | None) -> bool:
        judged = share is not None and self.way in JUDGED
        return judged and ((n >= 50 and share < MIN_COVERAGE) or (n >= 500 and share > MAX_COVERAGE))

    def __str__(self) -> str:
        cells = "".join(f"{'-' if share is None else f'{share:.3f}':>8}" for share in self.shares)
        return f"{self.design:10}{self.service:10}{self.way:10}{cells}{'   MISSED' if self.missed else ''}"


def lines(seed: int, repetitions: int, sizes: Sequence[int] = SIZES) -> Iterator[Line]:
    """Yield the lines of the table."""
    ids = [str(number) for number in range(BEHIND * max(sizes))]
    for design in ("equal", "picked"):
        for place, name in enumerate(SERVICES):
            found = [_shares(Service.of(name), [seed, place, n], n, repetitions, design, ids) for n in sizes]
            for way in WAYS:
                yield Line(design, name, way, tuple(shares.get(way) for shares in found))


def _shares(
    service: Service, seed: Sequence[int], n: int, repetitions: int, design: str, ids: Sequence[str]
) -> dict[str, float]:
    random, truth = np.random.default_rng(seed), service.mean
    held: dict[str, int] = {}
    for _ in range(repetitions):
        one = sample(random, service, n, weighted=design == "picked", ids=ids)
        for way, (low, high) in intervals(one).items():
            held[way] = held.get(way, 0) + (low <= truth <= high)
    return {way: count / repetitions for way, count in held.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the missed goals; return 1 if there are any."""
    parser = argparse.ArgumentParser(description="Coverage of 95% intervals.")
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20261121)
    given = parser.parse_args(arguments)
    print(f"{'scores':10}{'route':10}{'interval':10}{''.join(f'n={n}'.rjust(8) for n in SIZES)}")
    missed: list[str] = []
    for line in lines(given.seed, given.repetitions):
        print(line, flush=True)
        missed += line.missed
    print("\n".join(["", "missed:", *missed]) if missed else "\nall goals are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
