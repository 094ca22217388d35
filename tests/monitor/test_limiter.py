"""Rate limits for judge requests, shared by all processes on one database."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import IO, Any

import pytest

from germane.delivery import Backoff
from germane.errors import DatabaseUnreachable, ScoringError
from germane.monitor.quota.limiter import (
    SharedRateLimiter,
    local_rate_limiter,
    max_concurrency,
    max_queue_wait,
    shared_rate_limiter,
)
from germane.scorers import RequestReservation
from germane.storage import RateLimit, TrackingStore
from germane.storage.quota.store_quota import QuotaStore
from germane.testing import FakeJudge, transaction

FAST = RateLimit("requests", 600_000)
TWENTY_A_SECOND = 1_200.0
WORKER = """
import asyncio, sys, time
from germane.monitor.quota.limiter import shared_rate_limiter
from germane.settings import load_settings
from germane.storage import TrackingStore

async def main(url, per_minute):
    store = TrackingStore(url)
    limiter = shared_rate_limiter(load_settings(database=url, requests_per_minute=per_minute), store)
    async def ask():
        while True:
            await limiter.acquire(1.0)
            print(time.time(), flush=True)
    print("ready", flush=True)
    sys.stdin.readline()
    requests = [asyncio.create_task(ask()) for _ in range(20)]
    await asyncio.to_thread(sys.stdin.read)
    for request in requests:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)
    await limiter.aclose()
    store.close()

asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""


class CountingQuota(QuotaStore):
    """Counts reservations under rate limits and fails while ``unreachable``."""

    reservations = 0
    unreachable = False

    def reserve_slots(self, *arguments: Any, **named: Any) -> list[float]:
        self.reservations += 1
        if self.unreachable:
            raise DatabaseUnreachable("the database is unreachable")
        return super().reserve_slots(*arguments, **named)


class Counting(TrackingStore):
    """A store whose quota counts reservations."""

    quota: CountingQuota

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.quota = CountingQuota(self.context)


@pytest.fixture
def counting(url: str) -> Iterator[Counting]:
    store = Counting(url)
    yield store
    store.close()


async def wait_until_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


async def wait_for_reservations(limiter: SharedRateLimiter, count: int) -> None:
    """Wait until ``count`` reservations have been granted but not used yet."""
    await wait_until_true(lambda: len(limiter._scheduled) >= count)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_several_processes_share_one_rate_limit(url: str, until: Callable[..., None]) -> None:
    """Three busy processes together never exceed the limit, and each gets a fair share."""
    command = [sys.executable, "-c", WORKER, url, str(TWENTY_A_SECOND)]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        workers = [stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)) for _ in range(3)]
        pipes = [(worker.stdin, worker.stdout) for worker in workers if worker.stdin and worker.stdout]
        assert [stdout.readline() for _, stdout in pipes] == ["ready\n"] * 3
        shares: list[list[float]] = [[] for _ in pipes]

        def collect_starts(share: list[float], lines: IO[str]) -> None:
            share.extend(map(float, lines))

        readers = [
            threading.Thread(target=collect_starts, args=(share, stdout))
            for share, (_, stdout) in zip(shares, pipes, strict=True)
        ]
        for reader in readers:
            reader.start()
        began = time.time()
        for stdin, _ in pipes:
            stdin.write("go\n")
            stdin.flush()
        until(lambda: min(map(len, shares)) >= 10)
        for stdin, _ in pipes:
            stdin.close()
        for reader in readers:
            reader.join(60)

    # A busy machine wakes the processes late, but never early.
    starts = sorted(start for share in shares for start in share)
    assert all(place <= 1.05 * TWENTY_A_SECOND / 60 * (start - began) + 2 for place, start in enumerate(starts))
    assert min(map(len, shares)) > len(starts) / 20


def test_there_is_no_rate_limit_by_default(settings: Callable[..., Any], store: TrackingStore) -> None:
    """No request waits for the database."""
    assert shared_rate_limiter(settings(), store) is None
    assert local_rate_limiter(settings()) is None


def test_waiting_requests_get_their_reservations_in_one_transaction(counting: Counting) -> None:
    """A hundred requests take one transaction."""

    async def ask_all() -> None:
        limiter = SharedRateLimiter(counting, [FAST])
        await asyncio.gather(*(limiter.acquire(1.0) for _ in range(100)))
        await limiter.aclose()

    asyncio.run(ask_all())
    assert counting.quota.reservations == 1


