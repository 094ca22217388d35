"""Days that were archived before a migration are read, verified and changed like other days."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.storage.archive_templates import Copy
from tests.storage.archiving import FIRST_DAY, Make, archive, fill, write_as_older_revision
from tests.storage.test_archive import (
    any_day,
    archive_first_day,
    assert_same_trends,
    counts,
    file_of,
    is_partly_removed,
    run_until,
    trends,
)

from germane.errors import ArchiveError
from germane.storage import AnswerFilter, ExportSelection, TrackingStore
from germane.storage.db.migrate import REVISIONS
from germane.storage.retention import archiving

ADDED = {"exchange": ["capture_probability", "error"], "scoring_task": ["retries", "error"]}
"""Columns in which the tests' data has the default of the database, or null."""


def contents(store: TrackingStore) -> list[Any]:
    """Return everything that lists and exports contain."""
    answers = store.answers.search(AnswerFilter(), limit=100).answers
    return [
        [(one.exchange, one.score) for one in answers],
        store.answers.load_detail(answers[-1].exchange.id),
        store.transfer.load_stored(ExportSelection(), limit=100),
        store.trends.coverage(),
    ]


def test_days_that_an_older_revision_archived_read_as_before(sqlite_archived: Copy) -> None:
    """Missing columns have their default in the database, also where a query opens days of both revisions."""
    store = sqlite_archived.store
    before, before_trends = contents(store), trends(store)

    write_as_older_revision(store, FIRST_DAY, ADDED)
    assert_same_trends(before_trends, trends(store))
    assert contents(store) == before

    write_as_older_revision(store, FIRST_DAY + timedelta(days=1), ADDED)
    assert contents(store) == before
    assert store.archive.verify() == {}
    assert store.integrity.check_integrity().wrong_hours == []


def test_late_rows_and_forgotten_users_change_days_of_an_older_revision(sqlite_archived: Copy, make: Make) -> None:
    """The changed days have today's columns."""
    store = sqlite_archived.store
    for number in range(2):
        write_as_older_revision(store, FIRST_DAY + timedelta(days=number), ADDED)
    late = fill(store, make, count=20, days=1, seed=2)

    archive(store, str(sqlite_archived.folder))

    first, second = store.archive.list_days()
    assert first.manifest.revision == REVISIONS[-1] != second.manifest.revision
    removed = store.retention.forget(user="u1")
    assert removed.exchanges == sum(one.user == "u1" for one in sqlite_archived.exchanges + late)
    assert {one.manifest.revision for one in store.archive.list_days()} == {REVISIONS[-1]}
    assert store.archive.verify() == {}
    assert sum(one.n for one in store.trends.summary()) == 80 - removed.scores
    for path in sqlite_archived.folder.rglob("exchange-*.parquet"):
        assert set(pq.read_table(path)["capture_probability"].to_pylist()) == {1.0}
        assert "dropped" not in pq.read_schema(path).names


@pytest.mark.parametrize("state", ["written", pytest.param("verified", marks=pytest.mark.slow), "partly removed"])
def test_a_day_whose_archiving_a_migration_interrupts_is_written_again(
    sqlite_filled: Copy, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """Its rows are removed only when files with all of today's columns contain them."""
    monkeypatch.setattr(archiving, "BATCH_EXCHANGES", 5)
    store = sqlite_filled.store
    exported, coverage = store.transfer.load_stored(ExportSelection(), limit=100), store.trends.coverage()
    if state == "partly removed":
        archive_first_day(sqlite_filled, stopping=lambda: any_day(sqlite_filled, is_partly_removed))
    else:
        run_until(sqlite_filled, state)
    write_as_older_revision(store, FIRST_DAY, ADDED)
    assert store.trends.coverage() == coverage

    archive(store, str(sqlite_filled.folder))

    assert not any(counts(store).values())
    assert {one.manifest.revision for one in store.archive.list_days()} == {REVISIONS[-1]}
    assert store.archive.verify() == {}
    assert store.trends.coverage() == coverage
    moved = store.transfer.load_stored(ExportSelection(), limit=100)
    assert [one.id for one in moved] == [one.id for one in exported]


def test_a_damaged_file_of_an_older_revision_is_an_archive_error(sqlite_archived: Copy) -> None:
    store = sqlite_archived.store
    write_as_older_revision(store, FIRST_DAY, ADDED)
    path = file_of(sqlite_archived, "exchange")
    path.write_bytes(bytes(path.stat().st_size))

    with pytest.raises(ArchiveError, match=r"2026-02-01: exchange-older\.parquet has changed"):
        store.answers.list_exchanges(limit=100)
