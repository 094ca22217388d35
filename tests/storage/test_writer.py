"""The writer keeps exchanges when it can, counts dropped ones, and never blocks its callers."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.storage import Coverage, ExchangeWriter, TrackingStore
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
WriteTo = Callable[..., ExchangeWriter]
LONG = 60.0


@pytest.fixture
def writer(store: TrackingStore) -> Iterator[ExchangeWriter]:
    """A writer that is stopped afterwards."""
    opened = ExchangeWriter(store, capacity=1000, interval=0.01, scorers=("a",), backoff=(0.01, 0.05))
    yield opened
    opened.stop(LONG)


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[TrackingStore]:
    """A store whose directory does not exist yet."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'later' / 'germane.db'}")
    yield store
    store.close()


def appear(store: TrackingStore, tmp_path: Path) -> None:
    """Create the database of ``nowhere``."""
    (tmp_path / "later").mkdir()
    store.migrate()


def until(condition: Callable[[], bool]) -> None:
    """Wait for a change made by another thread."""
    waiting = threading.Event()
    for _ in range(12_000):
        if condition():
            return
        waiting.wait(0.005)
    raise AssertionError("the condition never became true")


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """Return the messages logged at a level."""
    ours = [record for record in caplog.records if record.name.startswith("germane")]
    return [record.getMessage() for record in ours if record.levelno == level]


def test_queued_exchanges_are_written_without_a_flush(store: TrackingStore, writer: ExchangeWriter, make: Make) -> None:
    """The background thread writes the exchanges."""
    assert writer.put(make())

    until(lambda: store.answers.counts().captured == 1)


def test_flush_waits_until_queued_exchanges_are_written(
    store: TrackingStore, writer: ExchangeWriter, make: Make
) -> None:
    """flush() returns True once the exchanges are written."""
    for _ in range(600):
        writer.put(make())

    assert writer.flush(LONG)

    assert (store.answers.counts().captured, writer.depth, writer.dropped) == (600, 0, 0)


def test_flush_of_an_empty_queue_returns_immediately(writer: ExchangeWriter) -> None:
    """An empty flush does not start a thread."""
    assert writer.flush(0.0)
    assert writer._thread is None