def test_requests_start_in_the_order_of_their_arrival(store: TrackingStore) -> None:
    """The request that has waited longest starts first."""

    async def ask_all() -> list[int]:
        limiter, order = SharedRateLimiter(store, [RateLimit("requests", 6_000)]), []

        async def ask(number: int) -> None:
            await limiter.acquire(1.0)
            order.append(number)

        await asyncio.gather(*map(ask, range(30)))
        await limiter.aclose()
        return order

    assert asyncio.run(ask_all()) == list(range(30))


def test_no_request_starts_while_the_database_is_unreachable(
    counting: Counting, until: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """Reservations are retried until the database is reachable. No request is sent before, and no task is lost."""

    async def ask_all() -> tuple[str | None, int]:
        limiter = SharedRateLimiter(counting, [FAST], backoff=Backoff(0.01, 0.05))
        counting.quota.unreachable = True
        asked = [asyncio.create_task(limiter.acquire(1.0)) for _ in range(3)]
        await wait_until_true(lambda: counting.quota.reservations >= 3)
        problem, started = limiter.problem, sum(task.done() for task in asked)
        counting.quota.unreachable = False
        async with asyncio.timeout(60):
            await asyncio.gather(*asked)
        assert limiter.problem is None
        await limiter.aclose()
        return problem, started

    assert asyncio.run(ask_all()) == ("the database is unreachable", 0)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


@pytest.mark.slow
def test_the_reservation_of_a_canceled_request_goes_to_the_next_one(
    store: TrackingStore, other_store: TrackingStore
) -> None:
    """If no request is waiting, the reservation is refunded."""

    async def ask_and_leave() -> None:
        limiter = SharedRateLimiter(store, [RateLimit("requests", 20), RateLimit("tokens", 60_000)])
        await limiter.acquire(10.0)
        first, second = (asyncio.create_task(limiter.acquire(10.0)) for _ in range(2))
        await wait_for_reservations(limiter, 2)  # they start in three and in six seconds
        first.cancel()
        await second
        assert len(limiter._scheduled) == 1  # the second request used the first request's reservation
        last = asyncio.create_task(limiter.acquire(10.0))
        await wait_for_reservations(limiter, 1)
        last.cancel()
        await limiter.aclose()

    asyncio.run(ask_and_leave())
    (wait,) = other_store.quota.reserve_slots([RateLimit("requests", 20)], [(1.0,)])
    assert wait < 3.15


def test_actual_usage_is_written_to_the_database_soon(
    store: TrackingStore, other_store: TrackingStore, until: Callable[..., None]
) -> None:
    """They are written even without further requests, and at the latest when the limiter is closed."""
    tokens = RateLimit("tokens", 60_000)

    async def ask(settled: float) -> None:
        limiter = SharedRateLimiter(store, [tokens])
        reservation = await limiter.acquire(100.0)
        assert reservation.tokens == 100.0
        limiter.settle(reservation, tokens=settled)
        await limiter.aclose()

    asyncio.run(ask(20_000.0))
    (wait,) = other_store.quota.reserve_slots([tokens], [(0.0,)])
    assert 5.0 < wait <= 20.1  # less on a slow machine

    async def ask_nothing_else() -> None:
        limiter = SharedRateLimiter(store, [tokens])
        limiter.settle(RequestReservation(), tokens=-20_000.0)
        await wait_until_true(lambda: other_store.quota.reserve_slots([tokens], [(0.0,)])[0] <= 1.0)
        await limiter.aclose()

    asyncio.run(ask_nothing_else())


def test_closing_the_limiter_rejects_waiting_requests(store: TrackingStore, other_store: TrackingStore) -> None:
    """Unused reservations are refunded."""

    async def wait_and_close() -> list[bool]:
        limiter = SharedRateLimiter(store, [RateLimit("requests", 6)])
        asked = [asyncio.create_task(limiter.acquire(1.0)) for _ in range(3)]
        await asked[0]
        await wait_for_reservations(limiter, 1)
        await limiter.aclose()
        await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(ScoringError, match="scoring stopped"):
            await limiter.acquire(1.0)
        return [isinstance(task.exception(), ScoringError) for task in asked]

    assert asyncio.run(wait_and_close()) == [False, True, True]
    (wait,) = other_store.quota.reserve_slots([RateLimit("requests", 6)], [(1.0,)])
    assert wait < 10.05


def test_a_local_rate_limiter_enforces_the_rate_limit(settings: Callable[..., Any]) -> None:
    """A local rate limiter uses an in-memory database."""

    async def ask_all() -> float:
        limiter = local_rate_limiter(settings(requests_per_minute=600))
        assert limiter is not None
        began = time.monotonic()
        await asyncio.gather(*(limiter.acquire(1.0) for _ in range(6)))
        took = time.monotonic() - began
        await limiter.aclose()
        return took

    assert asyncio.run(ask_all()) > 0.4


def test_a_local_rate_limiter_continues_the_schedule_of_a_closed_one(settings: Callable[..., Any]) -> None:
    """Each partition of a data set has its own limiter, and may need a single request."""

    async def ask_once() -> float:
        limiter = local_rate_limiter(settings(requests_per_minute=60))
        assert limiter is not None
        await limiter.acquire(1.0)
        started = time.monotonic()
        await limiter.aclose()
        return started

    first, second, third = (asyncio.run(ask_once()) for _ in range(3))

    assert second - first > 0.9
    assert third - second > 0.9


def test_open_local_rate_limiters_are_independent(settings: Callable[..., Any]) -> None:
    """Each thread of an executor has its share of the rate limit, like a process."""

    async def ask_both() -> None:
        limiters = [limiter for _ in range(2) if (limiter := local_rate_limiter(settings(requests_per_minute=1)))]
        await asyncio.wait_for(asyncio.gather(*(limiter.acquire(1.0) for limiter in limiters)), 30)
        await asyncio.gather(*(limiter.aclose() for limiter in limiters))

    asyncio.run(ask_both())


def test_stopping_does_not_wait_for_requests_delayed_by_the_rate_limit(
    store: TrackingStore,
    judge: FakeJudge,
    start_judged: Callable[..., Any],
    new_exchange: Any,
    until: Callable[..., None],
) -> None:
    """Waiting tasks are released unchanged, and their reservations are refunded."""
    store.exchanges.add([new_exchange(answer=f"The warranty is {number} years.") for number in range(9)])
    monitor = start_judged(store, judge, requests_per_minute=1, judge_timeout=60.0, scorers=["direct_relevancy"])
    until(lambda: store.answers.counts().done == 1 and store.answers.counts().running)

    assert monitor.stop(60.0)  # scoring all of them would take eight minutes

    assert (store.answers.counts().pending, store.answers.counts().running, store.answers.counts().failed) == (8, 0, 0)
    with transaction(store, read_only=True) as connection:
        rows = connection.exec_driver_sql("SELECT claims, reason FROM scoring_task WHERE state = 'pending'").all()
    assert set(map(tuple, rows)) == {(0, None)}
    (wait,) = store.quota.reserve_slots([RateLimit("requests", 1)], [(1.0,)])
    assert wait < 61


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_all_exchanges_are_scored_under_a_rate_limit(
    store: TrackingStore,
    judge: FakeJudge,
    start_judged: Callable[..., Any],
    new_exchange: Any,
    until: Callable[..., None],
) -> None:
    """No exchange is dropped or postponed, none fails, and each score has a cost."""
    store.exchanges.add([new_exchange(answer=f"The warranty is {number} years.") for number in range(15)])
    prices = {"fake-judge": {"input": 1.0, "output": 2.0}}
    began = time.monotonic()
    start_judged(store, judge, requests_per_minute=600, prices=prices, concurrency=64)

    until(lambda: store.answers.counts().done == 15)

    assert time.monotonic() - began > 1.2
    assert len(judge.chat_requests) <= (time.monotonic() - began) * 10 * 1.05 + 2
    assert (store.answers.counts().failed, store.answers.counts().pending) == (0, 0)
    scores = [answer.score for answer in store.answers.worst(limit=99)]
    assert all(score.cost and score.input_tokens for score in scores)
    assert [use.name for use in store.quota.load_rate_limit_usage()] == ["requests"]


def test_only_tasks_that_can_start_soon_are_claimed(settings: Callable[..., Any]) -> None:
    """The other tasks stay in the database, where any process can claim them, and waiting requests have enough time."""
    assert (max_concurrency(settings()), max_queue_wait(settings())) == (16, 0.0)
    slow = settings(requests_per_minute=6, judge_timeout=30)
    assert (max_concurrency(slow), max_queue_wait(slow)) == (4, 600.0)
    slower = settings(tokens_per_minute=500, judge_timeout=30)
    assert (max_concurrency(slower), max_queue_wait(slower)) == (2, 2400.0)
