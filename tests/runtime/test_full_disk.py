"""An application whose disk is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

import germane
from germane.process import current_runtime
from germane.testing import engine_of

Query = Callable[[str], list[Any]]


@germane.observe
def ask(question: str) -> str:
    """Return a long answer."""
    return "By card, in the shop. " * 500


@pytest.mark.slow
def test_a_full_disk_does_not_affect_handlers(
    database: str, query: Query, warnings: Callable[[], list[str]], until: Callable[[Callable[[], Any]], None]
) -> None:
    """Exchanges wait in memory until there is space. One warning is logged."""
    germane.start(role="capture", database=database)
    runtime = current_runtime()
    assert runtime is not None
    assert runtime.writer.flush(60)
    pages = [1]  # SQLite rounds this up to the current size, and then reports a full disk

    @event.listens_for(engine_of(runtime.store), "checkout")
    def limit(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages[0]}")

    answers = {ask(f"How do I pay {number}?") for number in range(100)}
    until(lambda: runtime.writer.problem)
    assert answers == {"By card, in the shop. " * 500}
    [warning] = warnings()
    assert "disk is full; free some disk space" in warning
    pages[0] = 1_000_000

    assert germane.stop(60)
    assert query("SELECT count(*) FROM exchange") == [100]
    assert len(warnings()) == 1
