"""The SQLite file is private, and a writer detects that it was deleted, replaced or damaged while open."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event
from tests.storage.conftest import an_exchange
from tests.storage.test_writer import messages, until

from germane.errors import DatabaseNotMigrated, DatabaseUnreachable
from germane.exchange import Exchange
from germane.storage import ExchangeWriter, TrackingStore
from germane.storage.db import engine
from germane.storage.db.migrate import REVISIONS
from germane.testing import engine_of, transaction

LONG = 60.0
Damage = Callable[[Path], None]


def siblings(path: Path) -> list[Path]:
    """Return the database file, its log and the log's index."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def delete_database(path: Path) -> None:
    """Delete only the database file."""
    path.unlink()


def delete_all(path: Path) -> None:
    """Delete the file with its log."""
    for file in siblings(path):
        file.unlink(missing_ok=True)


def delete_directory(path: Path) -> None:
    """Delete the whole directory, and create it again."""
    shutil.rmtree(path.parent)
    path.parent.mkdir()


def replace_with_database(path: Path) -> None:
    """Move a new, migrated database into place."""
    new = path.with_name("new.db")
    with closing(TrackingStore(f"sqlite:///{new}")) as store:
        store.migrate()
    delete_all(path)
    new.replace(path)


def replace_with_empty_file(path: Path) -> None:
    """Move an empty file into place."""
    new = path.with_name("new.db")
    new.touch()
    delete_all(path)
    new.replace(path)


def truncate(path: Path) -> None:
    """Empty the file in place, as a shell does with ``> germane.db``, and delete its log."""
    os.truncate(path, 0)
    for file in siblings(path)[1:]:
        file.unlink(missing_ok=True)


def delete_log(path: Path) -> None:
    """Delete the write-ahead log."""
    siblings(path)[1].unlink(missing_ok=True)


def replace_log(path: Path) -> None:
    """Replace the log with an empty file."""
    new = path.with_name("new-wal")
    new.touch()
    new.replace(siblings(path)[1])


DELETED: Final = (
    delete_database,
    delete_all,
    delete_directory,
    replace_with_database,
    replace_with_empty_file,
    truncate,
)
LOG_DAMAGED: Final = (delete_log, replace_log)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A path in a directory of its own."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "germane.db"


@pytest.fixture
def opened(path: Path) -> Iterator[TrackingStore]:
    """A migrated store on the path."""
    store = TrackingStore(f"sqlite:///{path}")
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def writer(opened: TrackingStore) -> Iterator[ExchangeWriter]:
    """A writer that retries quickly."""
    running = ExchangeWriter(opened, interval=0.01, backoff=(0.01, 0.05))
    yield running
    running.stop(LONG)


def put(writer: ExchangeWriter, count: int) -> set[str]:
    """Capture exchanges; return their ids."""
    exchanges: list[Exchange] = [an_exchange() for _ in range(count)]
    assert all(writer.put(exchange) for exchange in exchanges)
    return {exchange.id for exchange in exchanges}


def stored_ids(path: Path) -> set[str]:
    """Return the ids that another program sees in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM exchange")}


@pytest.mark.skipif(os.name != "posix", reason="file modes exist on POSIX only")
def test_sqlite_files_are_private_to_their_owner(path: Path) -> None:
    """The database, its log and the log's index get the mode 0600, whatever the umask is."""
    before = os.umask(0)
    try:
        with closing(TrackingStore(f"sqlite:///{path}")) as store:
            store.migrate()
            store.exchanges.add([an_exchange()])
            modes = {stat.S_IMODE(file.stat().st_mode) for file in siblings(path)}
    finally:
        os.umask(before)

    assert modes == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="file modes exist on POSIX only")
