"""Errors for unreachable or invalid databases: they name the database, the problem and the fix, but no password."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import threading
import traceback
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import exc, make_url
from tests.cases import each

from germane.annotation import RecordedScore
from germane.errors import DatabaseUnreachable, SettingsError, StorageError
from germane.exchange import Exchange
from germane.storage import TrackingStore
from germane.storage.db.drivers import parse_url
from germane.storage.db.errors import ContentRefused, translate_error
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.tables import saved_view
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://localhost/x", "SQLite or PostgreSQL"),
        ("postgresql+psycopg2://localhost/x", "unsupported database 'postgresql"),
        ("no url", "invalid database URL"),
        (f"postgresql://user:{SECRET}@localhost:port/x", "invalid database URL"),
        (f"postgresql://user:p@{SECRET}@localhost/x", "%40"),
    ],
)
def test_an_invalid_database_url_is_rejected_immediately(url: str, message: str) -> None:
    """The error does not contain the URL, which may include a password."""
    with pytest.raises(SettingsError, match=message) as caught:
        TrackingStore(url)

    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_postgresql_connections_use_psycopg_3() -> None:
    """The driver does not depend on SQLAlchemy's default."""
    assert engine_of(TrackingStore("postgresql://localhost/x")).dialect.driver == "psycopg"


@pytest.mark.parametrize("given", [f"user:{SECRET}@", "", "user@"])
def test_database_passwords_never_appear_in_messages(given: str, tmp_path: Path) -> None:
    """A password in any part of the URL appears neither in the repr nor in errors and their causes."""
    store = TrackingStore(f"postgresql://{given}/x?host={tmp_path}&password={SECRET}")

    with pytest.raises(DatabaseUnreachable) as caught:
        store.check()

    shown = "".join(traceback.format_exception(caught.value)) + repr(store) + repr(store.context.database) + store.name
    assert SECRET not in shown
    store.close()


def test_a_stopped_database_server_raises_database_unreachable(tmp_path: Path) -> None:
    """The error contains the database URL and the driver's message."""
    store = TrackingStore("postgresql://user:secret@127.0.0.1:1/shop")

    with pytest.raises(DatabaseUnreachable, match=r"postgresql://user:\*\*\*@127.0.0.1:1/shop .*start the server"):
        store.check()
    store.close()


def test_a_missing_database_raises_database_unreachable(postgresql: Any) -> None:
    """The error suggests creating the database."""
    store = TrackingStore(postgresql.url("missing"))

    with pytest.raises(DatabaseUnreachable, match="create it"):
        store.check()
    store.close()


@pytest.mark.parametrize("work", ["check", "migrate"])
def test_an_unwritable_database_path_is_reported(tmp_path: Path, work: str) -> None:
    """The error contains the path and a hint."""
    store = TrackingStore(f"sqlite:///{tmp_path}/missing/germane.db")

    with pytest.raises(DatabaseUnreachable, match=r"missing/germane.db .*unable to open.*make sure that its directory"):
        getattr(store, work)()
    store.close()


def test_writing_to_a_read_only_database_is_reported(sqlite_store: TrackingStore, make: Make) -> None:
    """Reading still works."""
    path = str(engine_of(sqlite_store).url.database)
    read_only = TrackingStore(f"sqlite:///file:{path}?mode=ro&uri=true")

    read_only.check()
    with pytest.raises(DatabaseUnreachable, match="write access"):
        read_only.exchanges.add([make()])
    read_only.close()


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    """The file is not overwritten."""
    path = tmp_path / "notes.txt"
    path.write_text("something else " * 100)
    store = TrackingStore(f"sqlite:///{path}")

    with pytest.raises(DatabaseUnreachable, match=r"not a database.*choose another path"):
        store.migrate()

    assert path.read_text().startswith("something else")
    store.close()


def test_a_relative_database_path_is_resolved_only_once(tmp_path: Path, make: Make) -> None:
    """Changing the working directory does not change the database."""
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        store = TrackingStore("sqlite:///here.db")
    finally:
        os.chdir(before)
    store.migrate()

    assert (tmp_path / "here.db").exists()
    store.close()


