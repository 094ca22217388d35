"""Trends: what a bucket says of its scores, and what it leaves to be said by others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import Coverage, Histogram, SamplingDecision, TrackingStore
from germane.storage.stats.histogram import pack_weights

Make = Callable[..., Exchange]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def scores(store: TrackingStore, make: Make) -> Callable[..., None]:
    """Writes one exchange per value, with its score; of None, one that is seen and not scored."""

    def write(
        values: Sequence[float | None],
        *,
        minutes: float = 0,
        fingerprint: str = "f1",
        chances: Sequence[float] = (),
        proxies: Sequence[float] = (),
        reason: UnscoredReason = UnscoredReason.NOT_SAMPLED,
        **given: Any,
    ) -> None:
        exchanges = [make(minutes + number / 1e4, **given) for number in range(len(values))]
        store.exchanges.add(exchanges)
        decisions = [
            SamplingDecision(
                one.id,
                chances[number] if chances else 1.0,
                "uniform",
                {"a": reason} if values[number] is None else {},
                proxy=proxies[number] if proxies else None,
                proxy_probability=1.0 if proxies else None,
            )
            for number, one in enumerate(exchanges)
        ]
        store.sampling.assign_tasks(decisions, {"a": fingerprint})
        found = {one.id: value for one, value in zip(exchanges, values, strict=True)}
        claims = store.queue.claim_tasks("me", {"a": fingerprint}, limit=5000, lease=HOUR)
        tasks = [task for claim in claims for task in claim.tasks]
        store.queue.complete_tasks(
            "me", [(task, Score(scorer="a", fingerprint=fingerprint, value=found[task.exchange_id])) for task in tasks]
        )

    return write


@pytest.fixture
def window(make: Make) -> dict[str, Any]:
    """Two days by the hour."""
    eleven = make().started_at
    return {"scorer": "a", "bucket": HOUR, "since": eleven - DAY, "until": eleven + DAY}


@pytest.mark.parametrize("roll", [False, True])
def test_another_judge_begins_a_new_line_with_a_marker(
    store: TrackingStore, scores: Any, window: Any, roll: bool
) -> None:
    """The first bucket of each fingerprint but the first is marked; no bucket mixes two."""
    scores([0.2], minutes=-120, fingerprint="old")
    scores([0.4], minutes=0, fingerprint="old")
    scores([0.9], minutes=30, fingerprint="new")
    scores([0.8], minutes=70, fingerprint="new")
    store.rollups.update() if roll else None

    found = [(one.start.hour, one.fingerprint, one.mean, one.judge_changed) for one in store.trends.over_time(**window)]

    assert found == [(9, "old", 0.2, False), (11, "new", 0.9, True), (11, "old", 0.4, False), (12, "new", 0.8, False)]


@pytest.mark.parametrize("roll", [False, True])
def test_a_trend_may_be_broken_down(store: TrackingStore, scores: Any, window: Any, roll: bool) -> None:
    """By route, service, model, version of the prompt or an attribute; what has none has an empty label."""
    scores([0.2], route="ask", model="m1", attributes={"tier": True})
    scores([0.4], route="search", model="m2", prompt_version="7", attributes={"tier": 3})
    scores([0.6], route="search", service="blog")
    store.rollups.update(breakdowns=["model"]) if roll else None

    expected = {
        "route": {"ask": 0.2, "search": 0.5},
        "service": {"shop": 0.3, "blog": 0.6},
        "model": {"m1": 0.2, "m2": 0.4, "": 0.6},
        "prompt_version": {"7": 0.4, "": 0.4},
        "attributes.tier": {"true": 0.2, "3": 0.4, "": 0.6},
    }
    for by, means in expected.items():
        assert {one.group: one.mean for one in store.trends.over_time(**window, by=by)} == pytest.approx(means)
    assert [one.n for one in store.trends.over_time(**window, service="shop", route="search")] == [1]
    with pytest.raises(UsageError, match=r"use route, service, model, prompt_version or attributes\.NAME"):
        store.trends.over_time(**window, by="user")


@pytest.mark.parametrize("roll", [False, True])
def test_a_bucket_says_what_it_does_not_cover(store: TrackingStore, scores: Any, window: Any, roll: bool) -> None:
    """Scored of seen, of its own time and route; hours without any score are in the trend of the coverage alone."""
    scores([0.5, None, None], minutes=0, route="ask")
    scores([None], minutes=90, route="ask")
    scores([0.7], minutes=0, route="search")
    store.rollups.update() if roll else None
    names: dict[str, Any] = {"service": "", "scorer": "a"}

    assert [one.coverage for one in store.trends.over_time(**window, by="route")] == [
        Coverage(**names, route="ask", seen=3, scored=1, pending=0, skipped={"not_sampled": 2}),
        Coverage(**names, route="search", seen=1, scored=1, pending=0),
    ]
    covered = store.trends.coverage_over_time(**window, route="ask")
    assert [(one.start.hour, one.seen, one.scored) for one in covered] == [(11, 3, 1), (12, 1, 0)]
    until = window["until"] - DAY + HOUR
    assert [one.seen for one in store.trends.coverage(since=window["since"], until=until)] == [3, 1]


def test_late_scores_lie_in_the_bucket_of_their_answer(
    store: TrackingStore, scores: Any, window: Any, clock: Any
) -> None:
    """However long the judge was away, and though the hour was rolled up long ago."""
    scores([0.5], minutes=0)
    store.rollups.update()
    clock.advance(hours=9)
    scores([0.7], minutes=1)

    [bucket] = store.trends.over_time(**window)
    assert (bucket.start.hour, bucket.n) == (11, 2)
    assert bucket.mean == pytest.approx(0.6)


@pytest.mark.parametrize("roll", [False, True])
def test_percentiles_come_from_the_histogram(store: TrackingStore, scores: Any, window: Any, roll: bool) -> None:
    """Within a hundredth of those of the scores, each of which counts by its weight."""
    random = np.random.default_rng(5)
    values = np.round(random.beta(4, 2, 400), 3)
    scores(values.tolist(), chances=[0.5] * 400)
    store.rollups.update() if roll else None

    [bucket] = store.trends.over_time(**window)
    for percent in (5, 25, 50, 75, 95):
        assert bucket.percentile(percent) == pytest.approx(np.percentile(values, percent), abs=0.011)
    assert sum(bucket.histogram.weights) == pytest.approx(800)  # type: ignore[union-attr]
    assert store.trends.over_time(**window, histograms=False)[0].percentile(50) is None
    assert (
        store.trends.summary()[0].histogram
        == store.trends.means(scorer="a", since=None)[0].histogram
        == bucket.histogram
    )


def test_a_percentile_is_read_within_its_bin() -> None:
    """Weights are taken to be spread evenly in a bin; 0 and 100 are the ends of what there is."""
    weights = [0.0] * 100
    weights[20], weights[70] = 1.0, 3.0
    histogram = Histogram(tuple(weights))

    found = [histogram.percentile(percent) for percent in (0, 25, 62.5, 100)]

    assert found == pytest.approx([0.20, 0.21, 0.705, 0.71])
    assert Histogram((0.0,) * 100).percentile(50) is None
    with pytest.raises(ValueError, match="between 0 and 100"):
        histogram.percentile(101)


def test_a_histogram_that_was_packed_is_the_same() -> None:
    """Of few bins, of many, and of several that are added up; neither equal to another one."""
    few, many = {3: 0.5, 99: 2.0}, [float(number) for number in range(100)]
    both = [many[number] + few.get(number, 0.0) for number in range(100)]

    assert Histogram.of([pack_weights(few)]) == Histogram([few.get(number, 0.0) for number in range(100)])
    assert Histogram.of([pack_weights(many)]).weights == tuple(many)
    assert Histogram.of([pack_weights(many), pack_weights(few)]) == Histogram(both) != Histogram(many)


@pytest.mark.parametrize("roll", [False, True])
def test_proxies_correct_a_mean_where_that_makes_it_surer(
    store: TrackingStore, scores: Any, window: Any, roll: bool
) -> None:
    """Those scored have happened to be the better ones: the mean is brought back, and says by which correlation."""
    random = np.random.default_rng(7)
    proxies = random.random(300)
    values = 0.2 + 0.6 * proxies + random.normal(0, 0.02, 300)
    chance = (0.2 + proxies) / (0.2 + proxies).sum()
    picked = set(random.choice(300, 60, replace=False, p=chance).tolist())
    chosen = [float(value) if number in picked else None for number, value in enumerate(values)]
    scores(chosen, chances=[0.2] * 300, proxies=proxies.tolist())
    store.rollups.update() if roll else None

    [mean], [bucket], [summary] = (
        store.trends.means(scorer="a", since=None),
        store.trends.over_time(**window),
        store.trends.summary(),
    )

    plain = statistics.fmean(value for value in chosen if value is not None)
    assert plain > values.mean() + 0.05
    assert mean.mean == pytest.approx(values.mean(), abs=0.01)
    assert mean.correlation is not None
    assert mean.correlation > 0.9
    for one in (bucket, summary):
        assert (one.mean, *(one.interval or ())) == pytest.approx((mean.mean, *(mean.interval or ())), abs=1e-9)
    assert mean.interval is not None
    assert mean.interval[0] < values.mean() < mean.interval[1]


@pytest.mark.parametrize(
    "given", [{"reason": UnscoredReason.FILTERED}, {"fingerprint": "f2"}], ids=["filtered", "two fingerprints"]
)
def test_proxies_of_other_exchanges_correct_nothing(store: TrackingStore, scores: Any, given: Any) -> None:
    """A scorer that looks at some of them alone, or that changed meanwhile, has a mean of another population."""
    random = np.random.default_rng(7)
    proxies = random.random(120)
    values = (0.2 + 0.6 * proxies).tolist()
    scores(values[:60], proxies=proxies[:60].tolist())
    others = [None] * 60 if "reason" in given else values[60:]
    scores(others, minutes=1, proxies=proxies[60:].tolist(), **given)

    assert all(one.correlation is None for one in store.trends.means(scorer="a", since=None))


def test_a_mean_over_the_view_is_that_of_the_summary(store: TrackingStore, scores: Any) -> None:
    """``answers`` has weight and fingerprint, for whoever reads with SQL."""
    scores([0.9, 0.8, 0.2, None], chances=[0.1, 0.2, 1.0, 0.5])
    query = "SELECT fingerprint, sum(weight * value) / sum(weight) FROM answers WHERE value IS NOT NULL GROUP BY 1"

    with store._database.read() as connection:
        rows = [tuple(row) for row in connection.execute(text(query))]

    assert rows == [(one.fingerprint, pytest.approx(one.mean, abs=1e-9)) for one in store.trends.summary()]


def test_fewer_than_twenty_are_not_enough(store: TrackingStore, scores: Any, window: Any) -> None:
    """A bucket says so itself."""
    scores([0.5] * 19)
    scores([0.5] * 20, minutes=60)

    assert [one.has_min_samples for one in store.trends.over_time(**window)] == [False, True]


def test_a_window_has_a_zone(store: TrackingStore, window: Any) -> None:
    """Nobody can say when a moment was that has none; it is not taken for the time of this machine."""
    naive = window["since"].replace(tzinfo=None)

    for read in (store.trends.over_time, store.trends.coverage_over_time):
        with pytest.raises(UsageError, match=r"^since = .* has no time zone$"):
            read(**window | {"since": naive})
    for summary in (store.trends.summary, store.trends.coverage):
        with pytest.raises(UsageError, match=r"^until = .* has no time zone$"):
            summary(until=naive)


@pytest.mark.parametrize("roll", [False, True])
def test_a_window_may_be_as_long_as_time(store: TrackingStore, scores: Any, window: Any, roll: bool) -> None:
    """From the first moment that there is to the last one."""
    scores([0.5])
    store.rollups.update() if roll else None
    always: dict[str, Any] = {"since": datetime.min.replace(tzinfo=UTC), "until": datetime.max.replace(tzinfo=UTC)}

    assert [one.n for one in store.trends.over_time(**window | always)] == [1]
    assert [one.n for one in store.trends.summary(**always)] == [1]
    assert store.trends.summary(since=always["until"], until=always["since"]) == []


def test_coverage_is_of_whole_minutes(store: TrackingStore, scores: Any, window: Any) -> None:
    """A bucket that ends within a minute cannot tell which of its counts are its own."""
    scores([0.5])

    assert [one.coverage for one in store.trends.over_time(**window | {"bucket": timedelta(seconds=90)})] == [None]
    with pytest.raises(UsageError, match="bucket = 0:01:30 is not a multiple of one minute"):
        store.trends.coverage_over_time(**window | {"bucket": timedelta(seconds=90)})
