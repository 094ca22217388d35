"""The cost of an evaluation without changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import event

from germane.alerting.evaluator import AlertEvaluator
from germane.settings import Settings
from germane.storage import TrackingStore
from germane.testing import engine_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_an_evaluation_without_new_scores_runs_four_queries_and_writes_nothing(
    url: str, settings: Callable[..., Settings]
) -> None:
    """The queries read open alerts, baselines, new scores and detector states, each through an index."""
    store = TrackingStore(url, clock=lambda: NOON)
    assert store.workers.acquire_lease("watcher", "me", ttl=timedelta(minutes=1))
    evaluator = AlertEvaluator(
        store, settings(), holder=("watcher", "me"), scorers=["answer_relevancy"], channels={}, clock=lambda: NOON
    )
    evaluator.evaluate()
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))
    evaluator.evaluate()
    store.close()

    tables = ["alert", "detector", "baseline", "detector_input"]
    queries = [one for one in statements if one.startswith("SELECT")]
    assert [f"FROM {table}" in query for table, query in zip(tables, queries, strict=True)] == [True] * 4
    assert not [one for one in statements if one.startswith(("INSERT", "UPDATE", "DELETE"))]