OTHER_OPTIONS = (
    "pgbouncer=true", "schema=public", "connection_limit=1", "pool_timeout=10", "sslaccept=strict", "supa=base-pooler",
    "statement_cache_size=0", "prepared_statements=false", "ssl=true", "currentSchema=public", "autocommit=true",
    "sslmode=require&pgbouncer=true", "charset=utf8", "socket_timeout=9", "async_fallback=1",
)  # fmt: skip
VALID_OPTIONS = (
    "sslmode=require", "connect_timeout=3", "application_name=shop", "target_session_attrs=any", "keepalives=0",
    "options=-csearch_path%3Dshop", "host=a:1&host=b:2", "sslrootcert=/x.pem", "channel_binding=prefer",
    "prepare_threshold=0", "",
)  # fmt: skip


@each("options", OTHER_OPTIONS)
def test_an_option_for_another_driver_is_a_settings_error(options: str) -> None:
    """Hosts of PostgreSQL hand out URLs like this. The error names the option and not its value."""
    name, _, value = options.rpartition("&")[2].partition("=")
    with pytest.raises(SettingsError, match=f"remove '{name}'$") as caught:
        TrackingStore(f"postgresql://shop:secret@127.0.0.1:1/shop?{options}")

    assert "secret" not in str(caught.value)
    assert not re.search(rf"\b{value}\b", str(caught.value).replace("remove", ""))


@each("options", VALID_OPTIONS)
def test_the_drivers_own_options_are_accepted(options: str) -> None:
    """They are not changed."""
    url = f"postgresql://shop@127.0.0.1:1/shop?{options}"

    assert parse_url(url).query == make_url(url).query


@each(
    "url",
    [
        "postgresql://127.0.0.1:1/shop?connect_timeout=abc",
        "postgresql://127.0.0.1:1/shop?connect_timeout=1.5", "postgresql://127.0.0.1:1/shop?host=a:b:c:1&port=x&host=b",
        "sqlite:///shop.db?timeout=abc", "sqlite:///shop.db?check_same_thread=maybe",
    ],
)  # fmt: skip
def test_an_option_with_an_invalid_value_is_a_settings_error(url: str) -> None:
    """The driver would raise an error for every connection."""
    with pytest.raises(SettingsError, match=r"^an option in the database URL has an invalid value: correct "):
        TrackingStore(url)


@each("options", ["sslmode=bogus", "keepalives=x", "target_session_attrs=x", "sslmode=require&sslmode=disable"])
def test_errors_of_a_connection_are_not_about_a_row(options: str, make: Make) -> None:
    """Only the server's library checks these values. Rows wait."""
    store = TrackingStore(f"postgresql://shop@127.0.0.1:1/shop?{options}")

    for write in (
        lambda: store.exchanges.add([make()]),
        lambda: store.exchanges.record_scores(
            [RecordedScore(exchange_id="e", name="n", value=1.0, recorded_at=datetime.now(UTC))]
        ),
    ):
        with pytest.raises(DatabaseUnreachable):
            write()
    store.close()


@each("kind", [exc.IntegrityError, exc.DataError, exc.ProgrammingError])
def test_an_error_without_a_statement_is_never_about_a_row(kind: type[exc.DBAPIError]) -> None:
    """The driver reports an unusable connection string with the same classes as an invalid value."""
    cause = psycopg.ProgrammingError("invalid connection option")

    assert isinstance(translate_error(kind("INSERT", {}, cause), "x"), ContentRefused)
    assert isinstance(translate_error(kind(None, None, cause), "x"), DatabaseUnreachable)


def test_database_errors_do_not_quote_row_values(store: TrackingStore, make: Make) -> None:
    """Errors and their causes do not contain user data."""
    # The question is built at run time, because a traceback quotes lines of code.
    exchange = make(question="-".join(["my", "own", "question"]), status=None)
    with pytest.raises(StorageError) as caught:
        store.exchanges.add([exchange])

    assert "my-own" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("wrong", ["\ud800", object()])
def test_values_that_the_database_driver_cannot_encode_are_rejected(store: TrackingStore, wrong: object) -> None:
    """Every driver error becomes ContentRefused."""
    row = ("v1", wrong, timestamp_encoder(engine_of(store).dialect.name)(datetime.now(UTC)))
    with pytest.raises(ContentRefused), transaction(store) as connection:
        bulk_insert(connection, saved_view, ("name", "path", "created_at"), [row])


def test_exchanges_with_values_of_another_type_are_rejected(store: TrackingStore, make: Make) -> None:
    """Text that a database cannot store is cleaned instead, in every column."""
    with pytest.raises(ContentRefused):
        store.exchanges.add([make(span_id=object())])

    store.exchanges.add([make(id="e1", trace_id="\ud800", span_id="a\0")])
    stored = store.answers.get_exchanges(["e1"])["e1"]
    assert (stored.trace_id, stored.span_id) == ("\ufffd", "a\ufffd")


