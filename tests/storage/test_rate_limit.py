"""Sampling of traffic above the exchange limit."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from germane.storage.ingest.drop_counts import TrafficThinner

LIMIT = 6_000
MILLION = 1_000_000


class Time:
    """A clock in seconds that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def stream(thinner: TrafficThinner, time: Time, rate: float, seconds: float) -> list[float]:
    """Simulate exchanges at an even rate per minute; return their probabilities."""
    found = []
    for _ in range(round(rate * seconds / 60)):
        time.now += 60 / rate
        found.append(thinner.next_probability())
    return found


def test_traffic_below_the_exchange_limit_is_kept() -> None:
    """Exchanges are kept with probability 1, for any length of time."""
    time = Time()
    assert set(stream(TrafficThinner(LIMIT, clock=time), time, LIMIT * 0.99, 600)) == {1.0}


@pytest.mark.parametrize("rate", [2 * LIMIT, 100_000, MILLION])
def test_traffic_above_the_limit_is_thinned_to_the_limit(rate: int) -> None:
    """Slightly more is kept in the first minute, which starts with full credit; then the limit holds every second."""
    time = Time()
    thinner = TrafficThinner(LIMIT, clock=time)

    assert LIMIT < sum(stream(thinner, time, rate, 60)) < 1.2 * LIMIT
    for _ in range(10):
        assert sum(stream(thinner, time, rate, 1)) == pytest.approx(LIMIT / 60, rel=0.05)


def test_a_burst_is_thinned_immediately() -> None:
    """Of a hundred thousand exchanges at one moment, less than a fifth of the limit is kept."""
    thinner = TrafficThinner(LIMIT, clock=Time())

    kept = [thinner.next_probability() for _ in range(100_000)]

    assert kept[: LIMIT // 10] == [1.0] * (LIMIT // 10)
    assert 0.0 < kept[-1] < 1e-3
    assert sum(kept) < 0.2 * LIMIT
    assert all(later <= earlier for earlier, later in pairwise(kept))


def test_thinning_ends_soon_after_the_traffic_falls() -> None:
    """After a million exchanges per minute, all are kept again within seconds; the credit is full ten seconds later."""
    time = Time()
    thinner = TrafficThinner(LIMIT, clock=time)
    stream(thinner, time, MILLION, 60)
    assert not thinner.is_recovered

    assert min(stream(thinner, time, LIMIT / 10, 20)[LIMIT // 10 * 5 // 60 :]) == 1.0
    assert thinner.is_recovered


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_an_exchange_limit_of_a_few_per_minute_is_enforced(limit: int) -> None:
    """A few more exchanges are kept in the first minute."""
    time = Time()
    thinner = TrafficThinner(limit, clock=time)

    assert sum(stream(thinner, time, 10_000, 60)) < limit * 1.1 + 13
    assert sum(stream(thinner, time, 10_000, 60)) == pytest.approx(limit, rel=0.05, abs=0.5)


@given(
    some.lists(some.tuples(some.floats(0, 5), some.integers(1, 300)), min_size=1, max_size=20),
    some.integers(1, 100_000),
)
def test_capture_probabilities_are_above_0_and_at_most_1(bursts: list[tuple[float, int]], limit: int) -> None:
    """An exchange with probability 0 could not be represented by kept exchanges."""
    time = Time()
    thinner = TrafficThinner(limit, clock=time)
    for pause, count in bursts:
        time.now += pause
        assert all(0 < thinner.next_probability() <= 1 for _ in range(count))


@given(some.lists(some.floats(0, 0.2), min_size=1, max_size=400), some.integers(1, 2_000))
def test_capture_probabilities_depend_only_on_arrival_times(pauses: list[float], limit: int) -> None:
    """The same stream has the same probabilities."""
    first, second = Time(), Time()
    one, other = TrafficThinner(limit, clock=first), TrafficThinner(limit, clock=second)
    for pause in pauses:
        first.now, second.now = first.now + pause, second.now + pause
        assert one.next_probability() == other.next_probability()


def test_weighted_estimates_from_kept_exchanges_are_unbiased() -> None:
    """Traffic that rises and falls by hundreds: the sum of 1/p is the count, and weighted means equal the means of all
    exchanges.

    The mean of 60 streams lies within 4 standard errors of the truth, and the errors are small.
    """
    counts, means = [], []
    for seed in range(60):
        count, mean = weighted_errors(random.Random(seed))
        counts.append(count)
        means.append(mean)

    for errors, most in ((counts, 0.03), (means, 0.005)):
        average = math.fsum(errors) / len(errors)
        spread = math.sqrt(math.fsum((one - average) ** 2 for one in errors) / (len(errors) - 1))
        assert abs(average) < 4 * spread / math.sqrt(len(errors))
        assert abs(average) < most


def weighted_errors(chance: random.Random) -> tuple[float, float]:
    """Return the relative error of the count, and the error of the mean, of one stream in which both change."""
    time = Time()
    thinner, came, total, seen, weight = TrafficThinner(1_200, clock=time), 0, 0.0, 0.0, 0.0
    while time.now < 20:
        rate = 5_000 * (1.05 + math.sin(time.now)) / 60 * 20 ** (time.now % 7 > 5)
        time.now += chance.expovariate(rate)
        value = 0.9 if rate < 150 else 0.6  # worse under load, so that ignoring the weights would overestimate the mean
        probability = thinner.next_probability()
        came, total = came + 1, total + value
        if 1 - chance.random() <= probability:
            seen, weight = seen + value / probability, weight + 1 / probability
    return weight / came - 1, seen / weight - total / came
