"""Two stretches of time compared, in the database: one number everywhere, and only what can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.annotation import Marker
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score, band_of
from germane.storage import Estimate, SamplingDecision, TrackingStore

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
GOOD, BAD = [0.9, 0.8, 0.85] * 10, [0.3, 0.2, 0.25] * 10
HOUR = timedelta(hours=1)
Write = Callable[..., None]


@pytest.fixture
def write(store: TrackingStore, make: Callable[..., Exchange]) -> Write:
    """Writes scores of exchanges so many minutes after noon."""

    def write(minutes: float, values: list[float], *, fingerprint: str = "f1", scorer: str = "r", **given: Any) -> None:
        exchanges = [make(minutes + 60, **given) for _ in values]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {scorer: fingerprint}
        )
        found = dict(zip([one.id for one in exchanges], values, strict=True))
        claims = store.queue.claim_tasks("me", {scorer: fingerprint}, limit=1000, lease=HOUR)
        results = [(task, _score(scorer, fingerprint, found[task.exchange_id])) for c in claims for task in c.tasks]
        store.queue.complete_tasks("me", results)

    return write


def _score(scorer: str, fingerprint: str, value: float) -> Score:
    return Score(scorer=scorer, fingerprint=fingerprint, value=value, label=band_of(value), scored_at=NOON)


def test_both_sides_are_the_numbers_of_a_summary(store: TrackingStore, clock: Any, write: Write) -> None:
    """Of the same window, to the last digit."""
    write(-30, GOOD)
    write(30, BAD)
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    (line,) = found.routes
    assert (found.before, found.after) == ((NOON - HOUR, NOON), (NOON, NOON + HOUR))
    for side, window in ((line.before, found.before), (line.after, found.after)):
        (summary,) = store.trends.summary(since=window[0], until=window[1], histograms=False)
        assert side is not None
        assert [getattr(side, one.name) for one in fields(Estimate)] == [
            getattr(summary, one.name) for one in fields(Estimate)
        ]
    assert (line.service, line.route, line.scorer, line.fingerprint) == ("shop", "ask", "r", "f1")
    assert line.difference == pytest.approx(-0.6, abs=1e-9)
    assert (line.finding, line.effect_name) == ("dropped", "large")
    assert found.dropped == [line]
    assert found.services == []


def test_windows_hold_their_beginning_and_not_their_end(store: TrackingStore, clock: Any, write: Write) -> None:
    """An answer at the moment of the mark is of the time since; nothing counts twice."""
    write(0, GOOD)
    write(-60, GOOD[:21])
    write(60, BAD)
    clock.advance(hours=2)
    mark = Marker(id="m", name="v1", service="shop", at=NOON)

    (line,) = store.trends.compare(since=mark, until=NOON + HOUR).routes

    assert line.before is not None
    assert line.after is not None
    assert (line.before.n, line.after.n) == (21, 30)


def test_the_earlier_stretch_may_be_any(store: TrackingStore, clock: Any, write: Write) -> None:
    """Such as the same hours a day before."""
    write(-24 * 60 + 10, GOOD)
    write(-30, BAD)
    write(10, BAD)
    clock.advance(hours=1)

    (line,) = store.trends.compare(since=NOON, before=(NOON - 24 * HOUR, NOON - 23 * HOUR)).routes

    assert line.finding == "dropped"


def test_only_equal_fingerprints_are_compared(store: TrackingStore, clock: Any, write: Write) -> None:
    """What only one side has says whether the judge changed, or whether there is nothing."""
    write(-30, GOOD)
    write(-30, GOOD, route="gone")
    write(10, BAD, fingerprint="f2")
    write(10, BAD, route="new")
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    assert [(line.route, line.fingerprint, line.finding) for line in found.routes] == [
        ("ask", "f1", "judge_changed"),
        ("ask", "f2", "judge_changed"),
        ("gone", "f1", "not_enough_data"),
        ("new", "f1", "not_enough_data"),
    ]
    assert not found.is_comparable
    assert found.dropped == []


def test_a_judge_that_changed_in_between_leaves_what_can_be_compared(
    store: TrackingStore, clock: Any, write: Write
) -> None:
    """Up to the change, old with old."""
    write(-30, GOOD)
    write(10, GOOD)
    write(20, BAD, fingerprint="f2")
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    assert [(line.fingerprint, line.finding) for line in found.routes] == [("f1", "unclear"), ("f2", "judge_changed")]
    assert found.is_comparable


def test_a_service_is_compared_by_its_earlier_traffic(store: TrackingStore, clock: Any, write: Write) -> None:
    """90 to 30 answers before, 30 to 90 after; also routes with few scores count; a route that went does not."""
    write(-30, GOOD * 3)
    write(-30, BAD, route="search")
    write(-30, GOOD[:10], route="rare")
    write(-30, GOOD[:10], route="gone")
    write(10, GOOD)
    write(10, BAD * 3, route="search")
    write(10, GOOD[:10], route="rare")
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    (whole,) = found.services
    assert (whole.route, whole.share) == (None, pytest.approx(130 / 140, abs=1e-9))
    assert whole.difference == pytest.approx(0, abs=1e-9)
    assert whole.before is not None
    rare = sum(GOOD[:10]) / 10
    assert whole.before.mean == pytest.approx((90 * 0.85 + 30 * 0.25 + 10 * rare) / 130, abs=1e-9)
    assert whole.before.n == 130
    assert whole.finding == "unclear"


def test_a_service_may_be_compared_of_which_no_route_can(store: TrackingStore, clock: Any, write: Write) -> None:
    """Twelve scores of each of two routes are too few apart, and enough together."""
    for minutes in (-30, 10):
        for route in ("docs", "faq"):
            write(minutes, GOOD[:12], route=route)
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    assert [line.is_comparable for line in found.routes] == [False, False]
    assert [line.is_comparable for line in found.services] == [True]
    assert found.is_comparable


def test_it_can_be_asked_of_one_service_route_or_scorer(store: TrackingStore, clock: Any, write: Write) -> None:
    """A single route has no service to be compared with."""
    for minutes in (-30, 10):
        write(minutes, GOOD)
        write(minutes, GOOD, route="search")
        write(minutes, GOOD, service="bank", scorer="other")
    clock.advance(hours=1)

    assert [line.service for line in store.trends.compare(since=NOON, service="bank").routes] == ["bank"]
    assert [line.scorer for line in store.trends.compare(since=NOON, scorer="r").routes] == ["r", "r"]
    of_route = store.trends.compare(since=NOON, route="ask", service="shop")
    assert [line.route for line in of_route.routes] == ["ask"]
    assert of_route.services == []
    assert [line.service for line in store.trends.compare(since=NOON).services] == ["shop"]


def test_what_is_no_window_is_refused(store: TrackingStore) -> None:
    """A moment without a zone, an end before the beginning, a drop below 0."""
    mark = Marker(id="m", name="v1", service="shop", at=NOON + HOUR)
    wrong: list[dict[str, Any]] = [
        {"since": NOON.replace(tzinfo=None)},
        {"since": replace(mark, at=NOON + HOUR)},
        {"since": NOON - HOUR, "before": (NOON, NOON - HOUR)},
        {"since": NOON - HOUR, "min_drop": -0.1},
    ]
    for arguments in wrong:
        with pytest.raises(UsageError):
            store.trends.compare(**arguments)