def test_a_store_recovers_from_a_lost_connection(
    proxy: Any, postgresql: Any, migrated_database: str, make: Make
) -> None:
    """Each use raises DatabaseUnreachable until the database is reachable again."""
    store = TrackingStore(postgresql.url(migrated_database, proxy.directory))
    store.exchanges.add([make()])
    proxy.disconnect()
    for _ in range(2):
        with pytest.raises(DatabaseUnreachable):
            store.exchanges.add([make()])
    proxy.reconnect()

    store.exchanges.add([make()])

    assert store.answers.counts().captured == 2
    store.close()


def test_a_closed_store_can_be_used_again(sqlite_store: TrackingStore) -> None:
    """A closed store opens new connections on its next use."""
    sqlite_store.close()
    sqlite_store.close()

    assert sqlite_store.answers.counts().captured == 0


def test_closing_the_database_waits_for_running_transactions(store: TrackingStore) -> None:
    """A connection in use by another thread is closed too, instead of being left to the garbage collector."""
    under_way = threading.Event()
    closed: list[Any] = []

    def work() -> None:
        with transaction(store) as connection:
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


def test_a_writer_waits_for_another_writer(sqlite_store: TrackingStore, make: Make) -> None:
    """SQLite allows one writer at a time; readers do not wait."""
    other = sqlite3.connect(str(engine_of(sqlite_store).url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert sqlite_store.answers.counts().captured == 0
    other.execute("COMMIT")
    other.close()

    sqlite_store.exchanges.add([make()])

    assert sqlite_store.answers.counts().captured == 1


def test_postgres_and_postgresql_urls_are_equivalent() -> None:
    """Hosting providers and libpq use both names."""
    store = TrackingStore(f"postgres://user:{SECRET}@localhost/x")

    assert store.name == "postgresql://user:***@localhost/x"
    assert engine_of(store).dialect.driver == "psycopg"


@pytest.mark.parametrize("option", ["", "?prepare_threshold=1"])
def test_statements_are_never_prepared_on_the_postgresql_server(
    postgresql: Any, migrated_database: str, option: str
) -> None:
    """Behind a pooler, the next transaction may run on a connection without the statement, or with a different one."""
    url = postgresql.url(migrated_database)
    store = TrackingStore(url + option.replace("?", "&"))

    for _ in range(10):
        with transaction(store) as connection:
            connection.exec_driver_sql("SELECT %s::int", [(number,) for number in range(10)])
            prepared = connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one()

    assert prepared == 0
    store.close()


def test_a_lost_connection_is_logged_by_germane_and_not_by_sqlalchemy(
    proxy: Any, postgresql: Any, migrated_database: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver and the pool write nothing to the application's log: the error is raised, and reported once."""
    store = TrackingStore(postgresql.url(migrated_database, proxy.directory))

    def lose_the_connection() -> None:
        with transaction(store) as connection:
            proxy.disconnect()
            connection.exec_driver_sql("SELECT %s::int", [(number,) for number in range(1000)])

    with pytest.raises(DatabaseUnreachable):
        lose_the_connection()
    store.close()
    proxy.reconnect()
    assert not caplog.records


def test_driver_messages_of_the_application_are_still_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Only records of threads that are using germane's database are dropped."""
    engine_of(TrackingStore("postgresql://localhost/x")).dispose()

    logging.getLogger("psycopg").warning("the application's own")

    assert [record.getMessage() for record in caplog.records] == ["the application's own"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_uses_connections_of_its_own(tmp_path: Path) -> None:
    """The connections that a fork copies stay with the parent. A database in memory is copied itself, so it is kept."""
    with (
        closing(TrackingStore(f"sqlite:///{tmp_path}/germane.db")) as file,
        closing(TrackingStore("sqlite:///:memory:")) as memory,
    ):
        engines = [engine_of(file), engine_of(memory)]

        child = os.fork()
        if child == 0:
            try:
                are_shared = [engine_of(file) is engines[0], engine_of(memory) is engines[1]]
                os._exit(0 if are_shared == [False, True] else 1)
            finally:
                os._exit(2)

        assert os.waitpid(child, 0)[1] == 0
        assert [engine_of(file), engine_of(memory)] == engines
