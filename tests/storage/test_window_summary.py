"""All that one window says, read at once: routes, whole services, and what has no score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.conftest import ELEVEN, NOON

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import Bucket, SamplingDecision, TrackingStore, compare_summaries

HOUR = timedelta(hours=1)
Write = Callable[..., None]


@pytest.fixture
def write(store: TrackingStore, make: Callable[..., Exchange]) -> Write:
    """Writes one exchange per value, scored by one scorer; None is one that is not drawn."""

    def write(*values: float | None, fingerprint: str = "f1", chance: float = 1.0, **given: Any) -> None:
        start = given.pop("minutes", 0)
        exchanges = [make(start + number / 1e3, **given) for number in range(len(values))]
        store.exchanges.add(exchanges)
        skips = [{"a": UnscoredReason.NOT_SAMPLED} if value is None else {} for value in values]
        pairs = zip(exchanges, skips, strict=True)
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, chance, "uniform", skip) for one, skip in pairs], {"a": fingerprint}
        )
        by_id = dict(zip((one.id for one in exchanges), values, strict=True))
        claims = store.queue.claim_tasks("me", {"a": fingerprint}, limit=500, lease=HOUR)
        tasks = [task for claim in claims for task in claim.tasks]
        results = [(task, Score(scorer="a", fingerprint=fingerprint, value=by_id[task.exchange_id])) for task in tasks]
        store.queue.complete_tasks("me", results)

    return write


@pytest.mark.parametrize("roll", [False, True])
def test_a_service_has_the_mean_of_all_its_scores(store: TrackingStore, write: Write, roll: bool) -> None:
    """Weighted as they were sampled, and with the interval that a trend has that is not broken down."""
    write(0.9, 0.8, 0.0, None)
    write(0.5, 0.4, chance=0.25, route="search")
    store.rollups.update() if roll else None

    (found,) = store.trends.window_summary(since=ELEVEN, until=NOON).services
    (bucket,) = store.trends.over_time(scorer="a", bucket=HOUR, since=ELEVEN, until=NOON)

    assert found.mean == pytest.approx((0.9 + 0.8 + 4 * 0.5 + 4 * 0.4) / (3 + 8), abs=1e-9)
    assert (found.n, found.mean, found.interval) == (
        bucket.n,
        pytest.approx(bucket.mean),
        pytest.approx(bucket.interval),
    )
    assert (found.coverage.seen, found.coverage.scored, found.coverage.skipped) == (6, 5, {"not_sampled": 1})


def test_the_rest_is_what_summary_and_coverage_say(store: TrackingStore, write: Write) -> None:
    """One window has one number, whoever reads it."""
    write(0.9, 0.8, None)
    write(0.5, route="search")
    write(0.1, service="blog")
    window: dict[str, Any] = {"since": ELEVEN, "until": NOON}

    found = store.trends.window_summary(**window)

    assert list(found.routes) == store.trends.summary(**window, histograms=False)
    assert list(found.coverage) == store.trends.coverage(**window)
    assert [one.service for one in store.trends.window_summary(**window, service="blog").services] == ["blog"]
    assert store.trends.window_summary(**window, scorer="b").services == []


def test_fingerprints_are_never_added_up(store: TrackingStore, write: Write) -> None:
    """The newest of a service is that of its latest answer, on whatever route."""
    write(0.9, 0.8)
    write(0.2, fingerprint="f2", minutes=5, route="search")

    found = store.trends.window_summary(since=ELEVEN, until=NOON).services

    assert [(one.fingerprint, one.n, one.newest) for one in found] == [("f1", 2, False), ("f2", 1, True)]


def test_two_windows_read_before_compare_as_the_store_does(store: TrackingStore, write: Write) -> None:
    """Who has read both need not read them again."""
    for route, before, after in (("ask", 0.9, 0.8), ("search", 0.7, 0.2)):
        write(*(before + number / 1e3 for number in range(25)), route=route, minutes=-120)
        write(*(after + number / 1e3 for number in range(25)), route=route)
    since = ELEVEN - timedelta(minutes=30)
    old, new = (
        store.trends.window_summary(since=ELEVEN - 3 * HOUR, until=since),
        store.trends.window_summary(since=since, until=NOON),
    )

    found = compare_summaries(old.routes, new.routes, ((old.since, old.until), (new.since, new.until)))

    assert found == store.trends.compare(since=since, until=NOON, before=(ELEVEN - 3 * HOUR, since))
    assert {one.finding for one in found.dropped} == {"dropped"}


def ends(buckets: Sequence[Bucket]) -> list[float]:
    """Return the ends of all intervals."""
    return [end for one in buckets for end in one.interval or ()]


@pytest.mark.parametrize("roll", [False, True])
def test_a_trend_and_that_by_route_are_read_at_once(store: TrackingStore, write: Write, roll: bool) -> None:
    """Both are what each would be by itself."""
    write(0.9, 0.8, 0.0, None)
    write(0.2, 0.3, fingerprint="f2", minutes=20)
    write(0.5, 0.4, chance=0.25, route="search")
    write(0.7, route="search", minutes=-90)
    write(0.1, service="blog")
    store.rollups.update() if roll else None
    asked: dict[str, Any] = {"scorer": "a", "bucket": HOUR, "since": ELEVEN - 3 * HOUR, "until": NOON}

    for service in (None, "shop"):
        whole, by_route = store.trends.overall_and_by_route(**asked, service=service)

        assert by_route == store.trends.over_time(**asked, service=service, by="route", histograms=False)
        expected = store.trends.over_time(**asked, service=service, histograms=False)
        assert [(one.start, one.fingerprint, one.n, one.coverage) for one in whole] == [
            (one.start, one.fingerprint, one.n, one.coverage) for one in expected
        ]
        assert [one.mean for one in whole] == pytest.approx([one.mean for one in expected], abs=1e-12)
        assert ends(whole) == pytest.approx(ends(expected), abs=1e-9)
