"""The contents of the sample week that other tests rely on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import SERVICE as HOSTILE
from tests.dashboard.hostile import write_hostile_exchanges
from tests.dashboard.seeding import EXCHANGES, NOW, SERVICE, add_second_service

from germane.storage import TrackingStore

DAY = timedelta(days=1)


@BOTH
def test_the_seeded_week_contains_every_outcome(week: Week) -> None:
    """The week has scores from three scorers, failures, and unsampled, pending and dropped exchanges."""
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


def test_the_seeded_week_contains_labels_alerts_and_a_worker(week: Week) -> None:
    """The week also has markers, an active baseline, an open and a resolved alert, and notifications."""
    store = week.store
    alerts = {one.id: one for one in store.alerts.search()}

    assert len(store.labels.list_feedback(limit=1000)) > 50
    assert [one.name for one in store.trends.list_markers()] == ["index v42", "prompt 7"]
    versions = [one for one in store.baselines.list_versions() if one.status == "active"]
    assert [one.number for one in versions if not one.is_provisional] == [2]
    assert alerts[week.seeded.open_alert].state == "firing"
    assert alerts[week.seeded.open_alert].route == "docs-search"
    assert alerts[week.seeded.resolved_alert].state == "resolved"
    assert {one.status for one in store.notifications.search()} == {"sent", "undelivered"}
    assert [one.service for one in store.workers.list_workers()] == [SERVICE]
    assert store.health.list_retries()


def test_the_values_that_seeding_returns_equal_the_stored_values(week: Week) -> None:
    """Tests can calculate with the returned values."""
    summaries = {(one.route, one.scorer): one.n for one in week.store.trends.summary()}

    assert summaries["docs-search", "faithfulness"] == len(week.seeded.values("faithfulness", "docs-search"))
    assert sum(summaries.values()) == len(week.seeded.scores)
    (worst,) = week.store.answers.worst(scorer="answer_relevancy", limit=1)
    assert worst.score.value == pytest.approx(min(week.seeded.values()))


def test_seeding_stores_hostile_texts_and_a_second_service(store: TrackingStore) -> None:
    """The store rejects none of the texts."""
    exchanges, others = write_hostile_exchanges(store), add_second_service(store)
    summaries = {one.service: 0 for one in store.trends.summary()}
    for one in store.trends.summary():
        summaries[one.service] += one.n

    assert summaries == {HOSTILE: len(exchanges), "mobile": pytest.approx(len(others), abs=4)}
