"""Trends: means, coverage and percentiles per bucket."""

from __future__ import annotations

import gc
import statistics
import weakref
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from sqlalchemy import text

from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.statistics import Histogram
from germane.statistics.histogram import pack_weights
from germane.storage import Coverage, SamplingDecision, TrackingStore
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def write_scores(store: TrackingStore, make: Make) -> Callable[..., None]:
    """Write one scored exchange per value; None is an exchange that was seen but not scored."""

    def write(
        values: Sequence[float | None],
        *,
        minutes: float = 0,
        fingerprint: str = "f1",
        probabilities: Sequence[float] = (),
        proxies: Sequence[float] = (),
        reason: UnscoredReason = UnscoredReason.NOT_SAMPLED,
        **given: Any,
    ) -> None:
        exchanges = [make(minutes + number / 1e4, **given) for number in range(len(values))]
        store.exchanges.add(exchanges)
        decisions = [
            SamplingDecision(
                exchange.id,
                probabilities[number] if probabilities else 1.0,
                "uniform",
                {"a": reason} if values[number] is None else {},
                proxy=proxies[number] if proxies else None,
                proxy_probability=1.0 if proxies else None,
            )
            for number, exchange in enumerate(exchanges)
        ]
        store.sampling.assign_tasks(decisions, {"a": fingerprint})
        found = {exchange.id: value for exchange, value in zip(exchanges, values, strict=True)}
        claims = store.queue.claim_tasks("me", {"a": fingerprint}, limit=5000, lease=HOUR)
        tasks = [task for claim in claims for task in claim.tasks]
        store.queue.complete_tasks(
            "me", [(task, Score(scorer="a", fingerprint=fingerprint, value=found[task.exchange_id])) for task in tasks]
        )

    return write


@pytest.fixture
def window(make: Make) -> dict[str, Any]:
    """Two days in hourly buckets."""
    eleven = make().started_at
    return {"scorer": "a", "bucket": HOUR, "since": eleven - DAY, "until": eleven + DAY}


@pytest.mark.parametrize("rolled_up", [False, True])
def test_new_fingerprint_starts_a_new_series(
    store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool
) -> None:
    """The first bucket of each later fingerprint is marked; no bucket mixes two."""
    write_scores([0.2], minutes=-120, fingerprint="old")
    write_scores([0.4], minutes=0, fingerprint="old")
    write_scores([0.9], minutes=30, fingerprint="new")
    write_scores([0.8], minutes=70, fingerprint="new")
    store.rollups.update() if rolled_up else None

    found = [
        (bucket.start.hour, bucket.fingerprint, bucket.mean, bucket.judge_changed)
        for bucket in store.trends.over_time(**window)
    ]

    assert found == [(9, "old", 0.2, False), (11, "new", 0.9, True), (11, "old", 0.4, False), (12, "new", 0.8, False)]


@pytest.mark.parametrize("rolled_up", [False, True])
def test_trend_can_be_broken_down(store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool) -> None:
    """Breakdowns are by route, service, model, prompt version or attribute; missing values have an empty label."""
    write_scores([0.2], route="ask", model="m1", attributes={"tier": True})
    write_scores([0.4], route="search", model="m2", prompt_version="7", attributes={"tier": 3})
    write_scores([0.6], route="search", service="blog")
    store.rollups.update(breakdowns=["model"]) if rolled_up else None

    expected = {
        "route": {"ask": 0.2, "search": 0.5},
        "service": {"shop": 0.3, "blog": 0.6},
        "model": {"m1": 0.2, "m2": 0.4, "": 0.6},
        "prompt_version": {"7": 0.4, "": 0.4},
        "attributes.tier": {"true": 0.2, "3": 0.4, "": 0.6},
    }
    for by, means in expected.items():
        assert {bucket.group: bucket.mean for bucket in store.trends.over_time(**window, by=by)} == pytest.approx(means)
    assert [bucket.n for bucket in store.trends.over_time(**window, service="shop", route="search")] == [1]
    with pytest.raises(UsageError, match=r"use route, service, model, prompt_version or attributes\.NAME"):
        store.trends.over_time(**window, by="user")


@pytest.mark.parametrize("rolled_up", [False, True])
def test_each_trend_bucket_includes_its_coverage(
    store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool
) -> None:
    """Hours without scores appear only in the coverage trend."""
    write_scores([0.5, None, None], minutes=0, route="ask")
    write_scores([None], minutes=90, route="ask")
    write_scores([0.7], minutes=0, route="search")
    store.rollups.update() if rolled_up else None
    names: dict[str, Any] = {"service": "", "scorer": "a"}

    assert [bucket.coverage for bucket in store.trends.over_time(**window, by="route")] == [
        Coverage(**names, route="ask", seen=3, scored=1, pending=0, skipped={"not_sampled": 2}),
        Coverage(**names, route="search", seen=1, scored=1, pending=0),
    ]
    assert {bucket.coverage for bucket in store.trends.over_time(**window, by="route", coverage=False)} == {None}
    covered = store.trends.coverage_over_time(**window, route="ask")
    assert [(coverage.start.hour, coverage.seen, coverage.scored) for coverage in covered] == [(11, 3, 1), (12, 1, 0)]
    until = window["until"] - DAY + HOUR
    assert [coverage.seen for coverage in store.trends.coverage(since=window["since"], until=until)] == [3, 1]


