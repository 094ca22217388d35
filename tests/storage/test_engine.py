"""What is wrong with a database is said in words: what happened, to which one, how to mend it; never a password."""

from __future__ import annotations

import os
import sqlite3
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from germane.errors import DatabaseUnreachable, SettingsError, StorageError
from germane.exchange import Exchange
from germane.storage import Store

Make = Callable[..., Exchange]
SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://localhost/x", "SQLite or PostgreSQL"),
        ("postgresql+psycopg2://localhost/x", "not in 'postgresql"),
        ("no url", "cannot be read"),
        (f"postgresql://user:{SECRET}@localhost:port/x", "cannot be read"),
        (f"postgresql://user:p@{SECRET}@localhost/x", "%40"),
    ],
)
def test_a_url_that_cannot_work_is_refused_at_once(url: str, message: str) -> None:
    """With the reason, and without the URL itself, which may hold a password."""
    with pytest.raises(SettingsError, match=message) as caught:
        Store(url)

    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_postgresql_means_psycopg_3() -> None:
    """Whatever SQLAlchemy's own default is."""
    assert Store("postgresql://localhost/x")._database.engine.dialect.driver == "psycopg"


@pytest.mark.parametrize("given", [f"user:{SECRET}@", "", "user@"])
def test_passwords_never_show(given: str, tmp_path: Path) -> None:
    """Neither in repr nor in errors nor in what they are chained to, wherever in the URL it stands."""
    store = Store(f"postgresql://{given}/x?host={tmp_path}&password={SECRET}")

    with pytest.raises(DatabaseUnreachable) as caught:
        store.check()

    shown = "".join(traceback.format_exception(caught.value)) + repr(store) + repr(store._database) + store.name
    assert SECRET not in shown
    store.close()


def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    """The message names the database and what the driver said."""
    store = Store("postgresql://user:secret@127.0.0.1:1/shop")

    with pytest.raises(DatabaseUnreachable, match=r"postgresql://user:\*\*\*@127.0.0.1:1/shop .*start the server"):
        store.check()
    store.close()


def test_a_database_that_does_not_exist_is_unreachable(postgresql: Any) -> None:
    """And the message says to create it."""
    store = Store(postgresql.url("missing"))

    with pytest.raises(DatabaseUnreachable, match="create it"):
        store.check()
    store.close()


@pytest.mark.parametrize("work", ["check", "migrate"])
def test_a_path_that_cannot_be_written_is_named(tmp_path: Path, work: str) -> None:
    """With what to do about it."""
    store = Store(f"sqlite:///{tmp_path}/missing/germane.db")

    with pytest.raises(DatabaseUnreachable, match=r"missing/germane.db .*unable to open.*make sure that its directory"):
        getattr(store, work)()
    store.close()


def test_a_read_only_database_is_named(sqlite_store: Store, make: Make) -> None:
    """It can still be read."""
    path = str(sqlite_store._database.url.database)
    read_only = Store(f"sqlite:///file:{path}?mode=ro&uri=true")

    read_only.check()
    with pytest.raises(DatabaseUnreachable, match="right to write"):
        read_only.add([make()])
    read_only.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    """Rather than overwritten."""
    path = tmp_path / "notes.txt"
    path.write_text("something else " * 100)
    store = Store(f"sqlite:///{path}")

    with pytest.raises(DatabaseUnreachable, match=r"not a database.*choose another path"):
        store.migrate()

    assert path.read_text().startswith("something else")
    store.close()


def test_a_relative_path_stays_where_it_was(tmp_path: Path, make: Make) -> None:
    """An application that changes its directory does not change its database."""
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        store = Store("sqlite:///here.db")
    finally:
        os.chdir(before)
    store.migrate()

    assert (tmp_path / "here.db").exists()
    store.close()


def test_a_refused_row_is_not_quoted(store: Store, make: Make) -> None:
    """What users wrote stays out of errors, and out of what they are chained to."""
    exchange = make(question="-".join(["my", "own", "question"]), status=None)  # not as it stands in a line of code
    with pytest.raises(StorageError) as caught:
        store.add([exchange])

    assert "my-own" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("wrong", [{"trace_id": "\ud800"}, {"span_id": object()}])
def test_values_that_the_driver_cannot_send_are_refused(store: Store, make: Make, wrong: dict[str, Any]) -> None:
    """As an error of ours, whatever the driver raises."""
    with pytest.raises(StorageError):
        store.add([make(**wrong)])


def test_a_store_goes_on_after_a_cut_line(line: Any, postgresql: Any, migrated_database: str, make: Make) -> None:
    """Each use says that the database is away, until it is back."""
    store = Store(postgresql.url(migrated_database, line.directory))
    store.add([make()])
    line.cut()
    for _ in range(2):
        with pytest.raises(DatabaseUnreachable):
            store.add([make()])
    line.mend()

    store.add([make()])

    assert store.counts().captured == 2
    store.close()


def test_closing_is_no_end(sqlite_store: Store) -> None:
    """A store opens new connections when it is used again."""
    sqlite_store.close()
    sqlite_store.close()

    assert sqlite_store.counts().captured == 0


def test_closing_waits_for_what_is_under_way(store: Store) -> None:
    """A connection that another thread still uses is closed as well, and not left to the garbage collector."""
    under_way = threading.Event()
    closed: list[Any] = []

    def work() -> None:
        with store._database.write() as connection:
            closed.append(connection.connection.dbapi_connection)
            under_way.set()
            threading.Event().wait(0.1)

    thread = threading.Thread(target=work)
    thread.start()
    assert under_way.wait(60)
    store.close()
    thread.join()

    with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
        closed[0].cursor().execute("SELECT 1")


def test_a_writer_waits_for_another_one(sqlite_store: Store, make: Make) -> None:
    """SQLite has one at a time; readers do not wait."""
    other = sqlite3.connect(str(sqlite_store._database.url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert sqlite_store.counts().captured == 0
    other.execute("COMMIT")
    other.close()

    sqlite_store.add([make()])

    assert sqlite_store.counts().captured == 1
