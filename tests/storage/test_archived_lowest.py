"""Searches for the lowest archived scores return the same answers as in the database, but read only a few days."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, insert, select, update
from tests.storage.archive_templates import Copy
from tests.storage.archiving import FIRST_DAY, OLD, Make, archive, fill

from germane.errors import ArchiveError
from germane.storage import AnswerFilter, TrackingStore
from germane.storage.answers import archived_lowest as lowest
from germane.storage.answers.lowest_scores import ScoreFilter
from germane.storage.db.tables import archived_day, archived_lowest, exchange, score
from germane.testing import transaction

DAYS = 3
VALUES = st.one_of(st.sampled_from([0.0, 0.25, 0.5]), st.floats(0, 1))
LABELS = (None, "relevant", "irrelevant", "noncommittal")
COMMON_GROUP = (("shop", "shop", "help"), ("ask", "ask", "find"), ("f1", "f1", "f2"))
"""Services, routes and fingerprints. Most scores are in one group, so that lists end before the day's last score."""
rows = st.lists(
    st.tuples(
        VALUES,
        st.integers(0, DAYS - 1),
        st.integers(0, 3),
        *map(st.sampled_from, (*COMMON_GROUP, LABELS)),
    ),
    min_size=10,
    max_size=50,
)
moments = st.tuples(st.integers(0, DAYS), st.integers(0, 3)).map(
    lambda part: FIRST_DAY + timedelta(days=part[0], minutes=part[1])
)
conditions = {
    "since": moments,
    "until": moments,
    "service": st.sampled_from(["shop", "help"]),
    "route": st.sampled_from(["ask", "nowhere"]),
    "fingerprint": st.just("f1"),
    "label": st.sampled_from(LABELS[1:]),
    "low": st.booleans(),
    "refusals": st.booleans(),
    "at_least": st.sampled_from([0.1, 0.25]),
    "below": st.sampled_from([0.25, 0.4]),
}
filters = st.lists(st.one_of(st.tuples(st.just(name), value) for name, value in conditions.items()), max_size=3).map(
    dict
)


