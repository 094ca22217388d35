"""The capture limit holds whatever the traffic does, and what it keeps stands for all that came."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from germane.storage.ingest.rate_limit import Thinning

LIMIT = 6_000
MILLION = 1_000_000


class Time:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def stream(thinning: Thinning, time: Time, rate: float, seconds: float) -> list[float]:
    """Let exchanges come at an even rate a minute; return their probabilities."""
    found = []
    for _ in range(round(rate * seconds / 60)):
        time.now += 60 / rate
        found.append(thinning.probability())
    return found


def test_under_the_limit_everything_is_kept() -> None:
    """With probability 1, for ever."""
    time = Time()
    assert set(stream(Thinning(LIMIT, clock=time), time, LIMIT * 0.99, 600)) == {1.0}


@pytest.mark.parametrize("rate", [2 * LIMIT, 100_000, MILLION])
def test_beyond_it_about_as_many_are_kept_as_it_allows(rate: int) -> None:
    """A little more in the first minute, which begins with a full credit; then the limit, within each second."""
    time = Time()
    thinning = Thinning(LIMIT, clock=time)

    assert LIMIT < sum(stream(thinning, time, rate, 60)) < 1.2 * LIMIT
    for _ in range(10):
        assert sum(stream(thinning, time, rate, 1)) == pytest.approx(LIMIT / 60, rel=0.05)


def test_a_burst_out_of_nothing_is_thinned_as_it_comes() -> None:
    """No clock has to tick for it: of a hundred thousand at one moment, less than a fifth of a limit is kept."""
    thinning = Thinning(LIMIT, clock=Time())

    kept = [thinning.probability() for _ in range(100_000)]

    assert kept[: LIMIT // 10] == [1.0] * (LIMIT // 10)
    assert 0.0 < kept[-1] < 1e-3
    assert sum(kept) < 0.2 * LIMIT
    assert all(later <= earlier for earlier, later in pairwise(kept))


def test_when_the_traffic_falls_everything_is_kept_again_soon() -> None:
    """A few seconds after a million a minute; the whole credit, which is the end of it, in ten more."""
    time = Time()
    thinning = Thinning(LIMIT, clock=time)
    stream(thinning, time, MILLION, 60)
    assert not thinning.rested

    assert min(stream(thinning, time, LIMIT / 10, 20)[LIMIT // 10 * 5 // 60 :]) == 1.0
    assert thinning.rested


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_a_small_limit_is_kept_too(limit: int) -> None:
    """But for a few exchanges in the first minute."""
    time = Time()
    thinning = Thinning(limit, clock=time)

    assert sum(stream(thinning, time, 10_000, 60)) < limit * 1.1 + 13
    assert sum(stream(thinning, time, 10_000, 60)) == pytest.approx(limit, rel=0.05, abs=0.5)


@given(
    some.lists(some.tuples(some.floats(0, 5), some.integers(1, 300)), min_size=1, max_size=20),
    some.integers(1, 100_000),
)
def test_a_probability_is_in_its_range_whatever_comes(bursts: list[tuple[float, int]], limit: int) -> None:
    """Never 0: an exchange that cannot be kept is one that nothing stands for."""
    time = Time()
    thinning = Thinning(limit, clock=time)
    for pause, count in bursts:
        time.now += pause
        assert all(0 < thinning.probability() <= 1 for _ in range(count))


@given(some.lists(some.floats(0, 0.2), min_size=1, max_size=400), some.integers(1, 2_000))
def test_a_probability_knows_nothing_of_the_draws(pauses: list[float], limit: int) -> None:
    """It follows from the times of arrival alone: twice the same stream, twice the same probabilities."""
    first, second = Time(), Time()
    one, other = Thinning(limit, clock=first), Thinning(limit, clock=second)
    for pause in pauses:
        first.now, second.now = first.now + pause, second.now + pause
        assert one.probability() == other.probability()


def test_what_is_kept_stands_for_all_that_came() -> None:
    """Traffic that rises and falls by hundreds: the sum of 1/p is the count, and weighted means are those of all.

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
    thinning, came, total, seen, weight = Thinning(1_200, clock=time), 0, 0.0, 0.0, 0.0
    while time.now < 20:
        rate = 5_000 * (1.05 + math.sin(time.now)) / 60 * 20 ** (time.now % 7 > 5)
        time.now += chance.expovariate(rate)
        value = 0.9 if rate < 150 else 0.6  # worse under load: thinning that ignored its weights would flatter
        probability = thinning.probability()
        came, total = came + 1, total + value
        if 1 - chance.random() <= probability:
            seen, weight = seen + value / probability, weight + 1 / probability
    return weight / came - 1, seen / weight - total / came
