"""Limits on the stream that a detector processes: the baseline's traffic, and a few scores per user."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.alerting.detector.test_detector import BASELINE

from germane.alerting.detector.limiter import DAY, HOUR, MAX_GROWTH, MAX_SCORES_PER_USER, StreamLimiter, UserLimit

ROUTE = next(iter(BASELINE.routes))
PER_DAY = BASELINE.routes[ROUTE].scores_per_day


def select(limiter: StreamLimiter, per_day: float, days: float, *, since: float = DAY) -> float:
    """Return the number of selected scores per day, for traffic at an even rate."""
    count = round(per_day * days)
    times = since + days * DAY * (np.arange(count) + 1) / count
    draws = np.random.default_rng(3).random(count)
    return float(limiter.select([ROUTE] * count, [None] * count, draws, times).sum()) / days


@given(st.floats(0.1, 1.2))
def test_normal_traffic_is_not_downsampled(share: float) -> None:
    """This includes low traffic and weekday peaks."""
    assert select(StreamLimiter(BASELINE), share * PER_DAY, 10) == pytest.approx(share * PER_DAY, abs=0.1)


@given(st.sampled_from([3.0, 10.0, 50.0]))
def test_increased_traffic_is_downsampled_to_the_rate_of_the_baseline(factor: float) -> None:
    """Thinning starts after the first day, which is needed to learn the number of scores per day."""
    limiter = StreamLimiter(BASELINE)
    first = select(limiter, factor * PER_DAY, 1)
    later = select(limiter, factor * PER_DAY, 20, since=2 * DAY)

    assert first <= PER_DAY * (MAX_GROWTH * (1 + np.log(factor)) + 3)
    assert later == pytest.approx(MAX_GROWTH * PER_DAY, rel=0.15)


@given(st.lists(st.tuples(st.floats(0, 5 * HOUR), st.sampled_from(["ann", "bob"])), max_size=60))
def test_at_most_three_scores_per_user_and_hour_count(asked: list[tuple[float, str]]) -> None:
    """The first three scores of each clock hour count, even if the state is stored and restored in between."""
    limit, seen = UserLimit(), dict[tuple[int, str], int]()
    for at, user in sorted(asked):
        key = (int(at // HOUR), user)
        seen[key] = seen.get(key, 0) + 1
        assert limit.admits(user, at) == (seen[key] <= MAX_SCORES_PER_USER)
        limit = UserLimit(json.loads(json.dumps(limit.state())))


def test_scores_without_a_user_are_not_limited_and_unknown_routes_are_skipped() -> None:
    """Scores without a user are not limited; scores from routes outside the baseline are not processed."""
    limit = UserLimit()
    assert all(limit.admits(None, HOUR) for _ in range(10))
    assert "ann@example.com" not in json.dumps(limit.state() if limit.admits("ann@example.com", HOUR) else {})
    some = StreamLimiter(BASELINE).select(["new"], [None], np.array([0.0]), np.array([DAY]))
    assert not some.any()


@given(st.integers(0, 60))
def test_a_limiter_restored_from_its_state_selects_the_same_scores(cut: int) -> None:
    """Batches do not change which scores are selected."""
    times = DAY + np.arange(60) * DAY / (20 * PER_DAY)
    draws, users = np.random.default_rng(8).random(60), [f"u{number % 7}" for number in range(60)]
    whole = StreamLimiter(BASELINE).select([ROUTE] * 60, users, draws, times)

    first = StreamLimiter(BASELINE)
    before = first.select([ROUTE] * cut, users[:cut], draws[:cut], times[:cut])
    second = StreamLimiter(BASELINE, json.loads(json.dumps(first.state())))
    after = second.select([ROUTE] * (60 - cut), users[cut:], draws[cut:], times[cut:])
    assert np.concatenate([before, after]).tolist() == whole.tolist()
