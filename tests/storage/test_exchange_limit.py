"""The exchange limit of the writer: counts and log messages."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from germane.exchange import Exchange, sampling_key_for
from germane.storage import Coverage, ExchangeWriter, TrackingStore

Make = Callable[..., Exchange]
WriteTo = Callable[..., ExchangeWriter]
LIMIT = 600
LONG = 60.0


class Time:
    """A clock in seconds that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    """A clock for the exchange limit."""
    return Time()


@pytest.fixture
def writer(store: TrackingStore, time: Time) -> Iterator[ExchangeWriter]:
    """A writer with a limit, which is stopped afterwards."""
    opened = ExchangeWriter(store, limit=LIMIT, interval=0.01, scorers=("a", "b"), clock=time)
    yield opened
    opened.stop(LONG)


def nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000


def offer(writer: ExchangeWriter, make: Make, minutes: float = 0, **fields: Any) -> Exchange | None:
    """Act like the tracer: check the limit, then put the kept exchanges with their probability."""
    exchange = make(minutes, **fields)
    draw = fields.get("sampling_key", sampling_key_for(exchange.trace_id))
    started = nanoseconds(exchange.started_at)
    probability = writer.admit(exchange.service, exchange.route, started, draw)
    if probability is None:
        return None
    kept = make(minutes, **fields | {"sampling_key": draw, "capture_probability": probability})
    assert writer.put(kept)
    return kept


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return level and text of what germane logged."""
    ours = [record for record in caplog.records if record.name.startswith("germane")]
    return [(record.levelname, record.getMessage()) for record in ours]


def test_all_exchanges_are_kept_without_an_exchange_limit(
    sqlite_store: TrackingStore, make: Make, write_to: WriteTo
) -> None:
    """Each exchange has probability 1."""
    writer = write_to(sqlite_store)
    assert {writer.admit("shop", "ask", 0, 1.0) for _ in range(1_000)} == {1.0}


def test_exchanges_above_the_limit_are_counted_by_minute_and_route(
    store: TrackingStore, writer: ExchangeWriter, make: Make
) -> None:
    """Dropped exchanges count as skipped for each scorer. Kept exchanges are stored with their probability, which is at
    least their sampling key."""
    offered = [(minute, route) for minute in (0, 1) for route in ("ask", "chat") for _ in range(200)]
    kept = [one for minute, route in offered if (one := offer(writer, make, minute, route=route))]
    assert writer.flush(LONG)

    stored = store.answers.list_exchanges(limit=1_000)
    assert {one.id for one in stored} == {one.id for one in kept}
    assert writer.not_admitted == 800 - len(kept) > 600
    assert writer.dropped == 0
    assert all(one.sampling_key <= one.capture_probability for one in stored)
    for route in ("ask", "chat"):
        gone = 400 - sum(one.route == route for one in kept)
        expected = {"seen": gone, "skipped": {"exchange_limit": gone}}
        found = [one for one in store.trends.coverage() if one.route == route]
        assert found == [Coverage(service="shop", route=route, scorer=name, **expected) for name in ("a", "b")]
    second = [one for one in store.trends.coverage(since=make(1).started_at) if one.scorer == "a"]
    assert sum(one.seen for one in second) == 400 - sum(one.started_at == make(1).started_at for one in kept)


def test_counts_of_dropped_exchanges_are_written_without_a_flush(
    store: TrackingStore, writer: ExchangeWriter, make: Make
) -> None:
    """Counts are written even if no exchange is kept afterwards."""
    for _ in range(LIMIT):
        offer(writer, make)
    assert writer.flush(LONG)
    before = writer.not_admitted
    assert offer(writer, make, sampling_key=1.0) is None

    waiting = threading.Event()
    for _ in range(4_000):
        if sum(one.seen for one in store.trends.coverage() if one.scorer == "a") > before:
            break
        waiting.wait(0.005)
    assert sum(one.seen for one in store.trends.coverage() if one.scorer == "a") == writer.not_admitted == before + 1


def test_the_start_and_end_of_thinning_are_logged(
    writer: ExchangeWriter, make: Make, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    """The start and the end are logged once; if traffic fluctuates around the limit, only one start is logged."""
    caplog.set_level(logging.INFO)
    for _ in range(3):
        for _ in range(400):
            offer(writer, make)
        time.now += 1
    gone = writer.not_admitted
    time.now += 60
    assert offer(writer, make) is not None

    assert messages(caplog) == [
        ("WARNING", "more than 600 exchanges per minute: only a sample is being kept; the others are only counted"),
        ("INFO", f"traffic is below 600 exchanges per minute again; all are being kept ({gone} dropped so far)"),
    ]


def test_threads_share_one_exchange_limit(sqlite_store: TrackingStore, make: Make, write_to: WriteTo) -> None:
    """Each exchange is counted exactly once, and together the threads keep as many as one thread would."""
    writer, kept = write_to(sqlite_store, limit=LIMIT, clock=Time()), []

    def work(seed: int) -> None:
        for number in range(1_000):
            probability = writer.admit("shop", "ask", 0, sampling_key_for(f"{seed} {number}"))
            if probability is not None:
                kept.append(probability)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(kept) + writer.not_admitted == 8_000
    assert 60 < len(kept) < 150
    assert writer.stop(LONG)


FORKED = """
import os, sys
from germane.storage import TrackingStore, ExchangeWriter
writer = ExchangeWriter(TrackingStore("sqlite://"), limit=1, interval=60, clock=lambda: 0.0)
while writer.admit("shop", "ask", 0, 1.0):
    pass
if writer.not_admitted != 1:
    sys.exit(1)
child = os.fork()
if child == 0:
    os._exit(0 if (writer.admit("shop", "ask", 0, 1.0), writer.not_admitted) == (1.0, 0) else 2)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_has_its_own_exchange_limit() -> None:
    """The parent counts the exchanges that it has dropped."""
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=LONG, check=False).returncode == 0
