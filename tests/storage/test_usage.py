"""Durations and costs over time equal those of the rows, and only the newest rows are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.trends import usage
from germane.storage.trends.usage import nearest_rank

HOUR = timedelta(hours=1)
SINCE = datetime(2026, 3, 1, 8, tzinfo=UTC)
WINDOW: dict[str, Any] = {"bucket": HOUR, "since": SINCE, "until": SINCE + 8 * HOUR}
Write = Callable[..., None]


@pytest.fixture
def write(store: TrackingStore, make: Callable[..., Exchange]) -> Write:
    """Write scored exchanges the given number of minutes after eleven, with durations and costs."""

    def write(minutes: list[float], *, durations: list[float], costs: list[float | None], **given: Any) -> None:
        pairs = zip(minutes, durations, strict=True)
        exchanges = [make(minute, duration=duration, **given) for minute, duration in pairs]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"r": "f1"})
        by_id = {one.id: cost for one, cost in zip(exchanges, costs, strict=True)}
        claims = store.queue.claim_tasks("me", {"r": "f1"}, limit=1000, lease=HOUR)
        results = [
            (task, Score(scorer="r", fingerprint="f1", value=0.5, cost=by_id[task.exchange_id]))
            for claim in claims
            for task in claim.tasks
        ]
        store.queue.complete_tasks("me", results)

    return write


def test_usage_buckets_have_the_percentiles_and_sums_of_their_answers(store: TrackingStore, write: Write) -> None:
    """Hours without answers are absent, scores without a cost do not count, and other places are excluded."""
    write([0, 1, 2, 59], durations=[1.0, 9.0, 2.0, 3.0], costs=[0.1, None, 0.2, 0.0])
    write([125], durations=[4.0], costs=[0.5])
    write([3], durations=[100.0], costs=[9.0], route="other")
    write([4], durations=[100.0], costs=[9.0], service="other")
    place = {"route": "ask", "service": "shop"}
    durations = store.trends.durations_over_time(**WINDOW, **place)
    costs = store.trends.costs_over_time(**WINDOW, **place, scorer="r")

    assert [(one.start.hour, one.n, one.median, one.p95) for one in durations.buckets] == [
        (11, 4, 2.0, 9.0),
        (13, 1, 4.0, 4.0),
    ]
    assert [(one.start.hour, one.n, one.usd) for one in costs.buckets] == [
        (11, 3, pytest.approx(0.3)),
        (13, 1, 0.5),
    ]
    assert durations.searched_back_to is costs.searched_back_to is None
    assert store.trends.costs_over_time(**WINDOW, scorer="s").buckets == []
    assert sum(one.n for one in store.trends.durations_over_time(**WINDOW).buckets) == 7


def test_daily_usage_buckets_start_at_local_midnight(store: TrackingStore, write: Write) -> None:
    """As in all charts, buckets of whole days follow the visitor's time zone."""
    write([0, 240], durations=[1.0, 2.0], costs=[0.1, 0.2])
    window = {**WINDOW, "bucket": 24 * HOUR, "until": SINCE + 24 * HOUR, "timezone": ZoneInfo("Asia/Tokyo")}
    found = store.trends.durations_over_time(**window)

    assert [(one.start, one.n) for one in found.buckets] == [
        (datetime(2026, 2, 28, 15, tzinfo=UTC), 1),
        (datetime(2026, 3, 1, 15, tzinfo=UTC), 1),
    ]


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_truncated_usage_query_returns_only_complete_buckets(
    store: TrackingStore, write: Write, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """A bucket is complete or absent, whatever the number of rows that are read."""
    minutes = [0.0, 10, 70, 80, 130, 140, 150]
    write(minutes, durations=[1.0] * 7, costs=[0.5] * 7)
    monkeypatch.setattr(usage, "MAX_EXCHANGES_READ", limit)
    monkeypatch.setattr(usage, "MAX_SCORES_READ", limit)
    complete = {11: 2, 12: 2, 13: 3}
    for found in (
        store.trends.durations_over_time(**WINDOW, route="ask"),
        store.trends.costs_over_time(**WINDOW, route="ask"),
    ):
        shown = {one.start.hour: one.n for one in found.buckets}
        assert shown.items() <= complete.items()
        assert (found.searched_back_to is None) == (limit >= 7)
        assert len(shown) == sum(limit >= needed for needed in (3, 5, 7))


def test_the_bucket_length_can_depend_on_what_was_read(
    store: TrackingStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shorter buckets fit the newest part of a window; the rows are read only once."""
    write([0.0, 70, 75, 80, 130, 140], durations=[1.0] * 6, costs=[0.5] * 6)
    monkeypatch.setattr(usage, "MAX_EXCHANGES_READ", 4)
    monkeypatch.setattr(usage, "MAX_SCORES_READ", 4)
    starts: list[datetime | None] = []

    def choose(start: datetime | None) -> timedelta:
        starts.append(start)
        return 8 * HOUR if start is None else timedelta(minutes=15)

    window = {**WINDOW, "bucket": choose}
    both = store.trends.durations_over_time(**window, route="ask"), store.trends.costs_over_time(**window)
    assert starts == [found.searched_back_to for found in both]
    for found in both:
        shown = [(one.start.hour, one.start.minute, one.n) for one in found.buckets]
        assert shown == [(12, 15, 2), (13, 0, 1), (13, 15, 1)]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.sampled_from([0.5, 0.95]))
def test_nearest_rank_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    """At least this share of the values do not exceed it, and fewer do not exceed any smaller value."""
    ordered = sorted(values)
    found = nearest_rank(ordered, share)

    assert sum(value <= found for value in values) >= math.ceil(share * len(values))
    assert sum(value < found for value in values) < math.ceil(share * len(values))
    assert nearest_rank(ordered, 0.5) <= median(values)
