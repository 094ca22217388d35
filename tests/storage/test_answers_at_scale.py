"""Answer searches over large tables: bounded work, and results that report the limit."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import event
from tests.storage.test_answers import VALUES, Make, write
from tests.storage.test_query_plans import record_statements

from germane.annotation import Feedback
from germane.score import UnscoredReason
from germane.storage import AnswerFilter, TrackingStore
from germane.storage.answers import lowest_scores, search
from germane.testing import engine_of, transaction


def test_rare_filter_values_skip_the_fast_lookup(store: TrackingStore, make: Make) -> None:
    """Values that do not occur among the newest scores are not searched for through the value index."""
    write(store, make, VALUES)
    with transaction(store, read_only=True) as connection:
        soon = lowest_scores.find_lowest_fast(connection, lowest_scores.ScoreFilter(fingerprint="f1"), 3, few=2)
        rare = (lowest_scores.ScoreFilter(fingerprint="f9"), lowest_scores.ScoreFilter(label="none"))
        nowhere = [lowest_scores.find_lowest_fast(connection, one, 3, few=2) for one in rare]
        assert soon == lowest_scores.find_lowest(connection, lowest_scores.ScoreFilter(fingerprint="f1"), 3)

    assert nowhere == [None, None]


def test_search_by_label_returns_no_page_beyond_the_scan_limit(
    store: TrackingStore, make: Make, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search for labeled answers covers the newest labels and reports how far back it searched."""
    monkeypatch.setattr(search, "MAX_LABELS_SCANNED", 2)
    made = write(store, make, VALUES)
    store.labels.add_feedback(
        [Feedback(id=exchange.id, exchange_id=exchange.id, score=1.0, created_at=clock.now) for exchange in made[:4]]
    )

    page = store.answers.search(AnswerFilter(labeled=True), sort="newest")

    assert (page.next_cursor, page.searched_back_to) == (None, clock.now)


def test_a_search_for_failed_answers_runs_as_many_statements_for_hundreds_as_for_two(
    store: TrackingStore, make: Make
) -> None:
    """The list of failed answers and the worker page look up all of them at once."""
    many, two = UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.UNPARSABLE
    made = write(store, make, [two, two, *[many] * 600])
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))
    counts, newest = [], []
    for reason in (two, many):
        statements.clear()
        page = store.answers.search(AnswerFilter(state="failed", reason=reason), sort="newest", limit=1)
        counts.append(len(statements))
        newest += [answer.exchange.id for answer in page.answers]

    assert newest == [made[1].id, made[-1].id]
    assert counts[0] == counts[1]


def test_the_searches_of_a_page_find_the_newest_scores_of_a_window_once(store: TrackingStore, make: Make) -> None:
    """They see one state of the database, whose oldest and newest scores they count. The next page sees changes."""
    write(store, make, VALUES)
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))
    results = []
    for _ in range(2):
        statements.clear()
        with store.snapshot():
            found = store.answers.search(AnswerFilter(), sort="lowest", limit=2).answers
            found = store.answers.search(AnswerFilter(refusals=False), sort="lowest", limit=2).answers
            counts = [store.answers.count_matches(AnswerFilter(refusals=value)).count for value in (None, True, False)]
        results.append((len(found), *counts))
        is_by_time = [
            re.match(r"SELECT score.started_at.* ORDER BY \S+( DESC)?\s+LIMIT", one, re.DOTALL) for one in statements
        ]
        assert Counter(found[1] for found in is_by_time if found) == {None: 1, " DESC": 1}
        write(store, lambda place, **given: make(place + 50, **{**given, "id": f"{place + 50:032x}"}), [0.5])

    assert [after - before for before, after in zip(*results, strict=True)] == [0, 1, 0, 1]


def test_search_by_reason_looks_up_tasks_by_exchange(
    sqlite_store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query does not read all tasks with that reason for each answer."""
    write(sqlite_store, make, [UnscoredReason.JUDGE_TIMEOUT] * 4)
    monkeypatch.setattr(search, "MAX_EXCHANGES_SCANNED", 2)

    statements = record_statements(
        sqlite_store,
        lambda: sqlite_store.answers.search(AnswerFilter(state="failed", reason=UnscoredReason.JUDGE_TIMEOUT)),
    )
    (statement, parameters) = next(statement for statement in statements.values() if "EXISTS" in statement[0])
    with transaction(sqlite_store, read_only=True) as connection:
        plan = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]

    assert [step for step in plan if "scoring_task" in step and "exchange_id=?" not in step] == []
    assert [step for step in plan if "scoring_task" in step]
