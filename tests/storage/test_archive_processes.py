"""Several processes and databases that use one archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pytest
from sqlalchemy import Connection
from tests.storage.archiving import FIRST_DAY, OLD, Make, archive, fill
from tests.storage.test_archive import archived_counts, counts

from germane.annotation import Feedback
from germane.errors import ArchiveError
from germane.storage import TrackingStore
from germane.storage.archive.location import ArchiveLocation
from germane.storage.retention import archiving
from germane.storage.retention.archive_lease import NAME, TTL
from germane.storage.retention.expire import delete_exchanges


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def other(migrated_url: str, store: TrackingStore, clock: Any) -> Iterator[TrackingStore]:
    """A second process's store for the same database."""
    opened = TrackingStore(migrated_url, clock=clock)
    yield opened
    opened.close()


def test_one_process_at_a_time_archives(
    store: TrackingStore, other: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process is refused while the first one writes a file, and the first one's day is complete."""
    fill(store, make, count=30, days=1)
    rows = counts(store)
    refusals: list[str] = []
    writing = ArchiveLocation.writing

    @contextmanager
    def interrupted(self: ArchiveLocation, folder_name: str, name: str) -> Iterator[IO[bytes]]:
        with writing(self, folder_name, name) as file:
            yield file
            with pytest.raises(ArchiveError) as refusal:
                archive(other, str(folder))
            refusals.append(str(refusal.value))

    monkeypatch.setattr(ArchiveLocation, "writing", interrupted)
    archive(store, str(folder))
    monkeypatch.undo()

    assert refusals
    assert set(refusals) == {"another process is changing the archive: run the command again when it has finished"}
    assert archived_counts(store) == rows
    assert store.archive.verify() == {}
    assert len(list(folder.glob("day=*/*"))) == 9
    assert archive(other, str(folder)) == []


def test_the_lease_of_a_killed_process_expires(store: TrackingStore, make: Make, folder: Path, clock: Any) -> None:
    fill(store, make, count=10, days=1)
    store.workers.acquire_lease(NAME, "killed", ttl=TTL)
    with pytest.raises(ArchiveError, match="another process"):
        archive(store, str(folder))

    clock.now += TTL + timedelta(seconds=1)

    assert archive(store, str(folder))


def test_forgetting_a_user_fails_while_a_process_archives(store: TrackingStore, make: Make, folder: Path) -> None:
    """The error asks the caller to run the command again."""
    fill(store, make, count=10, days=1)
    archive(store, str(folder))
    store.workers.acquire_lease(NAME, "archiving", ttl=TTL)

    with pytest.raises(ArchiveError, match="run the command again"):
        store.retention.forget(user="u1")


def test_a_missing_manifest_is_written_by_the_next_run(
    store: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends between recording a day and writing its manifest file leaves a valid archive."""
    fill(store, make, count=10, days=1)
    writing = ArchiveLocation.writing

    def fail(self: ArchiveLocation, folder_name: str, name: str) -> Any:
        if name == "manifest.json":
            raise ArchiveError("killed")
        return writing(self, folder_name, name)

    monkeypatch.setattr(ArchiveLocation, "writing", fail)
    with pytest.raises(ArchiveError, match="killed"):
        archive(store, str(folder))
    monkeypatch.undo()
    assert store.archive.verify() == {}

    archive(store, str(folder))

    assert list(folder.glob("day=*/manifest.json"))
    assert store.archive.verify() == {}


def test_two_databases_cannot_share_a_location(
    store: TrackingStore, make: Make, folder: Path, tmp_path: Path, clock: Any
) -> None:
    """The second database is refused before it changes anything."""
    second = TrackingStore(f"sqlite:///{tmp_path / 'second.db'}", clock=clock)
    second.migrate()
    fill(store, make, count=10, days=1)
    fill(second, make, count=10, days=1, seed=2)
    archive(store, str(folder))
    files, rows = sorted(folder.rglob("*")), counts(second)

    with pytest.raises(ArchiveError, match="belongs to another database: set archive"):
        archive(second, str(folder))

    assert counts(second) == rows
    assert sorted(folder.rglob("*")) == files
    assert store.archive.verify() == {}
    assert archive(second, str(tmp_path / "elsewhere"))
    second.close()


def test_rows_that_are_committed_during_the_removal_stay(
    store: TrackingStore, other: TrackingStore, make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, a label and a count can be committed between the comparison and the deletion."""
    if store._database.dialect == "sqlite":
        pytest.skip("SQLite has only one transaction that writes at a time")
    exchanges = fill(store, make, count=30, days=1)
    rows = counts(store)
    label = Feedback(id="late", exchange_id=exchanges[1].id, score=0.0, user="u9", created_at=OLD)
    pending = [label]

    def delete_later(connection: Connection, moments: Mapping[str, datetime]) -> Any:
        if pending:
            other.labels.add_feedback([pending.pop()])
            other.exchanges.count_dropped({("svc", "ask"): 7}, ["relevancy"], at=FIRST_DAY + timedelta(hours=4))
        return delete_exchanges(connection, moments)

    monkeypatch.setattr(archiving, "delete_exchanges", delete_later)
    archive(store, str(folder))

    assert not pending
    detail = store.answers.load_detail(exchanges[1].id)
    assert detail is not None
    assert "late" in {given.id for given in detail.feedback}
    assert archived_counts(store)["feedback"] + counts(store)["feedback"] == rows["feedback"] + 1
    dropped = archived_counts(store)["tally"] + counts(store)["tally"] - rows["tally"]
    assert dropped > 0


def test_a_damaged_day_does_not_stop_later_days(store: TrackingStore, make: Make, folder: Path) -> None:
    """Its late rows stay in the database, later days are archived, and the error names the damaged day."""
    fill(store, make, count=10, days=1)
    archive(store, str(folder))
    (path,) = folder.glob("day=2026-02-01/score-*.parquet")
    path.write_bytes(path.read_bytes()[:-10])
    fill(store, make, count=30, seed=2)
    seen: list[Any] = []

    with pytest.raises(ArchiveError, match=r"1 day could not be archived: .*2026-02-01: score-") as raised:
        archive(store, str(folder), on_day=seen.append)

    assert str(raised.value).count("2026-02-01") == 1
    assert [(result.problem is None, result.manifest is None) for result in seen] == [
        (False, True),
        (True, False),
        (True, False),
    ]
    assert counts(store)["exchange"] > 0
    assert [day.state for day in store.archive.list_days()] == ["removed"] * 3


def test_a_day_archived_with_text_keeps_its_text_after_the_setting_changes(
    store: TrackingStore, make: Make, folder: Path
) -> None:
    """Late rows of the day are added to the archived rows, which keep their text."""
    fill(store, make, count=10, days=1)
    archive(store, str(folder), has_text=True)
    fill(store, make, count=5, days=1, seed=2)

    archive(store, str(folder), has_text=False)

    (day,) = store.archive.list_days()
    assert day.manifest.rows("exchange") == 15
    assert day.manifest.has_text
    assert all(one.question is not None for one in store.answers.list_exchanges(limit=20))
