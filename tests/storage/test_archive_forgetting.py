"""Forgetting users and attributes whose exchanges are in the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.storage.archive_templates import POSTGRESQL_IS_SLOW, Copy
from tests.storage.archiving import Make, archive, fill
from tests.storage.test_archive import archive_first_day, archived_counts, before_switching

from germane.exchange import Exchange
from germane.storage import TrackingStore


def test_forgetting_a_user_reaches_the_archive(archived: Copy) -> None:
    """The user's rows and the old files are deleted, and the other users' scores are kept."""
    store = archived.store
    mine = {one.id for one in archived.exchanges if one.user == "u1"}

    preview = store.retention.forget(user="u1", dry_run=True)
    removed = store.retention.forget(user="u1")

    assert preview == removed
    assert (removed.exchanges, removed.scores) == (len(mine), len(mine))
    files = archived.folder.rglob("exchange-*.parquet")
    stored = {id_ for path in files for id_ in pq.read_table(path)["id"].to_pylist()}
    assert stored == {one.id for one in archived.exchanges} - mine
    assert sum(summary.n for summary in store.trends.summary()) == len(stored)
    assert store.archive.verify() == {}
    assert not store.retention.forget(user="u1")


@POSTGRESQL_IS_SLOW
def test_forgetting_an_attribute_reaches_the_archive(filled: Copy) -> None:
    """Texts, numbers and booleans are found, as in the database."""
    store = filled.store
    attributes = [("tenant", "t1"), ("seats", "2"), ("trial", "true")]
    expected = [store.retention.forget(attribute=attribute, dry_run=True) for attribute in attributes]
    archive_first_day(filled)

    assert [store.retention.forget(attribute=attribute, dry_run=True) for attribute in attributes] == expected
    assert all(found.exchanges for found in expected)
    assert store.retention.forget(attribute=attributes[1]) == expected[1]
    assert not store.retention.forget(attribute=attributes[1])


def test_forgetting_an_attribute_compares_whole_numbers_exactly(
    sqlite_store: TrackingStore, make: Make, tmp_path: Path
) -> None:
    """A number of 18 digits is not rounded, and a fraction is the same number however it is written."""
    accounts = iter([202600000000000001, 202600000000000002, 2.5])

    def make_account(**values: Any) -> Exchange:
        return make(**values | {"attributes": {"account": next(accounts)}})

    exchanges = fill(sqlite_store, make_account, count=3, days=1)
    archive(sqlite_store, str(tmp_path / "archive"))

    assert sqlite_store.retention.forget(attribute=("account", "202600000000000002")).exchanges == 1
    assert sqlite_store.retention.forget(attribute=("account", "2.50")).exchanges == 1
    assert list(sqlite_store.answers.get_exchanges([one.id for one in exchanges])) == [exchanges[0].id]


def test_forgetting_a_user_deletes_labels_from_the_archive(sqlite_archived: Copy) -> None:
    store = sqlite_archived.store
    labels = archived_counts(store)["feedback"]

    assert store.retention.forget(user="u9").feedback == labels > 0
    assert archived_counts(store)["feedback"] == 0


def test_a_user_who_is_forgotten_while_late_rows_are_archived_does_not_come_back(
    sqlite_archived: Copy, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = sqlite_archived.store, sqlite_archived.folder
    late = fill(store, lambda **values: make(**values | {"user": "late"}), count=4, days=1, seed=2)
    before_switching(monkeypatch, lambda: store.retention.forget(user="late"))

    archive(store, str(folder))

    assert not store.answers.get_exchanges([one.id for one in late])
    assert not any("late" in pq.read_table(path)["user"].to_pylist() for path in folder.rglob("exchange-*.parquet"))
    assert sum(summary.n for summary in store.trends.summary()) == 60
