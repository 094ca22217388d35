"""Turns for judge requests, under limits that all processes on one database share."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from germane.errors import DatabaseUnreachable, ScoringError
from germane.monitor.loop.backoff import Backoff
from germane.monitor.quota.limiter import SharedPace, longest_wait, own_pace, places_for, shared_pace
from germane.scorers import Place
from germane.storage import Limit, Store
from germane.testing import FakeJudge

FAST = Limit("requests", 600_000)
TWENTY_A_SECOND = 1_200.0
SECONDS = 3.0
WORKER = """
import asyncio, json, sys, time
from germane.monitor.quota.limiter import shared_pace
from germane.settings import load
from germane.storage import Store

async def main(url, per_minute, seconds):
    store, starts = Store(url), []
    pace = shared_pace(load(database=url, requests_per_minute=per_minute), store)
    async def ask():
        while True:
            await pace.admit(1.0)
            starts.append(time.time())
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(ask() for _ in range(20)))
    except TimeoutError:
        pass
    await pace.aclose()
    store.close()
    print(json.dumps(starts))

asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
"""


class Counting(Store):
    """Counts the transactions that give places."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.reservations = 0
        self.away = False

    def reserve(self, *arguments: Any, **named: Any) -> list[float]:
        self.reservations += 1
        if self.away:
            raise DatabaseUnreachable("it is away")
        return super().reserve(*arguments, **named)


@pytest.fixture
def counting(url: str) -> Iterator[Counting]:
    store = Counting(url)
    yield store
    store.close()


async def comes_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.01)


async def has_places(pace: SharedPace, count: int) -> None:
    """Wait until so many places are taken and not used yet."""
    await comes_true(lambda: len(pace._promises) >= count)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_processes_share_one_limit(url: str) -> None:
    """Three processes that all want more never start more together than one may, and each has a good part of it."""
    command = [sys.executable, "-c", WORKER, url, str(TWENTY_A_SECOND), str(SECONDS)]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        workers = [stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)) for _ in range(3)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        began = time.time()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        shares = [json.loads(worker.communicate(timeout=60)[0]) for worker in workers]

    # A busy machine wakes them late, never early: what they had no time for is not held against them.
    starts = sorted(start for share in shares for start in share)
    passed = [start - began for start in starts]
    assert all(place <= 1.05 * TWENTY_A_SECOND / 60 * passed[place] + 2 for place in range(len(starts)))
    assert len(starts) > 0.2 * SECONDS * TWENTY_A_SECOND / 60
    assert min(map(len, shares)) > len(starts) / 20


def test_nothing_is_limited_by_default(settings: Callable[..., Any], store: Store) -> None:
    """Then no request waits for the database."""
    assert shared_pace(settings(), store) is None
    assert own_pace(settings()) is None


def test_requests_that_wait_together_take_their_places_together(counting: Counting) -> None:
    """One transaction for a hundred of them."""

    async def ask_all() -> None:
        pace = SharedPace(counting, [FAST])
        await asyncio.gather(*(pace.admit(1.0) for _ in range(100)))
        await pace.aclose()

    asyncio.run(ask_all())
    assert counting.reservations == 1


def test_turns_come_in_the_order_of_asking(store: Store) -> None:
    """First come, first served."""

    async def ask_all() -> list[int]:
        pace, order = SharedPace(store, [Limit("requests", 6_000)]), []

        async def ask(number: int) -> None:
            await pace.admit(1.0)
            order.append(number)

        await asyncio.gather(*map(ask, range(30)))
        await pace.aclose()
        return order

    assert asyncio.run(ask_all()) == list(range(30))


