"""Means with their sample size and interval: weighted by inverse sampling probability, one per fingerprint."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from germane.exchange import Exchange
from germane.score import Score
from germane.statistics.estimate import WeightedSums, estimate_mean
from germane.storage import Coverage, SamplingDecision, TrackingStore

Make = Callable[..., Exchange]
Scores = Callable[..., list[Exchange]]


@pytest.fixture
def write_scores(store: TrackingStore, make: Make) -> Scores:
    """Write one scored exchange per value."""

    def write(
        values: Sequence[float],
        *,
        start: float = 0,
        step: float = 0,
        probabilities: Sequence[float] = (),
        fingerprint: str = "f1",
        scorer: str = "relevancy",
        label: str | None = None,
        **given: Any,
    ) -> list[Exchange]:
        exchanges = [make(start + step * number, **given) for number in range(len(values))]
        store.exchanges.add(exchanges)
        inclusion_probabilities = probabilities or [1.0] * len(values)
        decisions = [
            SamplingDecision(exchange.id, chance, "uniform")
            for exchange, chance in zip(exchanges, inclusion_probabilities, strict=True)
        ]
        store.sampling.assign_tasks(decisions, {scorer: fingerprint})
        value_of = {exchange.id: value for exchange, value in zip(exchanges, values, strict=True)}
        claims = store.queue.claim_tasks("me", {scorer: fingerprint}, limit=9999, lease=timedelta(hours=1))
        tasks = [task for claim in claims for task in claim.tasks]
        store.queue.complete_tasks(
            "me",
            [
                (task, Score(scorer=scorer, fingerprint=fingerprint, value=value_of[task.exchange_id], label=label))
                for task in tasks
            ],
        )
        return exchanges

    return write


def test_mean_is_weighted_by_inverse_probability(store: TrackingStore, write_scores: Scores) -> None:
    """If one in ten good answers and all bad ones are scored, the mean equals the mean of all answers."""
    write_scores([0.9, 0.8, 0.2, 0.3], probabilities=[0.1, 0.1, 1.0, 1.0])

    [mean] = store.trends.means(scorer="relevancy", since=None)

    assert mean.mean == pytest.approx((10 * 0.9 + 10 * 0.8 + 0.2 + 0.3) / 22)
    assert mean.low_share == pytest.approx(2 / 22)
    assert mean.n == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "label", [None, "relevant", "mostly_relevant", "partly_relevant", "irrelevant", "noncommittal", "off (incomplete)"]
)
@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, 0.7])
def test_calibrated_band_decides_whether_a_score_is_low(
    store: TrackingStore, write_scores: Scores, label: str | None, value: float
) -> None:
    """The band takes precedence over the raw value, in the database and in ``Score.is_low``."""
    write_scores([value], label=label)

    [mean] = store.trends.means(scorer="relevancy", since=None)

    low = (
        label == "irrelevant"
        if label in {"relevant", "mostly_relevant", "partly_relevant", "irrelevant"}
        else value < 0.5
    )
    assert mean.low_share == low
    assert Score(scorer="relevancy", value=value, label=label).is_low == low


def test_equal_weights_give_the_unweighted_statistics(store: TrackingStore, write_scores: Scores) -> None:
    """Mean and standard deviation match the statistics module."""
    values = [0.4, 0.6, 0.7, 0.8, 0.9]
    write_scores(values)

    [mean] = store.trends.means(scorer="relevancy", since=None)

    assert mean.mean == pytest.approx(statistics.fmean(values))
    assert mean.deviation == pytest.approx(statistics.stdev(values))
    assert mean.low_share == pytest.approx(0.2)
    assert mean.noncommittal_share is None  # no scorer of this name detects refusals
    assert mean.interval is not None
    assert mean.interval[0] < mean.mean < mean.interval[1]


@pytest.mark.parametrize(("fingerprint", "share"), [("external", None), ("0123456789ab", 0.0)])
def test_refusals_among_external_scores_are_not_measured(
    store: TrackingStore, write_scores: Scores, fingerprint: str, share: float | None
) -> None:
    """Scores recorded under a built-in name say nothing about refusals, unlike those of the built-in scorer."""
    write_scores([0.4, 0.6], scorer="answer_relevancy", fingerprint=fingerprint)

    [mean] = store.trends.means(scorer="answer_relevancy", since=None)
    [by_attribute] = store.trends.means(scorer="answer_relevancy", since=None, by="model")

    assert (mean.noncommittal_share, by_attribute.noncommittal_share) == (share, share)


def test_mean_of_a_single_score_has_no_interval(store: TrackingStore, write_scores: Scores) -> None:
    """A single score has no standard deviation either."""
    write_scores([0.5])

    [mean] = store.trends.means(scorer="relevancy", since=None)

    assert (mean.interval, mean.deviation) == (None, None)


def test_means_never_mix_scores_of_different_fingerprints(store: TrackingStore, write_scores: Scores) -> None:
    """Each fingerprint has its own mean, and the fingerprint of the latest answer is marked as newest."""
    write_scores([0.9, 0.9], start=0, fingerprint="old")
    write_scores([0.1, 0.1], start=10, fingerprint="new")

    found = store.trends.means(scorer="relevancy", since=None)

    assert {one.fingerprint: one.mean for one in found} == pytest.approx({"old": 0.9, "new": 0.1})
    assert [one.fingerprint for one in found if one.newest] == ["new"]


def test_means_are_computed_per_route_and_window(store: TrackingStore, write_scores: Scores, make: Make) -> None:
    """Windows include since and exclude until."""
    write_scores([0.2, 0.4], start=0, step=1, route="ask")
    write_scores([0.8], start=1, route="search")
    write_scores([0.6], scorer="other", route="ask")
    eleven = make(0).started_at

    everything = store.trends.means(scorer="relevancy", since=None)
    late = store.trends.means(scorer="relevancy", since=eleven + timedelta(minutes=1), route="ask")

    assert [(one.route, one.n) for one in everything] == [("ask", 2), ("search", 1)]
    assert [(one.route, round(one.mean, 6)) for one in late] == [("ask", 0.4)]
    assert store.trends.means(scorer="relevancy", since=eleven, until=eleven) == []


def test_a_trend_omits_empty_buckets(store: TrackingStore, write_scores: Scores, make: Make) -> None:
    """A bucket without scores is missing; a bucket with two fingerprints appears twice."""
    write_scores([0.2, 0.4], start=0, step=1, fingerprint="old")
    write_scores([0.9], start=1, fingerprint="new")
    write_scores([0.8], start=30, route="search", fingerprint="new")
    eleven = make(0).started_at
    window: dict[str, Any] = {"scorer": "relevancy", "bucket": timedelta(minutes=10), "since": eleven}

    buckets = store.trends.over_time(**window, until=eleven + timedelta(hours=1))

    found = [
        ((bucket.start - eleven).seconds // 60, bucket.fingerprint, bucket.n, round(bucket.mean, 6))
        for bucket in buckets
    ]
    assert found == [(0, "new", 1, 0.9), (0, "old", 2, 0.3), (30, "new", 1, 0.8)]
    assert [
        bucket.n for bucket in store.trends.over_time(**window, until=eleven + timedelta(hours=1), route="search")
    ] == [1]
    assert len(store.trends.over_time(**window, until=eleven + timedelta(minutes=1))) == 1


def test_worst_scores_are_returned_lowest_first(store: TrackingStore, write_scores: Scores, make: Make) -> None:
    """Scores are returned with their exchanges, and every filter applies."""
    ask = write_scores([0.3, 0.1], start=0, step=1, route="ask")
    [search] = write_scores([0.2], start=5, route="search", fingerprint="f2")
    eleven = make(0).started_at

    assert [found.exchange for found in store.answers.worst()] == [ask[1], search, ask[0]]
    assert [found.score.value for found in store.answers.worst(limit=1)] == [0.1]
    assert [found.exchange for found in store.answers.worst(route="ask", until=eleven + timedelta(minutes=1))] == [
        ask[0]
    ]
    assert [found.exchange for found in store.answers.worst(fingerprint="f2", scorer="relevancy", since=eleven)] == [
        search
    ]
    assert store.answers.worst(scorer="other") == []


def test_a_summary_of_scores_includes_coverage(store: TrackingStore, write_scores: Scores, make: Make) -> None:
    """Coverage refers to the same window, and the share of refusals is separate."""
    write_scores([0.0, 0.0], label="noncommittal")
    write_scores([0.8, 0.9])
    store.exchanges.add([make()])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "uniform") for exchange in store.sampling.list_undecided(9)],
        {"relevancy": "f1"},
    )

    [summary] = store.trends.summary()

    assert (summary.n, summary.noncommittal_share) == (4, 0.5)
    assert summary.mean == pytest.approx(0.425)
    assert summary.coverage == Coverage(service="shop", route="ask", scorer="relevancy", seen=5, scored=4, pending=1)
    assert store.trends.summary(since=make(1).started_at) == []


def test_queries_on_an_empty_store_return_empty_results(store: TrackingStore, make: Make) -> None:
    """Missing data is never reported as zero."""
    start = make().started_at
    assert (
        store.trends.over_time(scorer="a", bucket=timedelta(hours=1), since=start, until=start + timedelta(days=1))
        == []
    )
    assert (
        store.trends.means(scorer="a", since=None),
        store.trends.summary(),
        store.answers.worst(),
        store.answers.list_exchanges(),
    ) == ([], [], [], [])
    assert store.answers.counts().oldest_pending_at is None


def test_score_with_zero_probability_has_weight_one(store: TrackingStore, write_scores: Scores) -> None:
    """A probability of zero does not cause a division error."""
    write_scores([0.2, 0.4], probabilities=[0.0, 1.0])

    assert store.trends.means(scorer="relevancy", since=None)[0].mean == pytest.approx(0.3)


def weighted_sums(values: np.ndarray[Any, Any], inclusion_probabilities: np.ndarray[Any, Any]) -> WeightedSums:
    """Return the sums that the database would compute."""
    weights, zero = 1 / inclusion_probabilities, values == 0
    return WeightedSums(
        n=len(values), n_zero=int(zero.sum()), sum_w=float(weights.sum()), sum_w_zero=float(weights[zero].sum()),
        sum_w2=float((weights**2).sum()), sum_w2_zero=float((weights[zero] ** 2).sum()),
        sum_wy=float((weights * values).sum()),
        sum_wy2=float((weights * values**2).sum()), sum_w2y=float((weights**2 * values).sum()),
        sum_w2y2=float((weights**2 * values**2).sum()), sum_w_low=0.0, sum_w_noncommittal=0.0,
    )  # fmt: skip


ROUTES = [(0.88, 40, 0.02), (0.80, 20, 0.05), (0.72, 10, 0.15)]


@pytest.mark.parametrize(("mean", "concentration", "zeros"), ROUTES)
@pytest.mark.parametrize("n", [10, 20, 50, 200])
@pytest.mark.parametrize("weighted", [False, True])
def test_interval_covers_the_true_mean_in_95_percent_of_samples(
    mean: float, concentration: float, zeros: float, n: int, weighted: bool
) -> None:
    """The samples include rare, heavily weighted refusals and oversampled low scores."""
    random = np.random.default_rng(n)
    hits = rounds = 1200
    for _ in range(rounds):
        values = random.beta(mean * concentration, (1 - mean) * concentration, 2 * n)
        values[random.random(2 * n) < zeros] = 0
        inclusion_probabilities = random.choice([0.25, 0.75], 2 * n) if weighted else np.full(2 * n, 0.5)
        drawn = random.random(2 * n) < inclusion_probabilities
        interval = estimate_mean(weighted_sums(values[drawn], inclusion_probabilities[drawn])).interval
        assert interval is not None
        hits -= not interval[0] <= mean * (1 - zeros) <= interval[1]

    assert 0.925 <= hits / rounds <= 0.98


def test_identical_scores_have_a_nonzero_interval() -> None:
    """Wilson bounds allow for answers that were not refused, or for refusals that have not been seen yet."""
    ones = np.ones(10)
    refused, perfect = estimate_mean(weighted_sums(np.zeros(10), ones)), estimate_mean(weighted_sums(ones, ones))

    assert refused.interval == pytest.approx((0.0, 0.2775), abs=0.001)
    assert perfect.interval == pytest.approx((0.7225, 1.0), abs=0.001)
    assert refused.deviation == perfect.deviation == 0.0


def test_lower_interval_bound_is_below_the_upper_bound_for_negative_scores() -> None:
    """Cosine similarities can be below zero."""
    values = np.array([-0.2, -0.3, -0.25, 0.0, -0.1])

    found = estimate_mean(weighted_sums(values, np.ones(5)))

    assert found.interval is not None
    assert found.interval[0] < found.mean < found.interval[1]
    assert math.isfinite(found.interval[0])
