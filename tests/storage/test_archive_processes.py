"""Several processes and databases that use one archive."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from typing import IO, Any

import pytest
from sqlalchemy import Connection, select, update
from tests.storage.archive_templates import Copy
from tests.storage.archiving import FIRST_DAY, OLD, Make, archive, fill
from tests.storage.test_archive import archived_counts, counts

from germane.annotation import Feedback
from germane.errors import ArchiveError
from germane.storage import TrackingStore
from germane.storage.archive.location import ArchiveLocation
from germane.storage.db.tables import archived_day
from germane.storage.retention import archiving
from germane.storage.retention.archive_lease import NAME, TTL
from germane.storage.retention.expire import delete_exchanges
from germane.testing import Clock, transaction


@pytest.fixture
def other(sqlite_filled: Copy, clock: Clock) -> Iterator[TrackingStore]:
    """A second process's store for the same database."""
    with closing(TrackingStore(sqlite_filled.url, clock=clock)) as opened:
        yield opened


def archive_first_day(copy: Copy, **options: Any) -> list[Any]:
    return copy.store.archive.archive_days(str(copy.folder), before=FIRST_DAY + timedelta(days=1), **options)


def test_one_process_at_a_time_archives(
    sqlite_filled: Copy, other: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process is refused while the first one writes a file, and the first one's day is complete."""
    store, folder = sqlite_filled.store, sqlite_filled.folder
    rows = Counter(counts(store))
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
    archive_first_day(sqlite_filled)
    monkeypatch.undo()

    assert refusals
    assert set(refusals) == {"another process is changing the archive: run the command again when it has finished"}
    assert Counter(archived_counts(store)) + Counter(counts(store)) == rows
    assert store.archive.verify() == {}
    assert len(list(folder.glob("day=*/*"))) == 9
    assert [result.day for result in archive(other, str(folder))] == [FIRST_DAY + timedelta(days=1)]


def test_the_lease_of_a_killed_process_expires(sqlite_filled: Copy, clock: Clock) -> None:
    sqlite_filled.store.workers.acquire_lease(NAME, "killed", ttl=TTL)
    with pytest.raises(ArchiveError, match="another process"):
        archive_first_day(sqlite_filled)

    clock.now += TTL + timedelta(seconds=1)

    assert archive_first_day(sqlite_filled)


def test_forgetting_a_user_fails_while_a_process_archives(sqlite_archived: Copy) -> None:
    """The error asks the caller to run the command again."""
    sqlite_archived.store.workers.acquire_lease(NAME, "archiving", ttl=TTL)

    with pytest.raises(ArchiveError, match="run the command again"):
        sqlite_archived.store.retention.forget(user="u1")


def test_a_missing_manifest_is_written_by_the_next_run(sqlite_filled: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends between recording a day and writing its manifest file leaves a valid archive."""
    store, folder = sqlite_filled.store, sqlite_filled.folder
    writing = ArchiveLocation.writing

    def fail(self: ArchiveLocation, folder_name: str, name: str) -> Any:
        if name == "manifest.json":
            raise ArchiveError("killed")
        return writing(self, folder_name, name)

    monkeypatch.setattr(ArchiveLocation, "writing", fail)
    with pytest.raises(ArchiveError, match="killed"):
        archive_first_day(sqlite_filled)
    monkeypatch.undo()
    assert store.archive.verify() == {}

    archive_first_day(sqlite_filled)

    assert list(folder.glob("day=*/manifest.json"))
    assert store.archive.verify() == {}


def test_two_databases_cannot_share_a_location(sqlite_archived: Copy, sqlite_store: TrackingStore, make: Make) -> None:
    """The second database is refused before it changes anything."""
    store, folder = sqlite_archived.store, sqlite_archived.folder
    fill(sqlite_store, make, count=10, days=1, seed=2)
    files, rows = sorted(folder.rglob("*")), counts(sqlite_store)

    with pytest.raises(ArchiveError, match="belongs to another database: set archive"):
        archive(sqlite_store, str(folder))

    assert counts(sqlite_store) == rows
    assert sorted(folder.rglob("*")) == files
    assert store.archive.verify() == {}
    assert archive(sqlite_store, str(folder.with_name("elsewhere")))


def test_rows_of_a_day_that_another_process_has_rewritten_stay(sqlite_filled: Copy) -> None:
    """A process that was paused longer than its lease removes no rows: the files that it has read are replaced."""
    store = sqlite_filled.store
    rows = counts(store)
    times = (FIRST_DAY - timedelta(days=number) for number in itertools.count())

    def rewrite_before_the_removal() -> bool:
        with transaction(store) as connection:
            verified = connection.execute(select(archived_day).where(archived_day.c.state == "verified")).mappings()
            for day in verified.all():
                changed = day["manifest"] | {"created_at": next(times).isoformat()}
                connection.execute(update(archived_day).values(manifest=changed))
        return False

    (result,) = archive_first_day(sqlite_filled, stopping=rewrite_before_the_removal)

    assert (result.manifest, result.waiting_for) == (None, "another process is archiving it")
    assert counts(store) == rows


def test_rows_that_are_committed_during_the_removal_stay(
    postgresql_filled: Copy, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, a label and a count can be committed between the comparison and the deletion.

    SQLite has only one transaction that writes at a time.
    """
    store, exchange = postgresql_filled.store, postgresql_filled.exchanges[1]
    rows = counts(store)
    pending = [Feedback(id="late", exchange_id=exchange.id, score=0.0, user="u9", created_at=OLD)]

    with closing(TrackingStore(postgresql_filled.url, clock=clock)) as other:

        def delete_later(connection: Connection, moments: Mapping[str, datetime], *, archived: bool) -> Any:
            if pending:
                other.labels.add_feedback([pending.pop()])
                other.exchanges.count_dropped({("svc", "ask"): 7}, ["relevancy"], at=FIRST_DAY + timedelta(hours=4))
            return delete_exchanges(connection, moments, archived=archived)

        monkeypatch.setattr(archiving, "delete_exchanges", delete_later)
        archive_first_day(postgresql_filled)

    assert not pending
    detail = store.answers.load_detail(exchange.id)
    assert detail is not None
    assert "late" in {given.id for given in detail.feedback}
    assert archived_counts(store)["feedback"] + counts(store)["feedback"] == rows["feedback"] + 1
    dropped = archived_counts(store)["tally"] + counts(store)["tally"] - rows["tally"]
    assert dropped > 0


def test_a_damaged_day_does_not_stop_later_days(sqlite_filled: Copy, make: Make) -> None:
    """Its late rows stay in the database, later days are archived, and the error names the damaged day."""
    store = sqlite_filled.store
    archive_first_day(sqlite_filled)
    (path,) = sqlite_filled.folder.glob("day=2026-02-01/score-*.parquet")
    path.write_bytes(path.read_bytes()[:-10])
    fill(store, make, count=5, days=1, seed=2)
    seen: list[Any] = []

    with pytest.raises(ArchiveError, match=r"1 day could not be archived: .*2026-02-01: score-") as raised:
        archive(store, str(sqlite_filled.folder), on_day=seen.append)

    assert str(raised.value).count("2026-02-01") == 1
    assert [(result.problem is None, result.manifest is None) for result in seen] == [(False, True), (True, False)]
    assert counts(store)["exchange"] == 5
    assert [day.state for day in store.archive.list_days()] == ["removed"] * 2


def test_a_day_archived_with_text_keeps_its_text_after_the_setting_changes(sqlite_filled: Copy, make: Make) -> None:
    """Late rows of the day are added to the archived rows, which keep their text."""
    store = sqlite_filled.store
    archive_first_day(sqlite_filled, has_text=True)
    (before,) = store.archive.list_days()
    fill(store, make, count=5, days=1, seed=2)

    archive_first_day(sqlite_filled, has_text=False)

    (day,) = store.archive.list_days()
    assert day.manifest.rows("exchange") == before.manifest.rows("exchange") + 5
    assert day.manifest.has_text
    assert all(one.question is not None for one in store.answers.list_exchanges(limit=100))
