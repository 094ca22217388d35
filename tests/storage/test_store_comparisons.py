"""Comparisons of two windows in the database: they use the same means as summaries, and only equal fingerprints."""

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
from germane.statistics import Estimate
from germane.storage import SamplingDecision, TrackingStore

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HIGH_SCORES, LOW_SCORES = [0.9, 0.8, 0.85] * 10, [0.3, 0.2, 0.25] * 10
HOUR = timedelta(hours=1)
Write = Callable[..., None]


@pytest.fixture
def write_scores(store: TrackingStore, make: Callable[..., Exchange]) -> Write:
    """Write scored exchanges the given number of minutes after noon."""

    def write_scores(
        minutes: float, values: list[float], *, fingerprint: str = "f1", scorer: str = "r", **given: Any
    ) -> None:
        exchanges = [make(minutes + 60, **given) for _ in values]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks(
            [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges], {scorer: fingerprint}
        )
        found = dict(zip([exchange.id for exchange in exchanges], values, strict=True))
        claims = store.queue.claim_tasks("me", {scorer: fingerprint}, limit=1000, lease=HOUR)
        results = [(task, _score(scorer, fingerprint, found[task.exchange_id])) for c in claims for task in c.tasks]
        store.queue.complete_tasks("me", results)

    return write_scores


def _score(scorer: str, fingerprint: str, value: float) -> Score:
    return Score(scorer=scorer, fingerprint=fingerprint, value=value, label=band_of(value), scored_at=NOON)


def test_estimates_in_a_comparison_equal_those_of_the_summaries(
    store: TrackingStore, clock: Any, write_scores: Write
) -> None:
    """Both estimates are identical to the summaries of their windows."""
    write_scores(-30, HIGH_SCORES)
    write_scores(30, LOW_SCORES)
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    (comparison,) = found.routes
    assert (found.before, found.after) == ((NOON - HOUR, NOON), (NOON, NOON + HOUR))
    for side, window in ((comparison.before, found.before), (comparison.after, found.after)):
        (summary,) = store.trends.summary(since=window[0], until=window[1], histograms=False)
        assert side is not None
        assert [getattr(side, field.name) for field in fields(Estimate)] == [
            getattr(summary, field.name) for field in fields(Estimate)
        ]
    assert (comparison.service, comparison.route, comparison.scorer, comparison.fingerprint) == (
        "shop",
        "ask",
        "r",
        "f1",
    )
    assert comparison.difference == pytest.approx(-0.6, abs=1e-9)
    assert (comparison.finding, comparison.effect_name) == ("dropped", "large")
    assert found.dropped == [comparison]
    assert found.services == []


def test_comparison_windows_do_not_overlap(store: TrackingStore, clock: Any, write_scores: Write) -> None:
    """An answer at the marker's time belongs to the later window."""
    write_scores(0, HIGH_SCORES)
    write_scores(-60, HIGH_SCORES[:21])
    write_scores(60, LOW_SCORES)
    clock.advance(hours=2)
    marker = Marker(id="m", name="v1", service="shop", at=NOON)

    (comparison,) = store.trends.compare(since=marker, until=NOON + HOUR).routes

    assert comparison.before is not None
    assert comparison.after is not None
    assert (comparison.before.n, comparison.after.n) == (21, 30)


def test_the_earlier_window_of_a_comparison_can_be_chosen(
    store: TrackingStore, clock: Any, write_scores: Write
) -> None:
    """For example, it can be the same hour on the previous day."""
    write_scores(-24 * 60 + 10, HIGH_SCORES)
    write_scores(-30, LOW_SCORES)
    write_scores(10, LOW_SCORES)
    clock.advance(hours=1)

    (comparison,) = store.trends.compare(since=NOON, before=(NOON - 24 * HOUR, NOON - 23 * HOUR)).routes

    assert comparison.finding == "dropped"


def test_comparison_needs_identical_fingerprints(store: TrackingStore, clock: Any, write_scores: Write) -> None:
    """Fingerprints on one side only are reported as a changed judge or as not enough data."""
    write_scores(-30, HIGH_SCORES)
    write_scores(-30, HIGH_SCORES, route="gone")
    write_scores(10, LOW_SCORES, fingerprint="f2")
    write_scores(10, LOW_SCORES, route="new")
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    assert [(comparison.route, comparison.fingerprint, comparison.finding) for comparison in found.routes] == [
        ("ask", "f1", "judge_changed"),
        ("ask", "f2", "judge_changed"),
        ("gone", "f1", "not_enough_data"),
        ("new", "f1", "not_enough_data"),
    ]
    assert not found.is_comparable
    assert found.dropped == []