def test_late_scores_count_in_the_bucket_of_their_exchange(
    store: TrackingStore, write_scores: Any, window: Any, clock: Any
) -> None:
    """The bucket includes a late score even if the hour has already been rolled up."""
    write_scores([0.5], minutes=0)
    store.rollups.update()
    clock.advance(hours=9)
    write_scores([0.7], minutes=1)

    [bucket] = store.trends.over_time(**window)
    assert (bucket.start.hour, bucket.n) == (11, 2)
    assert bucket.mean == pytest.approx(0.6)


@pytest.mark.parametrize("rolled_up", [False, True])
def test_percentiles_are_accurate_to_one_bin(
    store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool
) -> None:
    """Percentiles are within 0.011 of the scores' weighted percentiles."""
    random = np.random.default_rng(5)
    values = np.round(random.beta(4, 2, 400), 3)
    write_scores(values.tolist(), probabilities=[0.5] * 400)
    store.rollups.update() if rolled_up else None

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


def test_percentile_is_interpolated_within_its_bin() -> None:
    """Weights are spread evenly over a bin; 0 and 100 are the ends of the data."""
    weights = [0.0] * 100
    weights[20], weights[70] = 1.0, 3.0
    histogram = Histogram(tuple(weights))

    found = [histogram.percentile(percent) for percent in (0, 25, 62.5, 100)]

    assert found == pytest.approx([0.20, 0.21, 0.705, 0.71])
    assert Histogram((0.0,) * 100).percentile(50) is None
    with pytest.raises(ValueError, match=r"^percent must be from 0 to 100, not 101$"):
        histogram.percentile(101)


def test_packed_histogram_unpacks_to_the_same_counts() -> None:
    """Sparse, dense and merged histograms keep their weights."""
    few, many = {3: 0.5, 99: 2.0}, [float(number) for number in range(100)]
    both = [many[number] + few.get(number, 0.0) for number in range(100)]

    assert Histogram.of([pack_weights(few)]) == Histogram([few.get(number, 0.0) for number in range(100)])
    assert Histogram.of([pack_weights(many)]).weights == tuple(many)
    assert Histogram.of([pack_weights(many), pack_weights(few)]) == Histogram(both) != Histogram(many)


@pytest.mark.parametrize("rolled_up", [False, True])
def test_proxy_scores_correct_a_biased_mean(
    store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool
) -> None:
    """The correction removes the bias of the scored sample and reports the correlation."""
    random = np.random.default_rng(7)
    proxies = random.random(300)
    values = 0.2 + 0.6 * proxies + random.normal(0, 0.02, 300)
    probability = (0.2 + proxies) / (0.2 + proxies).sum()
    picked = set(random.choice(300, 60, replace=False, p=probability).tolist())
    chosen = [float(value) if number in picked else None for number, value in enumerate(values)]
    write_scores(chosen, probabilities=[0.2] * 300, proxies=proxies.tolist())
    store.rollups.update() if rolled_up else None

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


def test_proxy_scores_are_added_up_over_rollups_and_rows(store: TrackingStore, write_scores: Any) -> None:
    """The corrected mean is the same if only some hours of a window have been rolled up."""
    random = np.random.default_rng(7)
    for minutes in (-120, -60, 0):
        proxies = random.random(100)
        scored = [0.2 + 0.6 * float(x) if random.random() < 0.2 + x / 2 else None for x in proxies]
        write_scores(scored, minutes=minutes, proxies=proxies.tolist())
        store.rollups.update() if minutes == -120 else None

    [mixed] = store.trends.means(scorer="a", since=None)
    store.rollups.update()
    [rolled_up] = store.trends.means(scorer="a", since=None)

    assert mixed.correlation is not None
    assert (mixed.mean, *(mixed.interval or ())) == pytest.approx((rolled_up.mean, *(rolled_up.interval or ())))


@pytest.mark.parametrize(
    "given", [{"reason": UnscoredReason.FILTERED}, {"fingerprint": "f2"}], ids=["filtered", "two fingerprints"]
)
def test_proxy_scores_from_a_different_population_are_not_used(
    store: TrackingStore, write_scores: Any, given: Any
) -> None:
    """Filtered exchanges or a changed fingerprint disable the correction."""
    random = np.random.default_rng(7)
    proxies = random.random(120)
    values = (0.2 + 0.6 * proxies).tolist()
    write_scores(values[:60], proxies=proxies[:60].tolist())
    others = [None] * 60 if "reason" in given else values[60:]
    write_scores(others, minutes=1, proxies=proxies[60:].tolist(), **given)

    assert all(mean.correlation is None for mean in store.trends.means(scorer="a", since=None))


