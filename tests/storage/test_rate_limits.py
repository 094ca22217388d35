"""Rate limits shared by processes."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event
from tests.storage.conftest import NOON

from germane.storage import RateLimit, TrackingStore
from germane.storage.db import component
from germane.storage.quota.store_quota import ScheduleClock, schedule
from germane.testing import engine_of

TWO_A_SECOND = RateLimit("requests", 120)
ONE = [(1.0,)]


def test_request_slots_are_evenly_spaced(store: TrackingStore, other_store: TrackingStore) -> None:
    """The next slot is half a second after the previous one, regardless of the process that reserves it."""
    assert store.quota.reserve_slots([TWO_A_SECOND], ONE * 3) == pytest.approx([0.0, 0.5, 1.0], abs=1e-5)
    assert other_store.quota.reserve_slots([TWO_A_SECOND], ONE * 2) == pytest.approx([1.5, 2.0], abs=1e-5)


def test_idle_time_allows_one_burst_of_requests(store: TrackingStore, clock: Any) -> None:
    """After an hour without requests, no more than the burst may start immediately."""
    limit = RateLimit("requests", 120, burst=3)
    store.quota.reserve_slots([limit], ONE)
    clock.advance(hours=1)

    assert store.quota.reserve_slots([limit], ONE * 5) == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.0], abs=1e-5)


def test_a_request_waits_for_the_slowest_of_its_rate_limits(store: TrackingStore) -> None:
    """A slot is reserved under each limit, at the time at which all limits allow the request."""
    both = [TWO_A_SECOND, RateLimit("tokens", 60_000)]
    assert store.quota.reserve_slots(both, [(1, 2000), (1, 100), (1, 100)]) == pytest.approx([0.0, 2.0, 2.5], abs=1e-5)


def test_a_request_that_exceeds_the_whole_limit_is_still_scheduled(store: TrackingStore) -> None:
    """Later requests wait longer."""
    tokens = [RateLimit("tokens", 600)]
    assert store.quota.reserve_slots(tokens, [(1_200,), (1,)]) == pytest.approx([0.0, 120.0], abs=1e-5)


@pytest.mark.parametrize(("settled", "wait"), [(-500.0, 0.5), (1_000.0, 2.0)])
def test_actual_usage_replaces_the_reserved_tokens(store: TrackingStore, settled: float, wait: float) -> None:
    """If the reservation was too high, the excess is refunded; if it was too low, the difference is charged."""
    tokens = [RateLimit("tokens", 60_000)]
    store.quota.reserve_slots(tokens, [(1_000,)])

    assert store.quota.reserve_slots(tokens, [], settled=[settled]) == []
    assert store.quota.reserve_slots(tokens, [(1,)]) == pytest.approx([wait], abs=1e-5)


def test_requests_do_not_wait_for_a_clock_that_was_set_back(store: TrackingStore, clock: Any) -> None:
    """The schedule moves with the clock and keeps its reservations."""
    store.quota.reserve_slots([TWO_A_SECOND], ONE * 2)
    clock.advance(hours=-1)

    assert store.quota.reserve_slots([TWO_A_SECOND], ONE) == pytest.approx([1.0], abs=1e-5)


def test_processes_never_get_the_same_request_slot_if_host_clocks_differ(
    store: TrackingStore, other_store: TrackingStore, clock: Any
) -> None:
    """A process whose clock is behind continues the schedule of the others."""
    store.quota.reserve_slots([TWO_A_SECOND], ONE)
    clock.advance(seconds=-5)

    assert other_store.quota.reserve_slots([TWO_A_SECOND], ONE) == pytest.approx([0.5], abs=1e-5)


def test_rate_limits_use_the_clock_of_the_database_server(postgresql: Any) -> None:
    """Otherwise, hosts whose clocks differ by minutes would have separate limits."""
    name = postgresql.create()
    store = TrackingStore(postgresql.url(name))
    store.migrate()
    store.close()
    an_hour_ahead = "SELECT pg_catalog.clock_timestamp() + interval '1 hour'"
    postgresql.execute(
        f"CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $${an_hour_ahead}$$",
        f"ALTER DATABASE {name} SET search_path = public, pg_catalog",
        database=name,
    )

    assert store.quota.reserve_slots([TWO_A_SECOND], ONE * 2) == pytest.approx([0.0, 0.5], abs=1e-5)

    [use] = store.quota.load_rate_limit_usage()
    store.close()
    assert timedelta(minutes=59) < use.used_at - store.context.local_time() < timedelta(minutes=61)


@pytest.mark.parametrize(("interval", "queries"), [(3600.0, 1), (0.0, 5)])
def test_the_transactions_of_a_batch_query_the_servers_clock_once(
    postgresql: Any, monkeypatch: pytest.MonkeyPatch, interval: float, queries: int
) -> None:
    """Between two queries, the server's time advances with this host's monotonic clock."""
    monkeypatch.setattr(component, "CLOCK_INTERVAL", interval)
    statements: list[str] = []
    with closing(TrackingStore(postgresql.emptied())) as store:
        event.listen(engine_of(store), "before_cursor_execute", lambda *details: statements.append(details[2]))
        before = store.context.local_time()
        times = [store.context.read_clock() for _ in range(5)]
        after = store.context.local_time()

    assert sum("clock_timestamp" in statement for statement in statements) == queries
    assert [before, *sorted(set(times)), after] == [before, *times, after]
    assert before - timedelta(seconds=1) < times[0]
    assert times[-1] < after + timedelta(seconds=1)


def test_the_wait_of_the_latest_request_is_stored(store: TrackingStore, clock: Any) -> None:
    """The value includes the wait before the reservation. Requests without a slot and corrections do not change it."""
    assert store.quota.load_rate_limit_usage() == []
    store.quota.reserve_slots([TWO_A_SECOND], ONE)
    store.quota.reserve_slots([TWO_A_SECOND], ONE, waited=7.0)
    store.quota.reserve_slots([TWO_A_SECOND], [], settled=[1.0])

    (use,) = store.quota.load_rate_limit_usage()
    assert (use.name, use.used_at) == ("requests", clock.now)
    assert use.waited == pytest.approx(7.5, abs=1e-5)


@given(
    per_minute=st.floats(1, 1e6),
    burst=st.integers(1, 5),
    pauses=st.lists(st.floats(0, 3).map(lambda pause: round(pause, 3)), min_size=1, max_size=60),
)
def test_usage_never_exceeds_the_rate_limit_in_any_time_window(
    per_minute: float, burst: int, pauses: list[float]
) -> None:
    """In any window, the number of starts is at most rate times length plus the burst."""
    limit, now, arrivals, starts = RateLimit("requests", per_minute, burst), 0.0, [0.0], []
    for pause in pauses:
        now += pause
        found, arrivals = schedule([limit], arrivals, ONE * 2, now=now)
        starts += found

    assert all(later >= earlier for earlier, later in pairwise(starts))
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            allowed = (starts[last] - starts[first]) / limit.interval + burst
            assert last - first + 1 <= allowed * (1 + 1e-6) + 1e-6


RESERVE = """
import json, sys
from germane.storage import RateLimit, TrackingStore
store, limit = TrackingStore(sys.argv[1]), RateLimit("requests", 60_000)
print("ready", flush=True)
sys.stdin.readline()
waits = [wait for _ in range(25) for wait in store.quota.reserve_slots([limit], [(1.0,)] * 4)]
store.close()
print(len(waits))
"""


@pytest.mark.slow
def test_concurrent_processes_never_get_the_same_request_slot(migrated_url: str) -> None:
    """Processes that reserve concurrently share one schedule, even at their first reservation."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", RESERVE, migrated_url]
    workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    store = TrackingStore(migrated_url)
    before = store.context.local_time()
    outputs = [worker.communicate("go\n", timeout=60) for worker in workers]

    assert [json.loads(out) for out, _ in outputs] == [100] * 3, outputs
    (wait,) = store.quota.reserve_slots([RateLimit("requests", 60_000)], ONE)
    took = (store.context.local_time() - before) / timedelta(seconds=1)
    store.close()
    assert wait + took >= 0.3  # one slot per millisecond


