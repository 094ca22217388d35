"""The writer with a full disk, with rows of 100 kB, and with ten times as many exchanges as its queue holds."""

from __future__ import annotations

import gc
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from germane.exchange import Context, Exchange
from germane.storage import Coverage, ExchangeWriter, TrackingStore
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
WriteTo = Callable[..., ExchangeWriter]
LONG = 60.0


def until(condition: Callable[[], bool]) -> None:
    """Wait for a change made by another thread."""
    waiting = threading.Event()
    for _ in range(12_000):
        if condition():
            return
        waiting.wait(0.005)
    raise AssertionError("the condition never became true")


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return level and text of what germane logged."""
    ours = [record for record in caplog.records if record.name.startswith("germane")]
    return [(record.levelname, record.getMessage()) for record in ours]


class Quota:
    """A limit on the size of SQLite's file; beyond it, SQLite reports a full disk."""

    def __init__(self, store: TrackingStore) -> None:
        self._database = store.context.database
        self.pages = 1_000_000
        event.listen(self._database.engine, "checkout", self._tell)

    def _tell(self, connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {self.pages}")


def test_exchanges_queued_during_a_full_disk_error_are_written_later(
    sqlite_store: TrackingStore, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Committed rows are kept, and the queue is written once there is space. Each event logs one line."""
    caplog.set_level(logging.INFO)
    quota = Quota(sqlite_store)
    writer = write_to(sqlite_store, capacity=1_000, batch=20, interval=0.0, backoff=(0.01, 0.02), scorers=("a",))
    for _ in range(50):
        assert writer.put(make(answer="long " * 500))
    assert writer.flush(LONG)
    quota.pages = 1  # SQLite rounds this up to the current size

    for _ in range(200):
        assert writer.put(make(answer="long " * 500))
    until(lambda: writer._failures > 3)
    assert "free some disk space" in str(writer.problem)
    assert 50 <= sqlite_store.answers.counts().captured < 250
    quota.pages = 1_000_000

    assert writer.flush(LONG)
    assert writer.stop(LONG)
    assert (sqlite_store.answers.counts().captured, writer.dropped, writer.problem) == (250, 0, None)
    [(_, full), (_, again)] = messages(caplog)
    assert "disk is full" in full
    assert "is accepting exchanges again" in again


FULL = """
import subprocess, sys
from datetime import UTC, datetime
from pathlib import Path
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", sys.argv[1]], check=True)
from germane.exchange import Exchange, new_exchange_id
from germane.storage import TrackingStore, ExchangeWriter
disk = Path(sys.argv[1])
store = TrackingStore(f"sqlite:///{disk}/germane.db")
store.migrate()
writer = ExchangeWriter(store, interval=0.0, batch=10, backoff=(0.01, 0.02))
def put(count):
    for _ in range(count):
        assert writer.put(Exchange(id=new_exchange_id(), trace_id="0" * 32, span_id="0" * 16, service="shop",
                                   route="ask", question="q", answer="a" * 10_000, started_at=datetime.now(UTC)))
put(20)
assert writer.flush(60)
filler = (disk / "filler").open("wb", buffering=0)
try:
    while True:
        filler.write(bytes(65536))
except OSError:
    pass
put(100)
while writer.problem is None:
    assert not writer.flush(0.1)
assert "free some disk space" in writer.problem, writer.problem
assert 20 <= store.answers.counts().captured < 120
filler.close()
(disk / "filler").unlink()
assert writer.flush(60)
assert writer.stop(60)
assert (store.answers.counts().captured, writer.dropped, writer.problem) == (120, 0, None)
store.close()
"""


def can_mount() -> bool:
    """Return whether this user may mount a disk."""
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="no small disk can be mounted here")
def test_exchanges_queued_on_a_physically_full_disk_are_written_later(tmp_path: Path) -> None:
    """No exchange is lost on a 4 MB disk that another file fills."""
    space = ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*space, sys.executable, "-W", "error", "-c", FULL, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count(" failed: ") == 1


def test_hundreds_of_exchanges_of_100_kilobytes_are_stored(store: TrackingStore, make: Make, write_to: WriteTo) -> None:
    """No exchange is truncated, dropped or rejected."""
    writer = write_to(store, capacity=1_000, interval=0.01)
    contexts = tuple(Context(f"{place}: " + "Straße " * 1_500) for place in range(5))
    exchanges = [make(answer=f"{number}: " + "word " * 10_000, contexts=contexts) for number in range(300)]
    assert all(writer.put(exchange) for exchange in exchanges)

    assert writer.flush(LONG)

    assert (store.answers.counts().captured, writer.dropped, writer.problem) == (300, 0, None)
    for exchange in (exchanges[0], exchanges[-1]):
        assert store.answers.get_exchanges([exchange.id]) == {exchange.id: exchange}
    assert writer.stop(LONG)


def alive() -> int:
    """Return the number of exchanges in memory."""
    gc.collect()
    return sum(type(one) is Exchange for one in gc.get_objects())


@contextmanager
def blocked(store: TrackingStore) -> Any:
    """Hold the lock that the writer needs, as another process's long transaction would."""
    with transaction(store) as connection:
        if engine_of(store).dialect.name == "postgresql":
            connection.exec_driver_sql("LOCK TABLE exchange IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.slow
def test_memory_is_limited_and_drops_are_counted_at_ten_times_the_queue_size(
    store: TrackingStore, other_store: TrackingStore, make: Make, caplog: pytest.LogCaptureFixture, write_to: WriteTo
) -> None:
    """Dropped exchanges are not kept in memory; the tally counts every one."""
    caplog.set_level(logging.INFO)
    writer = write_to(store, capacity=500, batch=100, interval=0.0, scorers=("a", "b"), backoff=(0.01, 0.02))
    before = alive()
    with blocked(other_store):
        threads = [threading.Thread(target=lambda: [writer.put(make()) for _ in range(1_250)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 500 <= alive() - before <= 600 + 4
        assert 500 <= writer.depth <= 600 + 4  # each thread may exceed the limit by one
        assert writer.dropped == 5_000 - writer.depth

    assert writer.flush(LONG)
    assert store.answers.counts().captured == 5_000 - writer.dropped
    counts = {"seen": writer.dropped, "skipped": {"queue_full": writer.dropped}}
    assert store.trends.coverage() == [
        Coverage(service="shop", route="ask", scorer=name, **counts) for name in ("a", "b")
    ]
    assert [level for level, message in messages(caplog) if "is full" in message] == ["WARNING"]
    assert writer.stop(LONG)