@pytest.fixture(autouse=True)
def short_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists end after two scores."""
    monkeypatch.setattr(lowest, "LISTED", 2)


def write(store: TrackingStore, given_rows: list[tuple[Any, ...]]) -> None:
    """Replace all exchanges and scores, and forget the archive."""
    scores = [
        {
            "id": number + 1, "exchange_id": f"{number:032x}", "scorer": "relevancy", "fingerprint": fingerprint,
            "service": service, "route": route, "started_at": FIRST_DAY + timedelta(days=day, minutes=minute),
            "value": value, "label": label, "details": {},
        }
        for number, (value, day, minute, service, route, fingerprint, label) in enumerate(given_rows)
    ]  # fmt: skip
    exchanges = [
        {
            "id": row["exchange_id"], "trace_id": "", "span_id": "", "contexts": [], "history": [], "attributes": {},
            "status": "ok", "duration": 0.0, "sampling_key": 1.0, "traced": True, "sampling_reason": "uniform",
            **{name: row[name] for name in ("service", "route", "started_at")},
        }
        for row in scores
    ]  # fmt: skip
    with transaction(store) as connection:
        for table in (score, exchange, archived_day, archived_lowest):
            connection.execute(delete(table))
        if scores:
            connection.execute(insert(exchange), exchanges)
            connection.execute(insert(score), scores)


def pages(store: TrackingStore, chosen: AnswerFilter, limit: int) -> Iterator[list[tuple[str, float | None]]]:
    """Yield the pages of a search for the lowest scores."""
    after = None
    while True:
        page = store.answers.search(chosen, after=after, limit=limit)
        yield [(one.exchange.id, one.score and one.score.value) for one in page.answers]
        after = page.next_cursor
        if after is None:
            return


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=rows, filters=st.lists(filters, min_size=1, max_size=12), limit=st.integers(1, 7), days=st.integers(1, DAYS)
)
def test_archived_answers_are_found_in_the_same_order(
    sqlite_store: TrackingStore, rows: list[tuple[Any, ...]], filters: list[dict[str, Any]], limit: int, days: int
) -> None:
    """All pages are the same as before, for any filter, ties and page size, however many days are archived."""
    write(sqlite_store, rows)
    chosen = [AnswerFilter(**values) for values in filters]
    before = [list(pages(sqlite_store, each, limit)) for each in chosen]

    with TemporaryDirectory() as folder:
        sqlite_store.archive.archive_days(folder, before=FIRST_DAY + timedelta(days=days))

        assert [list(pages(sqlite_store, each, limit)) for each in chosen] == before


def plan(store: TrackingStore, chosen: ScoreFilter, limit: int) -> tuple[list[int], list[int]]:
    """Return the days of the month of which a search reads all scores, and those of which it reads some."""
    with transaction(store, read_only=True) as connection:
        found = lowest.plan_search(connection, chosen, limit)
    return [day.day for day in found.days], sorted({moment.day for moment in found.moments})


def test_a_search_reads_only_what_can_contain_results(sqlite_store: TrackingStore, tmp_path: Path) -> None:
    """Of days with many equal scores, it reads the newest."""
    refusals = [(0.0, day, minute, "shop", "ask", "f1", "noncommittal") for day in range(4) for minute in range(4)]
    low = [(0.1 * (day + 1), day, minute, "shop", "find", "f1", "irrelevant") for day in range(4) for minute in (5, 6)]
    write(sqlite_store, [*refusals, *low])
    archive(sqlite_store, str(tmp_path / "archive"))

    assert plan(sqlite_store, ScoreFilter(), 1) == ([], [4])
    assert plan(sqlite_store, ScoreFilter(), 3) == ([4], [3])
    assert plan(sqlite_store, ScoreFilter(refusals=False), 3) == ([], [1, 2])
    assert plan(sqlite_store, ScoreFilter(route="find", low=True), 2) == ([], [1])
    assert plan(sqlite_store, ScoreFilter(route="nowhere"), 2) == ([], [])
    assert plan(sqlite_store, ScoreFilter(since=FIRST_DAY + timedelta(days=1)), 3) == ([4], [3])

    shutil.rmtree(tmp_path / "archive" / "day=2026-02-04")
    assert len(sqlite_store.answers.worst(refusals=False, limit=4)) == 4
    with pytest.raises(ArchiveError, match=r"1 day .*2026-02-04: score-.* is missing"):
        sqlite_store.answers.worst(limit=2)


def test_equal_scores_at_the_same_time_are_on_separate_pages(sqlite_store: TrackingStore, tmp_path: Path) -> None:
    """The lists do not contain the ids that decide their order."""
    write(sqlite_store, [(0.0, 0, 1, "shop", "ask", "f1", None)] * 2)
    before = list(pages(sqlite_store, AnswerFilter(), 1))
    archive(sqlite_store, str(tmp_path / "archive"))

    assert list(pages(sqlite_store, AnswerFilter(), 1)) == before
    assert len(before) == 2


def test_days_without_lists_are_read(sqlite_archived: Copy) -> None:
    """Their scores are the same, but the search takes longer."""
    store = sqlite_archived.store
    before = list(pages(store, AnswerFilter(), 7))
    with transaction(store) as connection:
        connection.execute(delete(archived_lowest).where(archived_lowest.c.day == FIRST_DAY))
        connection.execute(update(archived_day).where(archived_day.c.day == FIRST_DAY).values(has_lowest=None))

    assert list(pages(store, AnswerFilter(), 7)) == before


@pytest.mark.slow
def test_lists_follow_late_and_forgotten_answers(archived: Copy, make: Make) -> None:
    """They are rewritten together with the day's files."""
    store = archived.store
    exchanges = archived.exchanges + fill(store, make, count=20, days=2, seed=2)
    expected = list(pages(store, AnswerFilter(), 9))

    archive(store, str(archived.folder))
    assert list(pages(store, AnswerFilter(), 9)) == expected

    store.retention.forget(user="u1")
    mine = {one.id for one in exchanges if one.user == "u1"}
    kept = [pair for page in expected for pair in page if pair[0] not in mine]
    assert [pair for page in pages(store, AnswerFilter(), 9) for pair in page] == kept
    with transaction(store, read_only=True) as connection:
        ends = connection.execute(select(func.max(archived_lowest.c.day))).scalar_one()
    assert ends < OLD