HOLD = """
import sys
from germane.storage import RateLimit, TrackingStore
store, limit = TrackingStore(sys.argv[1]), RateLimit("requests", 120)
store.quota.reserve_slots([limit], [(1.0,)])
while True:
    store.quota.reserve_slots([limit], [], settled=[0.0])
    print("asked", flush=True)
"""


def test_a_killed_process_does_not_block_the_rate_limit_for_others(migrated_url: str) -> None:
    """The killed process's reservations count as used, and its locks are released."""
    with subprocess.Popen([sys.executable, "-c", HOLD, migrated_url], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert [holder.stdout.readline() for _ in range(20)] == ["asked\n"] * 20
        holder.kill()
    store = TrackingStore(migrated_url)
    waits = store.quota.reserve_slots([RateLimit("requests", 120)], ONE * 2)
    store.close()

    assert 0.0 <= waits[0] <= 0.5
    assert waits[1] - waits[0] == pytest.approx(0.5, abs=1e-5)


@given(
    offsets=st.lists(st.sampled_from([-7200, -3600, -61, -5, 0, 0.5, 59, 61, 3600, 86_400]), min_size=2, max_size=4),
    order=st.lists(st.integers(0, 3), min_size=20, max_size=60),
    jump=st.sampled_from([0, -3600, 3600]),
)
def test_processes_with_different_clocks_share_one_schedule(
    offsets: list[float], order: list[int], jump: float
) -> None:
    """Each clock grants at most one burst when it is first seen or jumps, and no process waits for another clock."""
    limit, clocks = RateLimit("requests", 60, burst=5), [ScheduleClock() for _ in offsets]
    latest, arrivals, admitted = NOON, [NOON.timestamp()], 0
    for step, who in enumerate(order):
        process, elapsed = who % len(offsets), step / 4
        jumped = jump if process == 0 and step > len(order) // 2 else 0.0
        local = NOON + timedelta(seconds=elapsed + offsets[process] + jumped)
        latest = clocks[process].read(local, latest)
        now = latest.timestamp()
        (start,), later = schedule([limit], arrivals, [(1.0,)], now=now)
        if start <= now + 1e-6:  # otherwise, the request is not made
            admitted, arrivals = admitted + 1, later

    bursts = 1 + len(set(offsets)) + (jump != 0)
    elapsed = len(order) / 4
    assert elapsed - 1 <= admitted <= elapsed + bursts * limit.burst


def test_a_process_whose_clock_is_ahead_does_not_raise_the_limit(
    store: TrackingStore, other_store: TrackingStore, clock: Any, migrated_url: str
) -> None:
    """Two processes whose clocks differ by an hour take turns on one schedule."""
    ahead = TrackingStore(migrated_url, clock=lambda: clock.now + timedelta(hours=1))
    stores, waits = (store, ahead, other_store), list[float]()
    for turn in range(30):
        waits += stores[turn % 3].quota.reserve_slots([TWO_A_SECOND], ONE)
    ahead.close()

    assert waits[1:] == pytest.approx([0.0, *(0.5 * number for number in range(1, 29))], abs=1e-4)