def test_scores_before_a_judge_change_are_still_compared(store: TrackingStore, clock: Any, write_scores: Write) -> None:
    """The old fingerprint is compared up to the change."""
    write_scores(-30, HIGH_SCORES)
    write_scores(10, HIGH_SCORES)
    write_scores(20, LOW_SCORES, fingerprint="f2")
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    assert [(comparison.fingerprint, comparison.finding) for comparison in found.routes] == [
        ("f1", "unclear"),
        ("f2", "judge_changed"),
    ]
    assert found.is_comparable


def test_service_comparison_is_weighted_by_earlier_traffic(
    store: TrackingStore, clock: Any, write_scores: Write
) -> None:
    """A shift of traffic between routes is not a drop. Rare routes count; routes without later scores do not."""
    write_scores(-30, HIGH_SCORES * 3)
    write_scores(-30, LOW_SCORES, route="search")
    write_scores(-30, HIGH_SCORES[:10], route="rare")
    write_scores(-30, HIGH_SCORES[:10], route="gone")
    write_scores(10, HIGH_SCORES)
    write_scores(10, LOW_SCORES * 3, route="search")
    write_scores(10, HIGH_SCORES[:10], route="rare")
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    (whole,) = found.services
    assert (whole.route, whole.share) == (None, pytest.approx(130 / 140, abs=1e-9))
    assert whole.difference == pytest.approx(0, abs=1e-9)
    assert whole.before is not None
    rare = sum(HIGH_SCORES[:10]) / 10
    assert whole.before.mean == pytest.approx((90 * 0.85 + 30 * 0.25 + 10 * rare) / 130, abs=1e-9)
    assert whole.before.n == 130
    assert whole.finding == "unclear"


def test_service_is_compared_when_its_routes_have_too_few_scores(
    store: TrackingStore, clock: Any, write_scores: Write
) -> None:
    """Two routes with 12 scores each are too small individually and large enough together."""
    for minutes in (-30, 10):
        for route in ("docs", "faq"):
            write_scores(minutes, HIGH_SCORES[:12], route=route)
    clock.advance(hours=1)

    found = store.trends.compare(since=NOON)

    assert [comparison.is_comparable for comparison in found.routes] == [False, False]
    assert [comparison.is_comparable for comparison in found.services] == [True]
    assert found.is_comparable


def test_comparison_can_be_restricted_to_a_filter(store: TrackingStore, clock: Any, write_scores: Write) -> None:
    """The filters are service, scorer and route; a single route has no service comparison."""
    for minutes in (-30, 10):
        write_scores(minutes, HIGH_SCORES)
        write_scores(minutes, HIGH_SCORES, route="search")
        write_scores(minutes, HIGH_SCORES, service="bank", scorer="other")
    clock.advance(hours=1)

    assert [comparison.service for comparison in store.trends.compare(since=NOON, service="bank").routes] == ["bank"]
    assert [comparison.scorer for comparison in store.trends.compare(since=NOON, scorer="r").routes] == ["r", "r"]
    of_route = store.trends.compare(since=NOON, route="ask", service="shop")
    assert [comparison.route for comparison in of_route.routes] == ["ask"]
    assert of_route.services == []
    assert [comparison.service for comparison in store.trends.compare(since=NOON).services] == ["shop"]


def test_invalid_comparison_arguments_are_rejected(store: TrackingStore) -> None:
    """Naive datetimes, empty windows, reversed windows and negative drops raise ``UsageError``."""
    marker = Marker(id="m", name="v1", service="shop", at=NOON + HOUR)
    wrong: list[dict[str, Any]] = [
        {"since": NOON.replace(tzinfo=None)},
        {"since": replace(marker, at=NOON + HOUR)},
        {"since": NOON - HOUR, "before": (NOON, NOON - HOUR)},
        {"since": NOON - HOUR, "min_drop": -0.1},
    ]
    for arguments in wrong:
        with pytest.raises(UsageError):
            store.trends.compare(**arguments)
