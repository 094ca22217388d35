"""From scores to people: monitors that watch, and the messages that come of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.monitor import Alert, Callback, Monitor
from germane.score import Score
from germane.settings import Floor, Settings
from germane.storage import Decision, Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FLOOR = Floor(threshold=0.6, window=3600, min_count=3)
SCORER = {"answer_relevancy": "f1"}
Give = Callable[..., None]


@pytest.fixture
def give(store: Store, new_exchange: Callable[..., Exchange]) -> Give:
    """Write exchanges of noon with their scores."""

    def give(*values: float, **changes: Any) -> None:
        exchanges = [new_exchange(started_at=NOON, **changes) for _ in values]
        store.add(exchanges)
        store.assign([Decision(one.id, 1.0, "drawn") for one in exchanges], SCORER)
        claims = store.claim("me", SCORER, limit=100, lease=timedelta(60))
        tasks = {task.exchange_id: task for claim in claims for task in claim.tasks}
        scores = [Score(scorer="answer_relevancy", fingerprint="f1", value=value) for value in values]
        store.complete("me", [(tasks[one.id], score) for one, score in zip(exchanges, scores, strict=True)])

    return give


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_two_monitors_send_one_message(
    store: Store,
    other_store: Store,
    give: Give,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    until: Any,
) -> None:
    """However many processes watch one database, each transition is told once, and all know what is open."""
    alerts: list[Alert] = []
    channels = {"callback": Callback(alerts.append)}
    give(0.1, 0.1, 0.1)
    monitors = [
        start(place, settings=settings(rules=[FLOOR]), channels=channels, clock=lambda: NOON)
        for place in (store, other_store)
    ]

    until(lambda: all(monitor.status().open_alerts for monitor in monitors))
    assert all(monitor.stop(60) for monitor in monitors)

    assert [(alert.route, alert.state) for alert in alerts] == [("ask", "firing")]


def test_a_transition_is_one_line_in_the_log(
    store: Store, give: Give, start: Callable[..., Monitor], settings: Callable[..., Settings], until: Any, caplog: Any
) -> None:
    """Without any channel the log tells: one warning with mean, interval and n, on one line, without text of users."""
    caplog.set_level(logging.INFO, "germane.monitor")
    give(0.1, 0.1, 0.1, route="a\nb", question="What is my secret?")
    start(store, settings=settings(rules=[FLOOR]), clock=lambda: NOON)

    until(lambda: caplog.records)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(
        "alert firing: answer_relevancy of route a b in shop is below 0.6: mean 0.100 ("
    )
    assert "n = 3) over the last hour." in record.getMessage()
    assert "secret" not in record.getMessage()


class Similarity:
    """A scorer that no default rule watches."""

    name, fingerprint, requires, range = "question_answer_similarity", "f1", frozenset({"answer"}), (-1.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        return 0.5


def test_a_rule_whose_scorer_does_not_run_here_is_told(
    store: Store, settings: Callable[..., Settings], attached: Any, caplog: Any
) -> None:
    """A rule that will see nothing is said at the start, with the scorer that it might watch instead."""
    floors = [Floor(threshold=0.5), Floor(threshold=0.5, scorer="question_answer_similarity")]

    Monitor(store, [Similarity()], settings(rules=floors), attach=attached)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'floor' watches answer_relevancy, which does not score here (question_answer_similarity" in caplog.text