def test_concurrent_threads_can_queue_exchanges(store: TrackingStore, writer: ExchangeWriter, make: Make) -> None:
    """Request threads need no lock."""
    threads = [threading.Thread(target=lambda: [writer.put(make()) for _ in range(100)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert writer.flush(LONG)
    assert store.answers.counts().captured == 800


def test_stopping_the_writer_writes_queued_exchanges(store: TrackingStore, make: Make, write_to: WriteTo) -> None:
    """Afterwards, the thread has ended, and new exchanges are dropped."""
    writer = write_to(store, capacity=1000, interval=60)
    for _ in range(10):
        writer.put(make())
    thread = writer._thread
    assert thread is not None

    assert writer.stop(LONG)
    assert writer.stop(LONG)

    assert (store.answers.counts().captured, writer.put(make()), writer.dropped) == (10, False, 1)
    assert not thread.is_alive()


def test_stopping_the_writer_respects_its_timeout(
    nowhere: TrackingStore, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """If the database is unreachable, stop() logs the number of lost exchanges."""
    writer = write_to(nowhere, capacity=1000, interval=0.01)
    writer.put(make())

    assert not writer.stop(0.2)

    assert any("lost 1 exchange that could not be written" in message for message in messages(caplog, logging.WARNING))


def test_stopping_the_writer_reports_drops_that_could_not_be_counted(
    nowhere: TrackingStore, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Exchanges that are neither stored nor counted are missing from all coverage figures."""
    writer = write_to(nowhere, capacity=1, limit=1, interval=0.01)
    while writer.admit("shop", "ask", 0, 1.0):
        pass
    while writer.put(make()):
        pass

    assert not writer.stop(0.2)

    warning = "2 dropped exchanges are missing from the counts of"
    assert any(warning in line for line in messages(caplog, logging.WARNING))


class ExchangesWithoutCounts(ExchangeStore):
    """Writes exchanges, but fails to write the first three counts."""

    refusals = 3

    def count_dropped(self, *arguments: Any, **named: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            raise DatabaseUnreachable("the tally is unreachable")
        super().count_dropped(*arguments, **named)


def test_a_failed_write_of_counts_does_not_repeat_the_batch(
    store: TrackingStore, migrated_url: str, make: Make, write_to: WriteTo
) -> None:
    """Only the counts are retried; stored exchanges are counted once."""
    counted: Counter[str] = Counter()
    uncounting = TrackingStore(
        migrated_url, on_commit=lambda ended: counted.update({key[2]: by for key, by in ended.items()})
    )
    uncounting.exchanges = exchanges = ExchangesWithoutCounts(uncounting.context)
    writer = write_to(uncounting, interval=0.01, limit=1, scorers=("a",), backoff=(0.01, 0.05))
    while writer.admit("shop", "ask", 0, 1.0):
        pass
    for _ in range(5):
        writer.put(make())

    assert writer.flush(LONG)
    assert writer.stop(LONG)
    assert writer.problem is None
    uncounting.close()
    assert (store.answers.counts().captured, exchanges.refusals) == (5, 0)
    assert counted == {"stored": 5, "dropped": 1, "skipped": 1}


def test_queued_exchanges_are_kept_while_the_database_is_unreachable(
    nowhere: TrackingStore, make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """There is one warning at the start, one info line at the end, and nothing is lost."""
    caplog.set_level(logging.INFO)
    writer = write_to(nowhere, capacity=1000, batch=10, interval=0.01, backoff=(0.01, 0.02))
    for _ in range(35):
        writer.put(make())
    until(lambda: writer._failures > 3)
    assert writer.problem is not None
    assert "unable to open" in writer.problem
    assert (writer.flush(0.05), writer.depth) == (False, 35)

    appear(nowhere, tmp_path)

    assert writer.flush(LONG)
    assert writer.stop(LONG)
    assert (nowhere.answers.counts().captured, writer.dropped) == (35, 0)
    [warning], [info] = messages(caplog, logging.WARNING), messages(caplog, logging.INFO)
    assert "unable to open" in warning
    assert "is accepting exchanges again" in info


def test_a_full_queue_drops_and_counts_new_exchanges(
    nowhere: TrackingStore, make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """The drop is logged once. The tally has the counts by minute once the database is reachable."""
    writer = write_to(nowhere, capacity=20, batch=5, interval=0.0, scorers=lambda: ["a", "b"], backoff=(0.01, 0.02))
    first = make()
    writer.put(first)
    until(lambda: writer.problem is not None)
    kept = [first, *(one for minute in range(100) if writer.put(one := make(minute % 2)))]
    assert 20 <= len(kept) <= 25
    assert writer.dropped == 101 - len(kept)

    appear(nowhere, tmp_path)
    assert writer.flush(LONG)

    assert {one.id for one in nowhere.answers.list_exchanges()} == {one.id for one in kept}
    dropped = {"queue_full": writer.dropped}
    assert nowhere.trends.coverage() == [
        Coverage(service="shop", route="ask", scorer=name, seen=writer.dropped, skipped=dropped) for name in ("a", "b")
    ]
    full = [message for message in messages(caplog, logging.WARNING) if "is full" in message]
    assert len(full) == 1
    assert writer.put(make())
    assert writer.stop(LONG)


def test_the_writer_waits_for_a_migration(database_url: str, make: Make, write_to: WriteTo) -> None:
    """The application may start before 'germane db upgrade'."""
    store = TrackingStore(database_url)
    writer = write_to(store, capacity=1000, interval=0.01, backoff=(0.01, 0.02))
    writer.put(make())
    until(lambda: writer.problem is not None)
    assert "germane db upgrade" in str(writer.problem)

    store.migrate()

    assert writer.flush(LONG)
    assert store.answers.counts().captured == 1
    assert writer.stop(LONG)
    store.close()


def test_no_exchange_is_lost_after_a_lost_postgresql_connection(
    proxy: Any, postgresql: Any, migrated_database: str, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Broken connections are replaced, and a batch that may have been committed is not duplicated."""
    caplog.set_level(logging.INFO)
    store = TrackingStore(postgresql.url(migrated_database, proxy.directory))
    writer = write_to(store, capacity=10_000, batch=20, interval=0.0, backoff=(0.01, 0.05))
    for round_ in range(3):
        for _ in range(200):
            writer.put(make())
        proxy.disconnect()
        writer.put(make())
        until(lambda: writer.problem is not None)
        proxy.reconnect()
        assert writer.flush(LONG), round_
        until(lambda: writer.problem is None)  # it may be logged shortly after the last row is written

    assert writer.stop(LONG)
    assert (store.answers.counts().captured, writer.dropped) == (603, 0)
    assert len(messages(caplog, logging.WARNING)) == len(messages(caplog, logging.INFO)) == 3
    store.close()


def test_a_rejected_row_does_not_block_other_rows(
    store: TrackingStore, writer: ExchangeWriter, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Only that exchange is lost. The log contains its id and not its content."""
    poison = make(question="private", status=None)
    unsendable = make(question=5)
    for exchange in (make(), poison, make(), unsendable, make()):
        writer.put(exchange)

    assert writer.flush(LONG)

    assert (store.answers.counts().captured, writer.dropped, writer.problem) == (3, 2, None)
    logged = "".join(messages(caplog, logging.WARNING))
    assert poison.id in logged
    assert unsendable.id in logged
    assert "private" not in logged


def test_a_rejected_row_is_counted_once_even_if_the_connection_is_lost(
    proxy: Any, postgresql: Any, migrated_database: str, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Each exchange is either written or counted and logged, exactly once."""
    store = TrackingStore(postgresql.url(migrated_database, proxy.directory))
    writer = write_to(store, capacity=1000, batch=300, interval=60, backoff=(0.01, 0.02))  # all in one batch
    batch = [make(status=None) if number % 2 else make() for number in range(300)]
    for exchange in batch:
        writer.put(exchange)
    until(lambda: store.answers.counts().captured > 10)
    proxy.disconnect()
    until(lambda: writer.problem is not None or writer.depth == 0)  # the event may have occurred earlier
    proxy.reconnect()

    assert writer.flush(LONG)

    assert (store.answers.counts().captured, writer.dropped, writer.depth) == (150, 150, 0)
    assert (
        len([message for message in messages(caplog, logging.WARNING) if "rejected the content of 150" in message]) == 1
    )
    assert writer.stop(LONG)
    store.close()


REJECT_ROWS = {
    "sqlite": (
        "CREATE TRIGGER reject BEFORE INSERT ON {0} BEGIN SELECT RAISE(ABORT, 'not now'); END",
        "DROP TRIGGER reject",
    ),
    "postgresql": (
        "ALTER TABLE {0} ADD CONSTRAINT reject CHECK (false) NOT VALID",
        "ALTER TABLE {0} DROP CONSTRAINT reject",
    ),
}
"""Statements with which a database starts and stops rejecting all rows of a table as if their content were invalid."""


@pytest.mark.parametrize("items", ["good", "good and bad", "bad"])
def test_rows_wait_if_the_database_rejects_all_of_them(
    store: TrackingStore, writer: ExchangeWriter, make: Make, caplog: pytest.LogCaptureFixture, items: str
) -> None:
    """An error belongs to a row only if that row fails alone while another one is accepted."""
    rejects, accepts = REJECT_ROWS[engine_of(store).dialect.name]
    good = [make() for _ in range(3)] if "good" in items else []
    bad = [make(status=None)] if "bad" in items else []
    with transaction(store) as connection:
        connection.exec_driver_sql(rejects.format("exchange"))
    for exchange in [*bad, *good]:
        writer.put(exchange)
    until(lambda: writer.problem is not None)

    assert not writer.flush(0.2)
    assert (writer.dropped, writer.depth) == (0, len(good + bad))
    assert not [message for message in messages(caplog, logging.WARNING) if "lost" in message]

    with transaction(store) as connection:
        connection.exec_driver_sql(accepts.format("exchange"))

    assert writer.flush(LONG)
    assert (store.answers.counts().captured, writer.dropped) == (len(good), len(bad))
    assert not any("manual" in exchange.service for exchange in store.answers.list_exchanges())


def test_a_row_that_is_rejected_alone_is_dropped_at_once(
    store: TrackingStore, writer: ExchangeWriter, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """The database accepts another row, so the row's content is the reason."""
    writer.put(make(status=None))

    assert writer.flush(LONG)
    assert (writer.dropped, writer.problem, store.answers.counts().captured) == (1, None, 0)
    assert "rejected the content of 1 exchange; lost: " in "".join(messages(caplog, logging.WARNING))


def test_an_unexpected_error_does_not_end_the_writer_thread(
    make: Make, sqlite_store: TrackingStore, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Exchanges are written once reading the list of scorers no longer fails."""
    names: list[str] = []
    writer = write_to(sqlite_store, capacity=1, interval=60, scorers=lambda: [names[0]], backoff=(0.01, 0.02))
    until(lambda: not writer.put(make()))  # the thread may take the first before the second arrives
    writer.flush(0.05)
    until(lambda: writer.problem is not None)
    names.append("a")

    assert writer.flush(LONG)

    assert [(one.seen, one.scorer) for one in sqlite_store.trends.coverage()] == [(1, "a")]
    assert writer.stop(LONG)


def test_an_unused_writer_is_garbage_collected(sqlite_store: TrackingStore) -> None:
    """Neither the fork hook nor the exit handler keeps it alive."""
    forgotten = weakref.ref(ExchangeWriter(sqlite_store))
    gc.collect()

    assert forgotten() is None


COMMON = """
import os, sys
from datetime import UTC, datetime
from germane.exchange import Exchange, new_exchange_id
from germane.storage import TrackingStore, ExchangeWriter
def make(route):
    return Exchange(id=new_exchange_id(), trace_id="0" * 32, span_id="0" * 16, service="shop", route=route,
                    question="q", answer="a", started_at=datetime.now(UTC))
store = TrackingStore(sys.argv[1])
writer = ExchangeWriter(store, interval=float(sys.argv[2]))
"""
FORK = """
writer.put(make("before"))
writer.flush(60)
for _ in range(50):
    writer.put(make("parent"))
child = os.fork()
if child == 0:
    for _ in range(50):
        writer.put(make("child"))
    os._exit(0 if writer.flush(60) and writer.depth == 0 else 1)
for _ in range(50):
    writer.put(make("parent"))
_, status = os.waitpid(child, 0)
stopped = writer.stop(60)
store.close()
sys.exit(os.waitstatus_to_exitcode(status) + (0 if stopped else 2))
"""
AMID = """
import threading
from germane.testing import transaction
entered = threading.Event()
def work():
    with transaction(store) as connection:
        connection.exec_driver_sql("DELETE FROM lease")
        entered.set()
        threading.Event().wait(0.3)
working = threading.Thread(target=work)
working.start()
entered.wait()
child = os.fork()
if child == 0:
    writer.put(make("child"))
    os._exit(0 if writer.flush(60) else 1)
status = os.waitpid(child, 0)[1]
working.join()
store.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
EXIT = """
for _ in range(50):
    writer.put(make("late"))
"""


def run(script: str, url: str, interval: float) -> None:
    """Run a script that uses a writer until it exits."""
    command = [sys.executable, "-W", "error", "-c", COMMON + script, url, str(interval)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("interval", [0.0, 30.0])
def test_parent_and_forked_child_write_their_own_queues(
    store: TrackingStore, migrated_url: str, interval: float
) -> None:
    """Nothing is written twice or lost, whether the thread was writing or waiting."""
    run(FORK, migrated_url, interval)

    routes = [one.route for one in store.answers.list_exchanges(limit=1000)]
    assert {name: routes.count(name) for name in ("before", "parent", "child")} == {
        "before": 1,
        "parent": 100,
        "child": 50,
    }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_during_a_transaction_leaves_no_lock_in_the_child(store: TrackingStore, migrated_url: str) -> None:
    """A child must not inherit SQLite's record of its locks."""
    run(AMID, migrated_url, 0.0)

    assert [one.route for one in store.answers.list_exchanges()] == ["child"]


@pytest.mark.slow
def test_queued_exchanges_are_written_at_interpreter_exit(store: TrackingStore, migrated_url: str) -> None:
    """At interpreter exit, the queue is written even if the writer has not been stopped."""
    run(EXIT, migrated_url, 30.0)

    assert store.answers.counts().captured == 50
