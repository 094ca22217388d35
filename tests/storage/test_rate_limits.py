"""How fast requests may start, for all processes together."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.storage import Limit, Store
from germane.storage.quota.rate_limits import schedule

TWO_A_SECOND = Limit("requests", 120)
ONE = [(1.0,)]


def test_polled_throughout_five_seconds_it_admits_eleven(store: Store, clock: Any) -> None:
    """Two a second without a burst: one at once, then one each half second, however often it is asked."""
    admitted = 0
    for _ in range(501):
        admitted += len(store.reserve([TWO_A_SECOND], ONE, within=0.0))
        clock.advance(milliseconds=10)

    assert admitted == 11


def test_places_follow_one_another(store: Store, other_store: Store) -> None:
    """Whoever asks, the next place is half a second after the last."""
    assert store.reserve([TWO_A_SECOND], ONE * 3) == pytest.approx([0.0, 0.5, 1.0], abs=1e-5)
    assert other_store.reserve([TWO_A_SECOND], ONE * 2) == pytest.approx([1.5, 2.0], abs=1e-5)


def test_a_rest_is_not_saved_up(store: Store, clock: Any) -> None:
    """After an hour without a request as many go at once as the burst says."""
    limit = Limit("requests", 120, burst=3)
    store.reserve([limit], ONE)
    clock.advance(hours=1)

    assert store.reserve([limit], ONE * 5) == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.0], abs=1e-5)


def test_who_would_wait_too_long_takes_no_place(store: Store) -> None:
    """And those after it neither: nobody is overtaken."""
    assert len(store.reserve([TWO_A_SECOND], ONE * 9, within=1.1)) == 3
    assert store.reserve([TWO_A_SECOND], ONE) == pytest.approx([1.5], abs=1e-5)


def test_the_scarcer_of_two_limits_decides(store: Store) -> None:
    """A request waits for both, and takes its place in both at that time."""
    both = [TWO_A_SECOND, Limit("tokens", 60_000)]
    assert store.reserve(both, [(1, 2000), (1, 100), (1, 100)]) == pytest.approx([0.0, 2.0, 2.5], abs=1e-5)


def test_a_request_that_costs_more_than_a_minute_goes_all_the_same(store: Store) -> None:
    """Those after it wait until it is paid for."""
    tokens = [Limit("tokens", 600)]
    assert store.reserve(tokens, [(1_200,), (1,)]) == pytest.approx([0.0, 120.0], abs=1e-5)


@pytest.mark.parametrize(("settled", "wait"), [(-500.0, 0.5), (1_000.0, 2.0)])
def test_what_was_used_is_settled(store: Store, settled: float, wait: float) -> None:
    """A reservation that was too high is given back, one that was too low is paid for."""
    tokens = [Limit("tokens", 60_000)]
    store.reserve(tokens, [(1_000,)])

    assert store.reserve(tokens, [], settled=[settled]) == []
    assert store.reserve(tokens, [(1,)]) == pytest.approx([wait], abs=1e-5)


def test_a_clock_that_is_set_back_stops_nobody(store: Store, clock: Any) -> None:
    """The schedule goes with it, once, and keeps what was reserved."""
    store.reserve([TWO_A_SECOND], ONE * 2)
    clock.advance(hours=-1)

    assert store.reserve([TWO_A_SECOND], ONE, within=0.0) == []
    assert store.reserve([TWO_A_SECOND], ONE) == pytest.approx([1.0], abs=1e-5)


def test_clocks_of_hosts_that_differ_give_no_permission_twice(store: Store, other_store: Store, clock: Any) -> None:
    """A host whose clock is seconds behind waits the longer."""
    store.reserve([TWO_A_SECOND], ONE)
    clock.advance(seconds=-5)

    assert other_store.reserve([TWO_A_SECOND], ONE) == pytest.approx([5.5], abs=1e-5)


def test_the_time_is_that_of_the_servers_clock(postgresql: Any) -> None:
    """Hosts need not agree on it: two whose clocks are minutes apart would keep two limits."""
    name = postgresql.create()
    store = Store(postgresql.url(name))
    store.migrate()
    store.close()
    an_hour_ahead = "SELECT pg_catalog.clock_timestamp() + interval '1 hour'"
    postgresql.execute(
        f"CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $${an_hour_ahead}$$",
        f"ALTER DATABASE {name} SET search_path = public, pg_catalog",
        database=name,
    )

    assert store.reserve([TWO_A_SECOND], ONE * 2) == pytest.approx([0.0, 0.5], abs=1e-5)

    [use] = store.limit_uses()
    store.close()
    assert timedelta(minutes=59) < use.used_at - store._clock() < timedelta(minutes=61)


def test_it_is_known_how_long_the_last_one_waited(store: Store, clock: Any) -> None:
    """Its wait before it asked included; asking in vain and settling leave it as it is."""
    assert store.limit_uses() == []
    store.reserve([TWO_A_SECOND], ONE)
    store.reserve([TWO_A_SECOND], ONE, waited=7.0)
    store.reserve([TWO_A_SECOND], [], settled=[1.0])

    (use,) = store.limit_uses()
    assert (use.name, use.used_at) == ("requests", clock.now)
    assert use.waited == pytest.approx(7.5, abs=1e-5)


@given(
    per_minute=st.floats(1, 1e6),
    burst=st.integers(1, 5),
    pauses=st.lists(st.floats(0, 3).map(lambda pause: round(pause, 3)), min_size=1, max_size=60),
)
def test_no_window_holds_more_than_the_limit(per_minute: float, burst: int, pauses: list[float]) -> None:
    """In any stretch of time start at most as many as rate times time, and the burst."""
    limit, now, arrivals, starts = Limit("requests", per_minute, burst), 0.0, [0.0], []
    for pause in pauses:
        now += pause
        found, arrivals = schedule([limit], arrivals, ONE * 2, now=now, within=float("inf"))
        starts += found

    assert all(later >= earlier for earlier, later in pairwise(starts))
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            allowed = (starts[last] - starts[first]) / limit.interval + burst
            assert last - first + 1 <= allowed * (1 + 1e-6) + 1e-6


RESERVE = """
import json, sys
from germane.storage import Limit, Store
store, limit = Store(sys.argv[1]), Limit("requests", 60_000)
print("ready", flush=True)
sys.stdin.readline()
waits = [wait for _ in range(25) for wait in store.reserve([limit], [(1.0,)] * 4)]
store.close()
print(len(waits))
"""


def test_no_place_is_given_twice(migrated_url: str) -> None:
    """Processes that reserve at once, also the very first time, move one schedule."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", RESERVE, migrated_url]
    workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    store = Store(migrated_url)
    before = store._clock()
    outputs = [worker.communicate("go\n", timeout=60) for worker in workers]

    assert [json.loads(out) for out, _ in outputs] == [100] * 3, outputs
    (wait,) = store.reserve([Limit("requests", 60_000)], ONE)
    took = (store._clock() - before) / timedelta(seconds=1)
    store.close()
    assert wait + took >= 0.3  # a place a millisecond


HOLD = """
import sys
from germane.storage import Limit, Store
store, limit = Store(sys.argv[1]), Limit("requests", 120)
while True:
    store.reserve([limit], [(1.0,)], within=0.0)
    print("asked", flush=True)
"""


def test_a_process_that_is_killed_blocks_nobody_and_frees_nothing(migrated_url: str) -> None:
    """What it held counts as used, no more than that, and whatever it was doing in the database is let go of."""
    with subprocess.Popen([sys.executable, "-c", HOLD, migrated_url], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert [holder.stdout.readline() for _ in range(20)] == ["asked\n"] * 20
        holder.kill()
    store = Store(migrated_url)
    waits = store.reserve([Limit("requests", 120)], ONE * 2)
    store.close()

    assert 0.0 <= waits[0] <= 0.5
    assert waits[1] - waits[0] == pytest.approx(0.5, abs=1e-5)
