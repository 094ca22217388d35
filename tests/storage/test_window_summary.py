"""Window summaries: routes, whole services and coverage in one read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.conftest import ELEVEN, NOON

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import SamplingDecision, TrackingStore, compare_summaries

HOUR = timedelta(hours=1)
Write = Callable[..., None]


@pytest.fixture
def write_scores(store: TrackingStore, make: Callable[..., Exchange]) -> Write:
    """Write one exchange per value, scored by one scorer; None is an unsampled exchange."""

    def write_scores(*values: float | None, fingerprint: str = "f1", probability: float = 1.0, **given: Any) -> None:
        start = given.pop("minutes", 0)
        exchanges = [make(start + number / 1e3, **given) for number in range(len(values))]
        store.exchanges.add(exchanges)
        skips = [{"a": UnscoredReason.NOT_SAMPLED} if value is None else {} for value in values]
        pairs = zip(exchanges, skips, strict=True)
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, probability, "uniform", skip) for one, skip in pairs], {"a": fingerprint}
        )
        by_id = dict(zip((exchange.id for exchange in exchanges), values, strict=True))
        claims = store.queue.claim_tasks("me", {"a": fingerprint}, limit=500, lease=HOUR)
        tasks = [task for claim in claims for task in claim.tasks]
        results = [(task, Score(scorer="a", fingerprint=fingerprint, value=by_id[task.exchange_id])) for task in tasks]
        store.queue.complete_tasks("me", results)

    return write_scores


@pytest.mark.parametrize("rolled_up", [False, True])
def test_service_summary_matches_its_trend(store: TrackingStore, write_scores: Write, rolled_up: bool) -> None:
    """The weighted mean and interval of a service equal those of a trend without breakdown."""
    write_scores(0.9, 0.8, 0.0, None)
    write_scores(0.5, 0.4, probability=0.25, route="search")
    store.rollups.update() if rolled_up else None

    (found,) = store.trends.window_summary(since=ELEVEN, until=NOON).services
    (bucket,) = store.trends.over_time(scorer="a", bucket=HOUR, since=ELEVEN, until=NOON)

    assert found.mean == pytest.approx((0.9 + 0.8 + 4 * 0.5 + 4 * 0.4) / (3 + 8), abs=1e-9)
    assert (found.n, found.mean, found.interval) == (
        bucket.n,
        pytest.approx(bucket.mean),
        pytest.approx(bucket.interval),
    )
    assert (found.coverage.seen, found.coverage.scored, found.coverage.skipped) == (6, 5, {"not_sampled": 1})


def test_window_summary_equals_separate_summary_and_coverage_queries(store: TrackingStore, write_scores: Write) -> None:
    """Both ways of reading a window return the same values."""
    write_scores(0.9, 0.8, None)
    write_scores(0.5, route="search")
    write_scores(0.1, service="blog")
    window: dict[str, Any] = {"since": ELEVEN, "until": NOON}

    found = store.trends.window_summary(**window)

    assert list(found.routes) == store.trends.summary(**window, histograms=False)
    assert list(found.coverage) == store.trends.coverage(**window)
    assert [summary.service for summary in store.trends.window_summary(**window, service="blog").services] == ["blog"]
    assert store.trends.window_summary(**window, scorer="b").services == []


def test_service_summaries_do_not_mix_fingerprints(store: TrackingStore, write_scores: Write) -> None:
    """The newest fingerprint is that of the service's latest answer on any route."""
    write_scores(0.9, 0.8)
    write_scores(0.2, fingerprint="f2", minutes=5, route="search")

    found = store.trends.window_summary(since=ELEVEN, until=NOON).services

    assert [(one.fingerprint, one.n, one.newest) for one in found] == [("f1", 2, False), ("f2", 1, True)]


def test_comparing_two_loaded_summaries_equals_comparing_in_the_store(
    store: TrackingStore, write_scores: Write
) -> None:
    """Two loaded windows can be compared without another query."""
    for route, before, after in (("ask", 0.9, 0.8), ("search", 0.7, 0.2)):
        write_scores(*(before + number / 1e3 for number in range(25)), route=route, minutes=-120)
        write_scores(*(after + number / 1e3 for number in range(25)), route=route)
    since = ELEVEN - timedelta(minutes=30)
    old, new = (
        store.trends.window_summary(since=ELEVEN - 3 * HOUR, until=since),
        store.trends.window_summary(since=since, until=NOON),
    )

    found = compare_summaries(old.routes, new.routes, ((old.since, old.until), (new.since, new.until)))

    assert found == store.trends.compare(since=since, until=NOON, before=(ELEVEN - 3 * HOUR, since))
    assert {one.finding for one in found.dropped} == {"dropped"}


@pytest.mark.parametrize("rolled_up", [False, True])
def test_the_means_of_several_routes_equal_those_of_separate_queries(
    store: TrackingStore, write_scores: Write, rolled_up: bool
) -> None:
    """Routes with the same name in several services are separate, and routes that are not named are left out."""
    write_scores(0.9, 0.8, 0.0, None)
    write_scores(0.2, 0.3, fingerprint="f2", minutes=20)
    write_scores(0.5, 0.4, probability=0.25, route="search")
    write_scores(0.7, route="search", minutes=-90)
    write_scores(0.6, route="other")
    write_scores(0.1, service="blog")
    store.rollups.update() if rolled_up else None
    request: dict[str, Any] = {"scorer": "a", "bucket": HOUR, "since": ELEVEN - 3 * HOUR, "until": NOON}
    usual = store.trends.summary()[0].route

    found = store.trends.routes_over_time(**request, routes=[usual, "search"])

    for service in ("shop", "blog"):
        expected = store.trends.over_time(**request, service=service, by="route", histograms=False)
        assert [replace(one, service=None) for one in found if one.service == service] == [
            one for one in expected if one.group != "other"
        ]
    assert {one.group for one in found} == {usual, "search"}
