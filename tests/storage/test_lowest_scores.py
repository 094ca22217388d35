"""Lowest scores: every query strategy returns the same rows as a plain sort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, event, insert

from germane.exchange import Exchange
from germane.score import Score
from germane.storage import TrackingStore
from germane.storage.answers import lowest_scores
from germane.storage.answers.lowest_scores import (
    STRATEGIES,
    ScoreFilter,
    find_lowest,
    scan_by_value,
    scan_low,
    scan_route,
    scan_small_window,
    scan_some_values,
    scan_window,
)
from germane.storage.db.tables import exchange, rollup_dirty_hour, score
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
DAY = timedelta(days=1)
ROUTES, SERVICES, SCORERS, FINGERPRINTS = ("ask", "find"), ("shop", "help"), ("a", "b"), ("f1", "f2")
LABELS = (None, "relevant", "irrelevant", "noncommittal")
row_lists = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.1]), st.floats(0, 1)),
        st.integers(0, 20),
        *map(st.sampled_from, (SCORERS, SERVICES, ROUTES, FINGERPRINTS, LABELS)),
    ),
    max_size=60,
)
filter_fields = st.fixed_dictionaries(
    {},
    optional={
        "since": st.integers(0, 20),
        "until": st.integers(0, 20),
        "scorer": st.sampled_from([*SCORERS, "nobody"]),
        "service": st.sampled_from(SERVICES),
        "route": st.sampled_from([*ROUTES, "nowhere"]),
        "fingerprint": st.sampled_from(FINGERPRINTS),
        "label": st.sampled_from(["irrelevant", "noncommittal"]),
        "low": st.booleans(),
    },
)
strategy_lists: Any = st.sampled_from(
    [
        STRATEGIES,
        (scan_window,),
        (partial(scan_by_value, steps=(None,)),),
        (partial(scan_by_value, steps=(1, 4, 0)), scan_window),
        (partial(scan_low, few=5), scan_window),
        (partial(scan_small_window, few=3), partial(scan_route, few=3), partial(scan_by_value, steps=(0, None))),
        (scan_route, partial(scan_by_value, steps=()), scan_window),
    ]
)


@dataclass(frozen=True)
class ScoreTable:
    """Direct access to the score table of one store."""

    store: TrackingStore
    make: Make

    def write(self, given_rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Replace all scores with these rows, whose IDs are in arbitrary order."""
        start = self.make().started_at
        values = [
            {
                "exchange_id": f"{number:032x}", "scorer": scorer, "fingerprint": fingerprint, "service": service,
                "route": route, "started_at": start + timedelta(minutes=minute), "value": value, "label": label,
                "details": {}, "id": number + 1,
            }
            for number, (value, minute, scorer, service, route, fingerprint, label) in enumerate(given_rows)
        ]  # fmt: skip
        with transaction(self.store) as connection:
            connection.execute(delete(score))
            connection.execute(delete(exchange))
            if values:
                connection.execute(insert(score), values)
                connection.execute(insert(exchange), [self._exchange(row) for row in values])
        return values

    def _exchange(self, row: dict[str, Any]) -> dict[str, Any]:
        same = {name: row[name] for name in ("service", "route", "started_at")}
        return {
            "id": row["exchange_id"], "trace_id": "", "span_id": "", "contexts": [], "history": [], "attributes": {},
            "status": "ok", "duration": 0.0, "sampling_key": 1.0, "traced": True, **same,
        }  # fmt: skip


@pytest.fixture
def score_table(store: TrackingStore, make: Make) -> ScoreTable:
    """A table to which scores are written directly, which is faster than through the queue."""
    return ScoreTable(store, make)


def sorted_ids(given_rows: list[dict[str, Any]], score_filter: ScoreFilter) -> list[int]:
    """Return the IDs of matching scores, sorted by value and then newest first."""
    names = ("scorer", "service", "route", "fingerprint", "label")
    found = [
        row
        for row in given_rows
        if score_filter.since is None or row["started_at"] >= score_filter.since
        if score_filter.until is None or row["started_at"] < score_filter.until
        if all(getattr(score_filter, name) in (None, row[name]) for name in names)
        if not score_filter.low or Score(scorer="a", value=row["value"], label=row["label"]).is_low
    ]
    ordered = sorted(found, key=lambda row: (row["value"], -row["started_at"].timestamp(), -row["id"]))
    return [row["id"] for row in ordered]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row_lists=row_lists, filter_fields=filter_fields, strategy_lists=strategy_lists, limit=st.integers(1, 12))
def test_every_query_strategy_returns_the_same_order_as_a_plain_sort(
    score_table: ScoreTable,
    row_lists: list[tuple[Any, ...]],
    filter_fields: dict[str, Any],
    strategy_lists: Any,
    limit: int,
) -> None:
    """The rows are the same for any window, filter, tie and limit."""
    stored_rows = score_table.write(row_lists)
    start = score_table.make().started_at
    moments = {
        name: start + timedelta(minutes=filter_fields[name]) for name in ("since", "until") if name in filter_fields
    }
    score_filter = ScoreFilter(**{**filter_fields, **moments})

    with transaction(score_table.store, read_only=True) as connection:
        found = find_lowest(connection, score_filter, limit, strategy_lists)

    assert [row["id"] for row in found] == sorted_ids(stored_rows, score_filter)[:limit]


