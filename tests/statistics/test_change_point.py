"""The moment at which a mean fell, and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.statistics import TimedMean, find_change, find_latest_fall

START = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = 24 * 60


def series(
    values: Sequence[float], minutes: Sequence[float] | None = None, groups: str = "a", *, zeros: bool = False
) -> list[TimedMean]:
    """Return single scores, one per minute unless given, from alternating groups. ``zeros`` counts 0 as a refusal."""
    found = []
    for number, (value, minute) in enumerate(zip(values, minutes or range(len(values)), strict=True)):
        start, refusals = START + int(minute) * MINUTE, int(zeros and value == 0)
        found.append(
            TimedMean(start, start + MINUTE, groups[number % len(groups)], 1 - refusals, value, refusals=refusals)
        )
    return found


def noise(count: int, seed: int = 1) -> list[float]:
    """Return small differences from a level."""
    return [float(each) for each in np.random.default_rng(seed).normal(0, 0.01, count)]


def planted_drop(random: np.random.Generator, kind: str) -> tuple[list[TimedMean], datetime]:
    """Return the scores of two weeks: 20 to 1,000 a day, a fall by .1 to .4, and levels that wander."""
    per_day, fall, wander = np.exp(random.uniform(np.log(20), np.log(1000))), random.uniform(0.1, 0.4), 0.015
    moment = random.uniform(11, 12) * DAY
    days = max(random.choice([0.25, 1, 2.5]), 30 / per_day, 40 / per_day * (0.3 / fall) ** 2)
    minutes = np.sort(random.uniform(0, moment + days * DAY, random.poisson(per_day * (moment / DAY + days))))
    is_bad = minutes >= moment
    wandered = random.normal(0, wander, 30)[(minutes // DAY).astype(int)]
    if kind == "refusals":
        mean = np.where(random.uniform(size=len(minutes)) < 0.04 + is_bad * fall / 0.8, 0.0, 0.8 + wandered)
        values = np.where(mean > 0, random.beta(15 * np.maximum(mean, 0.1), 15 * (1 - mean)), 0.0)
    elif kind == "binary":
        values = (random.uniform(size=len(minutes)) < 0.85 - is_bad * fall + wandered).astype(float)
    else:
        mean = 0.78 - is_bad * fall + wandered
        values = random.beta(8 * mean, 8 * (1 - mean))
    return series(values.tolist(), minutes.tolist(), zeros=kind == "refusals"), START + float(moment) * MINUTE


@given(
    before=st.integers(6, 60), since=st.integers(6, 60), drop=st.floats(0.1, 0.5), groups=st.sampled_from(["a", "abc"])
)
def test_the_moment_of_a_drop_without_noise_is_exact(before: int, since: int, drop: float, groups: str) -> None:
    """Neither the lengths of the two levels nor different levels of the groups matter."""
    levels = {"a": 0.9, "b": 0.7, "c": 0.5}
    values = [levels[groups[at % len(groups)]] - (drop if at >= before else 0) for at in range(before + since)]

    found = find_change(series(values, groups=groups))

    assert found is not None
    assert found.at == START + before * MINUTE
    assert (found.earliest, found.latest) == (found.at - MINUTE, found.at + MINUTE)
    assert found.size > 1


def test_no_drop_is_found_in_a_constant_level_or_in_few_scores() -> None:
    """Noise is no drop."""
    assert find_change(series([0.8 + each for each in noise(200)])) is None
    assert find_change(series([0.8] * 5 + [0.2] * 4)) is None
    assert find_change([]) is None


def test_a_rise_is_a_change_but_no_fall() -> None:
    """A rise is found only if falls are not asked for."""
    rise = series([0.4] * 50 + [0.8] * 50)

    found = find_change(rise)

    assert found is not None
    assert found.size < 0
    assert find_change(rise, falls_only=True) is None
    assert find_latest_fall(rise) is None


@pytest.mark.parametrize(
    ("levels", "fell"),
    [
        ([(0.8, 300), (0.4, 60)], 300),
        ([(0.8, 300), (0.4, 100), (0.8, 200), (0.6, 60)], 600),
        ([(0.5, 300), (0.8, 300), (0.7, 60)], 600),
        ([(0.8, 300), (0.75, 300), (0.4, 60)], 600),
        ([(0.8, 300), (0.4, 300), (0.38, 60)], 300),
    ],
    ids=[
        "one drop",
        "a recovered drop before it",
        "an improvement before it",
        "a smaller drop before it",
        "a dip since",
    ],
)
def test_the_drop_that_led_to_the_last_level_is_found(levels: list[tuple[float, int]], fell: int) -> None:
    """Earlier changes, and smaller ones since, do not hide it."""
    means = [mean for mean, n in levels for _ in range(n)]
    values = [mean + each for mean, each in zip(means, noise(len(means)), strict=True)]

    found = find_latest_fall(series(values))

    assert found is not None
    assert found.at == START + fell * MINUTE


def test_hours_and_single_scores_give_the_same_moment() -> None:
    """Scores may be given as means with a sum of squares."""
    values = [0.8 + each for each in noise(240)] + [0.5 + each for each in noise(240, 2)]
    single = series(values)
    pooled = [
        TimedMean(
            single[at].start, single[at + 59].end, "a", 60, float(np.mean(values[at : at + 60])),
            60 * float(np.var(values[at : at + 60])),
        )
        for at in range(0, 480, 60)
    ]  # fmt: skip

    found, coarse = find_change(single), find_change(pooled)

    assert found is not None
    assert coarse is not None
    assert coarse.at == found.at == START + 240 * MINUTE
    assert coarse.size == pytest.approx(found.size, rel=0.1)
    assert coarse.earliest <= found.earliest <= found.latest <= coarse.latest


def test_scores_of_the_same_minute_are_not_separated() -> None:
    """A drop begins between two minutes."""
    minutes = [at // 10 for at in range(200)]

    found = find_change(series([0.8] * 95 + [0.4] * 105, minutes))

    assert found is not None
    assert found.at in {START + 9 * MINUTE, START + 10 * MINUTE}


@pytest.mark.parametrize("kind", ["scores", "refusals", "binary"])
@pytest.mark.parametrize(("count", "share"), [(30, 0.9), pytest.param(400, 0.95, marks=pytest.mark.slow)])
def test_nineteen_of_twenty_intervals_contain_the_moment(kind: str, count: int, share: float) -> None:
    """The promise holds for refusals and scores of 0 and 1, which are far from normally distributed."""
    random = np.random.default_rng(7)
    drops = [planted_drop(random, kind) for _ in range(count)]
    found = [(find_change(scores, falls_only=True), moment) for scores, moment in drops]
    known = [(change, moment) for change, moment in found if change is not None]

    assert len(known) >= 0.95 * count
    assert sum(change.earliest <= moment < change.latest for change, moment in known) >= share * len(known)


def test_a_few_refusals_do_not_hide_when_the_other_answers_got_worse() -> None:
    """Refusals among good answers would otherwise dominate the spread."""
    random = np.random.default_rng(3)
    values = [0.0 if chance < 0.05 else 0.8 + each for chance, each in zip(random.random(400), noise(400), strict=True)]
    values += [0.7 + each for each in noise(12, 2)]

    found = find_change(series(values, zeros=True))

    assert found is not None
    assert found.at == START + 400 * MINUTE
    assert found.latest - found.earliest <= 3 * MINUTE


def test_more_refusals_are_a_fall() -> None:
    """The other answers may stay as good as they were."""
    values = [0.0 if at % 20 == 0 else 0.8 for at in range(200)] + [0.0 if at % 2 else 0.8 for at in range(40)]

    found = find_change(series(values, zeros=True))

    assert found is not None
    assert found.size > 0
    assert abs(found.at - START - 200 * MINUTE) <= 2 * MINUTE