def test_counting_stops_at_a_limit_except_for_open_tasks(store: TrackingStore, write_scores: Any, make: Make) -> None:
    """Closed tasks may be millions; the number of open ones is needed as it is."""
    write_scores([0.5, 0.5, 0.5, None, None, None])
    waiting = [make() for _ in range(3)]
    store.exchanges.add(waiting)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in waiting], {"a": "f1"})

    def numbers(at_most: int | None) -> tuple[int, ...]:
        counts = store.answers.counts(at_most=at_most)
        return counts.captured, counts.scores, counts.done, counts.skipped, counts.pending

    assert numbers(2) == (2, 2, 2, 2, 3)
    assert numbers(4) == (4, 3, 3, 3, 3)
    assert numbers(None) == (9, 3, 3, 3, 3)


def test_sql_view_returns_the_same_mean_as_the_summary(store: TrackingStore, write_scores: Any) -> None:
    """The ``answers`` view has weights and fingerprints for use in SQL."""
    write_scores([0.9, 0.8, 0.2, None], probabilities=[0.1, 0.2, 1.0, 0.5])
    query = "SELECT fingerprint, sum(weight * value) / sum(weight) FROM answers WHERE value IS NOT NULL GROUP BY 1"

    with transaction(store, read_only=True) as connection:
        rows = [tuple(row) for row in connection.execute(text(query))]

    assert rows == [(summary.fingerprint, pytest.approx(summary.mean, abs=1e-9)) for summary in store.trends.summary()]


def test_trend_bucket_has_enough_samples_with_twenty_scores(
    store: TrackingStore, write_scores: Any, window: Any
) -> None:
    """Buckets with fewer scores report it in ``has_min_samples``."""
    write_scores([0.5] * 19)
    write_scores([0.5] * 20, minutes=60)

    assert [bucket.has_min_samples for bucket in store.trends.over_time(**window)] == [False, True]


def test_trend_window_requires_a_time_zone(store: TrackingStore, window: Any) -> None:
    """A naive datetime raises ``UsageError``."""
    naive = window["since"].replace(tzinfo=None)

    for read in (store.trends.over_time, store.trends.coverage_over_time):
        with pytest.raises(UsageError, match=r"^since = .* has no time zone$"):
            read(**window | {"since": naive})
    for summary in (store.trends.summary, store.trends.coverage):
        with pytest.raises(UsageError, match=r"^until = .* has no time zone$"):
            summary(until=naive)


@pytest.mark.parametrize("rolled_up", [False, True])
def test_trend_window_can_span_all_datetimes(
    store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool
) -> None:
    """A window may extend from ``datetime.min`` to ``datetime.max``, and may be empty."""
    write_scores([0.5])
    store.rollups.update() if rolled_up else None
    always: dict[str, Any] = {"since": datetime.min.replace(tzinfo=UTC), "until": datetime.max.replace(tzinfo=UTC)}

    assert [bucket.n for bucket in store.trends.over_time(**window | always)] == [1]
    assert [summary.n for summary in store.trends.summary(**always)] == [1]
    assert store.trends.summary(since=always["until"], until=always["since"]) == []


def test_coverage_requires_buckets_of_whole_minutes(store: TrackingStore, write_scores: Any, window: Any) -> None:
    """Other buckets have no coverage, and a coverage trend with them raises ``UsageError``."""
    write_scores([0.5])

    assert [bucket.coverage for bucket in store.trends.over_time(**window | {"bucket": timedelta(seconds=90)})] == [
        None
    ]
    with pytest.raises(UsageError, match="bucket must be a multiple of one minute, not 0:01:30"):
        store.trends.coverage_over_time(**window | {"bucket": timedelta(seconds=90)})


@pytest.mark.parametrize("rolled_up", [False, True])
def test_days_that_start_within_an_hour_can_be_read_for_years(
    store: TrackingStore, write_scores: Any, window: Any, rolled_up: bool
) -> None:
    """In India, each midnight is within an hour of UTC, whose rows are read without rollups: two parts per day."""
    write_scores([0.2, 0.4], minutes=-60 * 24 * 700)
    write_scores([0.6], minutes=-5)
    store.rollups.update() if rolled_up else None
    years = {**window, "bucket": DAY, "since": window["since"] - 730 * DAY}

    trend = store.trends.over_time(**years, timezone=ZoneInfo("Asia/Kolkata"))

    assert [(bucket.n, bucket.mean, bucket.coverage and bucket.coverage.seen) for bucket in trend] == [
        (2, pytest.approx(0.3), 2),
        (1, pytest.approx(0.6), 1),
    ]


def test_closed_store_leaves_no_statements_in_memory(tmp_path: Path, window: Any) -> None:
    """A process that opens stores again and again, such as an application that restarts germane, does not grow."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'closed.db'}")
    store.migrate()
    list(store.trends.over_time(**window))
    dialect = weakref.ref(engine_of(store).dialect)
    store.close()
    del store
    gc.collect()

    assert dialect() is None
