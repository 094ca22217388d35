"""The week that other tests look at holds what they rely on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.dashboard.conftest import Week
from tests.dashboard.hostile import SERVICE as HOSTILE
from tests.dashboard.hostile import hostile
from tests.dashboard.seeding import EXCHANGES, NOW, SERVICE, another_service

from germane.storage import TrackingStore

DAY = timedelta(days=1)


def test_the_week_holds_all_kinds_of_outcome(week: Week) -> None:
    """Scores of three scorers, failures, what was not drawn, what waits, and what was dropped."""
    store = week.store
    counts = store.answers.counts()
    summary = {(one.route, one.scorer): one for one in store.trends.summary(since=NOW - DAY)}
    dropped = {one.skipped.get("queue_full", 0) for one in store.trends.coverage()}

    assert counts.captured == EXCHANGES
    assert counts.undecided == 3
    assert counts.pending > 20
    assert {"judge_timeout", "unparsable"} <= counts.failed_reasons.keys()
    assert {"not_sampled", "missing_input"} <= counts.skipped_reasons.keys()
    assert dropped == {0, 4}
    assert summary["docs-search", "answer_relevancy"].mean < 0.6 < summary["ask", "answer_relevancy"].mean
    assert min(one.n for one in summary.values()) >= 20


def test_the_week_holds_what_pages_show_beside_scores(week: Week) -> None:
    """Labels, marks, a baseline in force, an open alert and one that is over, what was told, a worker."""
    store = week.store
    alerts = {one.id: one for one in store.alerts.search()}

    assert len(store.labels.list_feedback(limit=1000)) > 50
    assert [one.name for one in store.trends.list_markers()] == ["index v42", "prompt 7"]
    assert [one.number for one in store.baselines.list_versions() if one.status == "active"] == [2]
    assert alerts[week.seeded.open_alert].state == "firing"
    assert alerts[week.seeded.open_alert].shifts[0].name == "docs-search"
    assert alerts[week.seeded.resolved_alert].state == "resolved"
    assert {one.status for one in store.notifications.search()} == {"sent", "undelivered"}
    assert [one.service for one in store.workers.list_workers()] == [SERVICE]
    assert store.queue.list_retries()


def test_what_is_returned_is_what_is_stored(week: Week) -> None:
    """Tests may reckon with the values that were written."""
    found = {(one.route, one.scorer): one.n for one in week.store.trends.summary()}

    assert found["docs-search", "faithfulness"] == len(week.seeded.values("faithfulness", "docs-search"))
    assert sum(found.values()) == len(week.seeded.scores)
    (worst,) = week.store.answers.worst(scorer="answer_relevancy", limit=1)
    assert worst.score.value == pytest.approx(min(week.seeded.values()))


def test_hostile_texts_and_a_second_service_are_stored(store: TrackingStore) -> None:
    """Nothing of it is refused on the way in."""
    exchanges, others = hostile(store), another_service(store)
    found = {one.service: 0 for one in store.trends.summary()}
    for one in store.trends.summary():
        found[one.service] += one.n

    assert found == {HOSTILE: len(exchanges), "mobile": pytest.approx(len(others), abs=4)}