def test_an_existing_sqlite_file_keeps_its_permissions(path: Path) -> None:
    """An administrator may share a database with a group."""
    path.touch()
    path.chmod(0o640)

    with closing(TrackingStore(f"sqlite:///{path}")) as store:
        store.migrate()

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("damage", DELETED)
def test_exchanges_in_the_queue_survive_the_loss_of_the_database_file(
    opened: TrackingStore, writer: ExchangeWriter, path: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything captured after the loss is in the new file, and the log names the loss."""
    put(writer, 100)
    assert writer.flush(LONG)
    damage(path)

    captured = put(writer, 1000)

    assert writer.flush(LONG)
    assert stored_ids(path) == captured
    assert writer.dropped == 0
    warnings = " ".join(messages(caplog, 30))
    assert any(loss in warnings for loss in ("was deleted", "was replaced", "log", "failed")), warnings


@pytest.mark.parametrize("damage", LOG_DAMAGED)
def test_losing_the_write_ahead_log_loses_no_exchanges(
    writer: ExchangeWriter, path: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    """The process still has the deleted log open, and saves its contents."""
    captured = put(writer, 100)
    assert writer.flush(LONG)
    damage(path)

    captured |= put(writer, 100)

    assert writer.flush(LONG)
    assert stored_ids(path) == captured
    assert any("write-ahead log" in message for message in messages(caplog, 30))


@pytest.mark.parametrize("offset", [0, 16, 18, 40])
def test_writing_stops_if_the_header_of_the_database_file_is_overwritten(
    opened: TrackingStore, writer: ExchangeWriter, path: Path, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Exchanges wait in memory until the file is restored."""
    captured = put(writer, 100)
    assert writer.flush(LONG)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    header = path.read_bytes()[:100]
    overwrite(path, header[:offset] + b"\xff" * (100 - offset))

    captured |= put(writer, 100)
    until(lambda: writer.problem is not None)
    overwrite(path, header)

    assert writer.flush(LONG)
    assert stored_ids(path) == captured
    assert any("restore a backup" in message or "failed" in message for message in messages(caplog, 30))


def overwrite(path: Path, content: bytes) -> None:
    """Overwrite the beginning of a file in another process: closing it here would release SQLite's locks."""
    script = "import sys; f = open(sys.argv[1], 'r+b'); f.write(bytes.fromhex(sys.argv[2])); f.close()"
    subprocess.run([sys.executable, "-c", script, str(path), content.hex()], check=True)


@pytest.mark.slow
@given(steps=st.lists(st.sampled_from([None, *DELETED, *LOG_DAMAGED]), min_size=2, max_size=6))
def test_exchanges_are_kept_after_any_sequence_of_file_losses(
    steps: list[Damage | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After each loss of the file, the new file contains all exchanges since. Losing only the log loses nothing."""
    path = tmp_path_factory.mktemp("data") / "nested" / "germane.db"
    path.parent.mkdir()
    with closing(TrackingStore(f"sqlite:///{path}")) as store:
        store.migrate()
        writer = ExchangeWriter(store, interval=0.01, backoff=(0.01, 0.05))
        captured = put(writer, 5)
        assert writer.flush(LONG)
        for damage in steps:
            if damage is not None:
                damage(path)
            if damage in DELETED:
                captured = set()
            captured |= put(writer, 5)
            assert writer.flush(LONG)
            assert stored_ids(path) == captured
        assert writer.stop(LONG)


def test_readers_switch_to_a_replacement_database_file(opened: TrackingStore, path: Path) -> None:
    """A process that only reads, such as the dashboard, shows the file that exists now."""
    opened.exchanges.add([an_exchange()])
    with closing(TrackingStore(f"sqlite:///{path}")) as reader:
        assert reader.answers.counts().captured == 1
        delete_all(path)
        with pytest.raises(DatabaseNotMigrated, match="does not exist"):
            reader.answers.counts()
        replace_with_database(path)

        assert reader.answers.counts().captured == 0


def test_a_transaction_in_progress_is_not_committed_to_a_deleted_file(opened: TrackingStore, path: Path) -> None:
    """The caller gets an error instead of a success, and its next transaction creates the file."""

    def write_to_a_deleted_file() -> None:
        with transaction(opened):
            delete_all(path)

    with pytest.raises(DatabaseUnreachable, match="was deleted"):
        write_to_a_deleted_file()

    opened.exchanges.add([an_exchange()])
    assert len(stored_ids(path)) == 1


def set_revision(store: TrackingStore, revision: str) -> None:
    """Mark the tables as migrated by another version of germane."""
    with transaction(store, migrating=True) as connection:
        connection.exec_driver_sql(f"UPDATE germane_version SET version_num = '{revision}'")


@pytest.mark.parametrize(("revision", "fix"), [("9.9", "upgrade germane"), ("0011", "germane export")])
def test_exchanges_are_queued_until_the_tables_match_the_code(
    store: TrackingStore, revision: str, fix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """germane writes nothing to the tables of a newer version or from before the first release; the log says what to
    do.
    """
    newest = store.revision()
    assert newest is not None
    set_revision(store, revision)
    store.close()
    writer = ExchangeWriter(store, interval=0.01, backoff=(0.01, 0.05))
    put(writer, 60)
    until(lambda: writer.problem is not None)

    assert fix in str(writer.problem)
    assert fix in " ".join(messages(caplog, 30))
    assert store.answers.counts().captured == 0
    set_revision(store, newest)
    assert writer.flush(LONG)
    assert store.answers.counts().captured == 60
    assert writer.stop(LONG)


def test_the_writer_stops_after_another_process_migrates_to_newer_tables(
    store: TrackingStore, other_store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections check the tables repeatedly, so that a rolling upgrade stops the old processes."""
    monkeypatch.setattr(engine, "TABLES_CHECK_INTERVAL", 0.0)
    store.exchanges.add([an_exchange()])
    set_revision(other_store, "9.9")
    try:
        with pytest.raises(DatabaseNotMigrated, match=r"9\.9.*newer"):
            store.exchanges.add([an_exchange()])
    finally:
        set_revision(other_store, REVISIONS[-1])


def test_tables_are_not_checked_in_every_transaction(sqlite_store: TrackingStore) -> None:
    """Only a connection's first transaction queries the revision, and later one of them every ten seconds."""
    statements: list[Any] = []
    sqlite_store.exchanges.add([an_exchange()])
    event.listen(engine_of(sqlite_store), "before_cursor_execute", lambda *details: statements.append(details[2]))

    sqlite_store.exchanges.add([an_exchange()])
    before = sum("germane_version" in statement for statement in statements)
    engine_of(sqlite_store).dispose()
    sqlite_store.exchanges.add([an_exchange()])

    assert (before, sum("germane_version" in statement for statement in statements)) == (0, 1)
