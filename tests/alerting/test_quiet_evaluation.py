"""What it costs to watch where nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import event

from germane.alerting.evaluator import Lookout
from germane.settings import Settings
from germane.storage import Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_quiet_look_asks_four_questions_and_writes_nothing(url: str, settings: Callable[..., Settings]) -> None:
    """What is open, what is learned, what has come, and who has moved on: each by an index, every tick."""
    store = Store(url, clock=lambda: NOON)
    assert store.elect("watcher", "me", ttl=timedelta(minutes=1))
    lookout = Lookout(
        store, settings(), holder=("watcher", "me"), scorers=["answer_relevancy"], channels={}, clock=lambda: NOON
    )
    lookout.look()
    asked: list[str] = []
    event.listen(store._database.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    lookout.look()
    store.close()

    tables = ["alert", "baseline", "arrival", "detector"]
    questions = [one for one in asked if one.startswith("SELECT")]
    assert [f"FROM {table}" in question for table, question in zip(tables, questions, strict=True)] == [True] * 4
    assert not [one for one in asked if one.startswith(("INSERT", "UPDATE", "DELETE"))]
