"""From scores to notifications in running monitors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.monitor import Alert, Callback, Monitor, MonitorConfig
from germane.score import Score
from germane.settings import MeanThreshold, Settings
from germane.storage import SamplingDecision, TrackingStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
THRESHOLD_RULE = MeanThreshold(threshold=0.6, window=3600, min_samples=3)
SCORER = {"answer_relevancy": "f1"}
Give = Callable[..., None]


@pytest.fixture
def give(store: TrackingStore, new_exchange: Callable[..., Exchange]) -> Give:
    """Store exchanges at noon with their scores."""

    def give(*values: float, **changes: Any) -> None:
        exchanges = [new_exchange(started_at=NOON, **changes) for _ in values]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], SCORER)
        claims = store.queue.claim_tasks("me", SCORER, limit=100, lease=timedelta(60))
        tasks = {task.exchange_id: task for claim in claims for task in claim.tasks}
        scores = [Score(scorer="answer_relevancy", fingerprint="f1", value=value) for value in values]
        store.queue.complete_tasks("me", [(tasks[one.id], score) for one, score in zip(exchanges, scores, strict=True)])

    return give


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_monitors_send_one_notification_for_an_alert(
    store: TrackingStore,
    other_store: TrackingStore,
    give: Give,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    until: Any,
) -> None:
    """People are notified once per transition, although both monitors evaluate."""
    alerts: list[Alert] = []
    channels = {"callback": Callback(alerts.append)}
    give(0.1, 0.1, 0.1)
    monitors = [
        start(place, settings=settings(rules=[THRESHOLD_RULE]), channels=channels, clock=lambda: NOON)
        for place in (store, other_store)
    ]

    until(lambda: alerts and all(monitor.status().jobs["evaluate"].last_run for monitor in monitors))
    assert all(monitor.stop(60) for monitor in monitors)

    assert [(alert.route, alert.state) for alert in alerts] == [("ask", "firing")]


def test_each_alert_transition_is_logged_on_one_line(
    store: TrackingStore,
    give: Give,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    until: Any,
    caplog: Any,
) -> None:
    """Without channels, the log contains the mean, interval and n, but no user text."""
    caplog.set_level(logging.INFO, "germane.alerting")
    give(0.1, 0.1, 0.1, route="a\nb", question="What is my secret?")
    start(store, settings=settings(rules=[THRESHOLD_RULE]), clock=lambda: NOON)

    until(lambda: caplog.records)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    (alert,) = store.alerts.list_open()
    assert alert.current is not None
    assert (alert.current.n, alert.route) == (3, "a\nb")
    assert record.getMessage() == f"alert firing: {alert.message}"
    assert "secret" not in record.getMessage()


class Similarity:
    """A scorer without a default rule."""

    name, fingerprint, requires, range = "question_answer_similarity", "f1", frozenset({"answer"}), (-1.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        return 0.5


def test_a_rule_for_a_missing_scorer_is_logged_at_the_start(
    store: TrackingStore, settings: Callable[..., Settings], attached: Any, caplog: Any
) -> None:
    """The message lists the running scorers."""
    floors = [MeanThreshold(threshold=0.5), MeanThreshold(threshold=0.5, scorer="question_answer_similarity")]

    Monitor(MonitorConfig(store, [Similarity()], settings(rules=floors), attach=attached))

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'mean_threshold' watches scorer answer_relevancy, which does not run in this process" in caplog.text