def test_scores_of_whole_days_are_counted_by_rollups(score_table: ScoreTable) -> None:
    """The rollups show that a window is large, so that no scores are counted. Other windows are counted."""
    rows = score_table.write([(number / 100, number % 20, "a", "shop", "ask", "f1", None) for number in range(60)])
    store, begin = score_table.store, min(row["started_at"] for row in rows)
    with transaction(store) as connection:
        connection.execute(insert(rollup_dirty_hour), [{"hour": begin.replace(minute=0)}])
    store.rollups.update()
    statements: list[str] = []
    event.listen(engine_of(store), "before_cursor_execute", lambda *given: statements.append(given[2]))
    windows = ((None, None), (begin - DAY, begin + DAY), (begin, begin + DAY), (begin - DAY, begin))

    with transaction(store, read_only=True) as connection:
        chosen = [ScoreFilter(since=since, until=until) for since, until in windows]
        is_large = [[scan_small_window(connection, one, 10, bound) is None for bound in (59, 60)] for one in chosen]

    assert is_large == [[True, False], [True, False], [True, False], [False, False]]
    counting = [one for one in statements if one.split()[:3] == ["SELECT", "score.started_at", "FROM"]]
    assert len(counting) == len(windows) * 2 - 2


def test_no_more_values_are_read_than_half_of_the_scores_of_a_window(
    score_table: ScoreTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then, reading the window is faster. Without rollups, the number of scores is unknown."""
    rows = score_table.write(
        [(number / 200, number % 20 + number // 60 * 2880, "a", "shop", "ask", "f1", None) for number in range(120)]
    )
    store, begin = score_table.store, min(row["started_at"] for row in rows)
    with transaction(store) as connection:
        connection.execute(insert(rollup_dirty_hour), [{"hour": begin.replace(minute=0)}])
    store.rollups.update()
    monkeypatch.setattr(lowest_scores, "VALUE_SCAN_STEPS", (30, 100))
    rare = ScoreFilter(scorer="a", fingerprint="f2")

    with transaction(store, read_only=True) as connection:
        assert scan_some_values(connection, rare, 5) is None
        assert scan_some_values(connection, replace(rare, since=begin + DAY), 5) == []


def test_low_scores_are_found_in_an_index_of_their_own(score_table: ScoreTable) -> None:
    """All of a scorer's low scores in a window are read, unless these are too many. Those of others do not count."""
    labels = ("irrelevant", None)
    values = [(number / 100, number % 20, "a", "shop", "ask", "f1", labels[number % 2]) for number in range(60)]
    rows = score_table.write([*values, *[(0.1, 5, "b", "shop", "ask", "f1", None)] * 9])
    begin = min(row["started_at"] for row in rows)
    statements: list[tuple[str, Any]] = []
    event.listen(engine_of(score_table.store), "before_cursor_execute", lambda *given: statements.append(given[2:4]))
    low = ScoreFilter(since=begin - DAY, until=begin + DAY, scorer="a", service="shop", route="ask", low=True)

    with transaction(score_table.store, read_only=True) as connection:
        assert scan_low(connection, low, 60, few=54) is None
        found = scan_low(connection, low, 60, few=55)
        plans = [explain(connection, *one) for one in statements if one[0].startswith("SELECT score.")]

    assert [row["id"] for row in found or ()] == sorted_ids(rows, low)
    assert len(plans) == 4
    assert all("ix_score_low" in plan for plan in plans[:3])


def explain(connection: Connection, statement: str, parameters: Any) -> str:
    """Return the database's plan for a statement, without reading whole tables."""
    is_sqlite = connection.dialect.name == "sqlite"
    if not is_sqlite:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    explained = f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{statement}"
    return str(connection.exec_driver_sql(explained, parameters).all())


def test_a_query_strategy_returns_none_if_it_would_be_too_expensive(score_table: ScoreTable) -> None:
    """If a strategy returns None, the next one is used."""
    score_table.write([(number / 100, number % 20, "a", "shop", "ask", "f1", None) for number in range(60)])
    score_filter = ScoreFilter(scorer="a", route="ask")
    unlikely = ScoreFilter(scorer="a", fingerprint="f2")

    with transaction(score_table.store, read_only=True) as connection:
        assert scan_small_window(connection, score_filter, 5, few=59) is None
        assert scan_small_window(connection, score_filter, 5, few=60) is not None
        assert scan_route(connection, score_filter, 5, few=59) is None
        assert scan_route(connection, score_filter, 5, few=60) is not None
        assert scan_route(connection, unlikely, 5, few=60) is None
        assert scan_by_value(connection, unlikely, 5, steps=(30, 20)) is None
        assert scan_by_value(connection, unlikely, 5, steps=(30, 30)) == []


def test_equal_scores_are_sorted_newest_first(score_table: ScoreTable) -> None:
    """Of a hundred refusals, the latest are listed."""
    stored_rows = score_table.write([(0.0, number, "a", "shop", "ask", "f1", "noncommittal") for number in range(100)])

    found = score_table.store.answers.worst(limit=3, low=True)

    assert [one.exchange.id for one in found] == [row["exchange_id"] for row in reversed(stored_rows[-3:])]
    assert score_table.store.answers.worst(label="irrelevant") == []
    assert score_table.store.answers.worst(service="help") == []
