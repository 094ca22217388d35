"""Scoring flow (the arrival of scores), and means filtered by attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.storage.conftest import NOON, an_exchange

from germane.score import Score, UnscoredReason
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.alerting.scoring_flow import ScoringFlow
from germane.testing import Clock

SCORER = {"s": "f"}


def write_scores(
    store: TrackingStore,
    values: Sequence[float | UnscoredReason | None],
    *,
    minutes: float = 0,
    skipped: Any = None,
    **changes: Any,
) -> None:
    """Write exchanges the given number of minutes after eleven with their scores; None leaves the task pending."""
    exchanges = [an_exchange(minutes, **changes) for _ in values]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "sampled", skipped or {}) for exchange in exchanges], SCORER
    )
    claims = store.queue.claim_tasks("me", SCORER, limit=1000, lease=timedelta(60))
    known = dict(zip([exchange.id for exchange in exchanges], values, strict=True))
    results = []
    for task in (task for claim in claims for task in claim.tasks):
        result = known.get(task.exchange_id)
        if result is not None:
            given = {"reason": result} if isinstance(result, UnscoredReason) else {"value": result}
            results.append((task, Score(scorer="s", fingerprint="f", **given)))
    store.queue.complete_tasks("me", results)


def load_flow(store: TrackingStore, since: datetime = NOON - timedelta(hours=2), **options: Any) -> ScoringFlow:
    (found,) = store.progress.list_flows(since=since, **options)
    return found


def test_waiting_count_covers_exchanges_after_the_newest_scored_one(store: TrackingStore) -> None:
    """The oldest waiting minute is reported too; unsampled exchanges do not count."""
    write_scores(store, [0.5], minutes=0)
    write_scores(store, [None, None], minutes=10)
    write_scores(store, [0.0], minutes=20, skipped={"s": UnscoredReason.NOT_SAMPLED})
    write_scores(store, [None], minutes=30)
    found = load_flow(store)
    assert (found.last_scored_minute, found.waiting) == (NOON - timedelta(hours=1), 3)
    assert found.waiting_since == NOON - timedelta(minutes=50)
    write_scores(store, [0.5], minutes=40)
    assert (load_flow(store).waiting, load_flow(store).waiting_since) == (0, None)


@pytest.mark.parametrize(("failures", "waiting"), [(2, 0), (3, 3)])
def test_few_failures_that_may_be_due_to_the_answers_do_not_count_as_waiting(
    store: TrackingStore, failures: int, waiting: int
) -> None:
    """The last answers before a quiet period may be unusual. Three in a row are no coincidence."""
    write_scores(store, [0.5], minutes=0)
    write_scores(store, [UnscoredReason.UNPARSABLE] * failures, minutes=10)

    assert load_flow(store).waiting == waiting


def test_excluded_routes_and_earlier_exchanges_do_not_count_as_waiting(store: TrackingStore) -> None:
    """Exchanges before the window are ignored as well."""
    write_scores(store, [0.5], minutes=10, route="other")
    write_scores(store, [None], minutes=20)
    assert load_flow(store, includes_route=lambda route: route != "other").last_scored_minute is None
    assert store.progress.list_flows(since=NOON) == []


def test_typical_score_delay_is_the_sum_of_arrival_gap_and_scoring_lag(store: TrackingStore, clock: Clock) -> None:
    """Scores every ten minutes with a lag of one minute give eleven minutes; too few scores give None."""
    for number in range(19):
        clock.now = NOON + timedelta(minutes=10 * number + 1)
        write_scores(store, [0.5, 0.5], minutes=60 + 10 * number)
    service = an_exchange().service
    assert store.progress.typical_score_delay(service, "s", since=NOON - timedelta(days=14)) is None
    for number in range(19, 30):
        clock.now = NOON + timedelta(minutes=10 * number + 1)
        write_scores(store, [0.5], minutes=60 + 10 * number)
    assert store.progress.typical_score_delay(service, "s", since=NOON - timedelta(days=14)) == timedelta(minutes=11)
    assert store.progress.typical_score_delay("nobody", "s", since=NOON - timedelta(days=14)) is None


def test_failing_tasks_are_counted_by_reason(store: TrackingStore) -> None:
    """Postponed tasks are listed with the reason of the last failure."""
    exchanges = [an_exchange() for _ in range(3)]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges], SCORER)
    tasks = [
        task for claim in store.queue.claim_tasks("me", SCORER, limit=9, lease=timedelta(60)) for task in claim.tasks
    ]
    assert store.progress.list_failing() == []
    store.queue.postpone_tasks(
        "me", tasks, until=NOON + timedelta(hours=1), reason=UnscoredReason.JUDGE_TIMEOUT, error=""
    )
    (listed,) = store.progress.list_failing()
    assert (listed.scorer, listed.reason, listed.tasks) == ("s", "judge_timeout", 3)


values = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=12)


@given(values, values)
@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_attribute_mean_equals_the_plain_mean_of_matching_answers(
    store: TrackingStore, some: list[float], others: list[float]
) -> None:
    """Answers with other attributes do not change it."""
    service = f"shop {len(store.answers.list_exchanges(limit=1000))}"
    write_scores(store, list(some), service=service, attributes={"tenant": "acme"})
    plain = [replace(mean, histogram=None) for mean in store.trends.means(scorer="s", since=None, service=service)]
    assert _assert_close(
        store.trends.means_with_attributes({"tenant": "a*"}, scorer="s", since=None, service=service), plain
    )
    write_scores(store, list(others), service=service, attributes={"tenant": "other"})
    assert _assert_close(
        store.trends.means_with_attributes({"tenant": "a*"}, scorer="s", since=None, service=service), plain
    )


def _assert_close(found: Any, expected: Any) -> bool:
    (one,), (other,) = found, expected
    assert (one.n, one.newest, one.latest, one.route) == (other.n, other.newest, other.latest, other.route)
    names = ("mean", "deviation", "low_share", "noncommittal_share")
    assert [getattr(one, name) for name in names] == pytest.approx([getattr(other, name) for name in names], abs=1e-9)
    assert one.interval == pytest.approx(other.interval, abs=1e-9)
    return True
