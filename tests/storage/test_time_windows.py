"""Time windows: every query includes the start of its window and excludes the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

import pytest
from tests.cases import each

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
Make = Callable[..., Exchange]


@pytest.fixture
def since(make: Make) -> datetime:
    """A whole hour."""
    return make().started_at.replace(minute=0, second=0, microsecond=0)


@pytest.fixture
def filled_store(store: TrackingStore, make: Make, since: datetime) -> TrackingStore:
    """A low score, a label, a cost and a duration on both sides of either end of a window of two hours."""
    until = since + 2 * HOUR
    moments = [since - MICROSECOND, since, until - MICROSECOND, until]
    exchanges = [make(started_at=moment, duration=1.0) for moment in moments]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "uniform") for one in exchanges], {"a": "f1"})
    for claim in store.queue.claim_tasks("me", {"a": "f1"}, limit=9, lease=HOUR):
        score = Score(scorer="a", fingerprint="f1", value=0.1, cost=1.0, scored_at=claim.exchange.started_at)
        store.queue.complete_tasks("me", [(claim.tasks[0], score)])
    store.labels.add_feedback(
        [Feedback(id=one.id, exchange_id=one.id, score=1.0, created_at=one.started_at) for one in exchanges]
    )
    return store


OF_SCORER: dict[str, Any] = {"scorer": "a"}
HOURLY: dict[str, Any] = {"bucket": HOUR}


@pytest.mark.parametrize("rolled_up", [False, True])
@each(
    ("query", "options", "count"),
    [
        ("answers.list_exchanges", {}, ""),
        ("answers.worst", {}, ""),
        ("labels.count_disagreements", {}, "count"),
        ("labels.list_feedback", {}, ""),
        ("quota.traffic_by_hour", {}, "seen"),
        ("trends.costs_over_time", HOURLY, "n"),
        ("trends.coverage", {}, "scored"),
        ("trends.coverage_over_time", OF_SCORER | HOURLY, "scored"),
        ("trends.durations_over_time", HOURLY, "n"),
        ("trends.means", OF_SCORER, "n"),
        ("trends.over_time", OF_SCORER | HOURLY, "n"),
        ("trends.summary", {}, "n"),
        ("trends.summary_by_label", OF_SCORER | {"by": "model"}, "n"),
        ("trends.window_summary", {}, "n"),
        ("trends.routes_over_time", OF_SCORER | HOURLY | {"routes": ["ask"]}, "n"),
    ],
)
def test_a_window_includes_its_start_and_excludes_its_end(
    filled_store: TrackingStore, since: datetime, rolled_up: bool, query: str, options: dict[str, Any], count: str
) -> None:
    """Adjacent windows count every answer exactly once, with rollups and without."""
    filled_store.rollups.update() if rolled_up else None

    found = attrgetter(query)(filled_store)(since=since, until=since + 2 * HOUR, **options)

    for part in ("buckets", "routes", "overall"):  # the lists in results that are more than a list
        found = getattr(found, part, found)
    assert sum(getattr(one, count) if count else 1 for one in found) == 2