def test_while_the_database_is_away_nothing_starts(
    counting: Counting, until: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked again until it is back, and then all goes on: no permission is made up, no work is lost."""

    async def ask_all() -> tuple[str | None, int]:
        pace = SharedPace(counting, [FAST], backoff=Backoff(0.01, 0.05))
        counting.away = True
        asked = [asyncio.create_task(pace.admit(1.0)) for _ in range(3)]
        await comes_true(lambda: counting.reservations >= 3)
        problem, started = pace.problem, sum(task.done() for task in asked)
        counting.away = False
        async with asyncio.timeout(60):
            await asyncio.gather(*asked)
        assert pace.problem is None
        await pace.aclose()
        return problem, started

    assert asyncio.run(ask_all()) == ("it is away", 0)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


def test_a_place_that_nobody_wants_any_more_goes_to_the_next(store: Store, other_store: Store) -> None:
    """Or back, when there is no next."""

    async def ask_and_leave() -> None:
        pace = SharedPace(store, [Limit("requests", 20), Limit("tokens", 60_000)])
        await pace.admit(10.0)
        first, second = (asyncio.create_task(pace.admit(10.0)) for _ in range(2))
        await has_places(pace, 2)  # three seconds and six from the start
        first.cancel()
        await second
        assert len(pace._promises) == 1  # that of the other was used; its own is still to come
        last = asyncio.create_task(pace.admit(10.0))
        await has_places(pace, 1)
        last.cancel()
        await pace.aclose()

    asyncio.run(ask_and_leave())
    (wait,) = other_store.reserve([Limit("requests", 20)], [(1.0,)])
    assert wait < 3.15


def test_what_is_settled_is_booked_soon(store: Store, other_store: Store, until: Callable[..., None]) -> None:
    """Also when no further request comes; at the latest at the end."""
    tokens = Limit("tokens", 60_000)

    async def ask(settled: float) -> None:
        pace = SharedPace(store, [tokens])
        place = await pace.admit(100.0)
        assert place.tokens == 100.0
        pace.settle(place, tokens=settled)
        await pace.aclose()

    asyncio.run(ask(20_000.0))
    (wait,) = other_store.reserve([tokens], [(0.0,)])
    assert 5.0 < wait <= 20.1  # the less, the longer the machine took since

    async def ask_nothing_else() -> None:
        pace = SharedPace(store, [tokens])
        pace.settle(Place(), tokens=-20_000.0)
        await comes_true(lambda: other_store.reserve([tokens], [(0.0,)])[0] <= 1.0)
        await pace.aclose()

    asyncio.run(ask_nothing_else())


def test_closing_ends_all_waiting(store: Store, other_store: Store) -> None:
    """What was promised and not used goes back."""

    async def wait_and_close() -> list[bool]:
        pace = SharedPace(store, [Limit("requests", 6)])
        asked = [asyncio.create_task(pace.admit(1.0)) for _ in range(3)]
        await asked[0]
        await has_places(pace, 1)
        await pace.aclose()
        await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(ScoringError, match="no turn"):
            await pace.admit(1.0)
        return [isinstance(task.exception(), ScoringError) for task in asked]

    assert asyncio.run(wait_and_close()) == [False, True, True]
    (wait,) = other_store.reserve([Limit("requests", 6)], [(1.0,)])
    assert wait < 10.05


def test_a_process_of_its_own_is_limited_by_the_same_arithmetic(settings: Callable[..., Any]) -> None:
    """On a database in memory, which is gone at the end."""

    async def ask_all() -> float:
        pace = own_pace(settings(requests_per_minute=600))
        assert pace is not None
        began = time.monotonic()
        await asyncio.gather(*(pace.admit(1.0) for _ in range(6)))
        took = time.monotonic() - began
        await pace.aclose()
        return took

    assert asyncio.run(ask_all()) > 0.4


def test_stopping_waits_for_no_turn(
    store: Store, judge: FakeJudge, start_judged: Callable[..., Any], new_exchange: Any, until: Callable[..., None]
) -> None:
    """What has not had its turn is handed back as it was, for the next start; its place is given back, too."""
    store.add([new_exchange(answer=f"The warranty is {number} years.") for number in range(9)])
    monitor = start_judged(store, judge, requests_per_minute=1, judge_timeout=60.0)
    until(lambda: store.counts().done == 1 and store.counts().running)

    assert monitor.stop(60.0)  # the turns of all would take eight minutes

    assert (store.counts().pending, store.counts().running, store.counts().failed) == (8, 0, 0)
    with store._database.read() as connection:
        rows = connection.exec_driver_sql("SELECT attempts, reason FROM scoring_task WHERE state = 'pending'").all()
    assert set(map(tuple, rows)) == {(0, None)}
    (wait,) = store.reserve([Limit("requests", 1)], [(1.0,)])
    assert wait < 61


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_scoring_under_a_limit_is_slow_and_complete(
    store: Store, judge: FakeJudge, start_judged: Callable[..., Any], new_exchange: Any, until: Callable[..., None]
) -> None:
    """More than a minute lets through waits: nothing is dropped, failed or put off, and each score has its cost."""
    store.add([new_exchange(answer=f"The warranty is {number} years.") for number in range(15)])
    prices = {"fake-judge": {"input": 1.0, "output": 2.0}}
    began = time.monotonic()
    start_judged(store, judge, requests_per_minute=600, prices=prices, concurrency=64)

    until(lambda: store.counts().done == 15)

    assert time.monotonic() - began > 1.2
    assert len(judge.chats) <= (time.monotonic() - began) * 10 * 1.05 + 2
    assert (store.counts().failed, store.counts().pending) == (0, 0)
    scores = [found.score for found in store.worst(limit=99)]
    assert all(score.cost and score.input_tokens for score in scores)
    assert [use.name for use in store.limit_uses()] == ["requests"]


def test_no_more_is_at_work_than_gets_a_turn_soon(settings: Callable[..., Any]) -> None:
    """The rest stays in the database, for any process; and what waits for its turn is given the time."""
    assert (places_for(settings()), longest_wait(settings())) == (16, 0.0)
    slow = settings(requests_per_minute=6, judge_timeout=30)
    assert (places_for(slow), longest_wait(slow)) == (4, 600.0)
    slower = settings(tokens_per_minute=500, judge_timeout=30)
    assert (places_for(slower), longest_wait(slower)) == (2, 2400.0)
