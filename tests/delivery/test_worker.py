"""The law of delivery, for any kind of target: in order, with retries, and no target delays another one."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryContext, DeliveryError, DeliveryWorker, Sent, Target
from germane.errors import SettingsError, StorageError
from germane.storage import Delivery, TrackingStore
from germane.storage.db.tables import delivery
from germane.storage.outbox import TargetQueue, queue_items
from germane.testing import Clock, transaction

QUICK = Backoff(initial=0.05, maximum=0.1, max_retry_after=0.3)
BUSY = DeliveryError("status 503", status=503)
REFUSED = DeliveryError("status 404", status=404, retryable=False)


class Endpoint(Target):
    """A target that fails with the given errors, and then accepts everything."""

    def __init__(self, name: str = "there", *errors: Exception, **options: Any) -> None:
        super().__init__(TargetQueue("test", name, **options), label=f"target {name}", noun="an item")
        self.errors = list(errors)
        self.problem: str | None = None
        self.attempts: list[list[int]] = []
        """The numbers of the items of each attempt."""
        self.times: list[float] = []
        self.accepted: list[int] = []

    @property
    def config_error(self) -> str | None:
        return self.problem

    def group(self, items: Sequence[Delivery]) -> Iterable[Sequence[Delivery]]:
        """Send two items together."""
        return (items[start : start + 2] for start in range(0, len(items), 2))

    async def send(self, items: Sequence[Delivery]) -> Sent:
        self.attempts.append([item.payload["number"] for item in items])
        self.times.append(asyncio.get_running_loop().time())
        if self.errors:
            raise self.errors.pop(0)
        self.accepted += self.attempts[-1]
        return Sent(200)


class Hanging(Endpoint):
    """A target that never responds."""

    async def send(self, items: Sequence[Delivery]) -> Sent:
        self.attempts.append([item.payload["number"] for item in items])
        await asyncio.Event().wait()
        return Sent()


def queue(
    store: TrackingStore, target: Target, *numbers: int, keys: Sequence[str] = (), age: timedelta = timedelta(0)
) -> None:
    """Queue items, each with its own key unless keys are given."""
    now = store.now()
    items = [
        {
            "payload": {"number": number},
            "order_keys": list(keys) or ([str(number)] if target.queue.kept else []),
            "created_at": now - age + timedelta(microseconds=number),
            "due_at": now,
        }
        for number in numbers
    ]
    with transaction(store) as connection:
        queue_items(connection, target.queue, items)


def rows(store: TrackingStore) -> list[Any]:
    """Return all items, in their order."""
    with transaction(store, read_only=True) as connection:
        return list(connection.execute(select(delivery).order_by(delivery.c.created_at)))


def is_idle(store: TrackingStore) -> bool:
    """Return whether no item is claimed, so that the outcomes of all attempts are recorded."""
    return all(row.lease_owner is None for row in rows(store))


@pytest.fixture
def context(store: TrackingStore) -> Iterator[DeliveryContext]:
    threads = DaemonThreadPool(4, name="test-delivery")
    lease = timedelta(seconds=5)
    yield DeliveryContext(store=store, owner="me", threads=threads, lease=lease, backoff=QUICK)
    threads.close()
    threads.join(60)


def deliver(context: DeliveryContext, *targets: Target, until: Callable[[], object]) -> list[DeliveryWorker]:
    """Let a worker for each target wait for its work and deliver it, until a condition holds."""

    async def work() -> list[DeliveryWorker]:
        workers = [DeliveryWorker(target, context) for target in targets]

        async def run(worker: DeliveryWorker) -> None:
            worker.wake()
            while True:
                await worker.wait_for_work()
                await worker.deliver_due()

        tasks = [asyncio.create_task(run(worker)) for worker in workers]
        async with asyncio.timeout(30):
            while not await asyncio.to_thread(lambda: bool(until())):  # the result may be a list that changes
                done, _ = await asyncio.wait(tasks, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in workers:
            await worker.release()
        return workers

    return asyncio.run(work())


def test_items_are_sent_in_order_and_recorded(store: TrackingStore, context: DeliveryContext) -> None:
    """The status of the response is stored. The worker waits for the target, and for nothing else."""
    target = Endpoint(batch_size=3)
    queue(store, target, *range(5))
    (worker,) = deliver(context, target, until=lambda: len(target.accepted) == 5 and is_idle(store))

    assert target.attempts == [[0, 1], [2], [3, 4]]
    assert [(row.status, row.http_status, row.attempt) for row in rows(store)] == [("sent", 200, 1)] * 5
    assert worker.problem is None


def test_a_retry_keeps_the_order_of_a_target(store: TrackingStore, context: DeliveryContext) -> None:
    """Later items wait for the first one, and their attempts are not counted."""
    target = Endpoint("there", BUSY, BUSY, batch_size=4, kept=frozenset(), retry_timeout=None)
    queue(store, target, *range(6))
    deliver(context, target, until=lambda: len(target.accepted) == 6 and is_idle(store))

    assert target.accepted == list(range(6))
    assert target.attempts[:3] == [[0, 1]] * 3
    assert rows(store) == []


def test_a_retry_keeps_the_order_of_a_key(store: TrackingStore, context: DeliveryContext) -> None:
    """Items with other keys do not wait."""
    target = Endpoint("there", BUSY)
    queue(store, target, 0, 2, keys=["x"])
    queue(store, target, 1, keys=["y"])
    unhurried = replace(context, backoff=Backoff(initial=2.0, maximum=2.0))
    deliver(unhurried, target, until=lambda: len(target.accepted) == 3)

    assert target.accepted == [1, 0, 2]


def test_a_dead_target_does_not_delay_others(store: TrackingStore, context: DeliveryContext) -> None:
    """Neither a target that fails nor one that never responds."""
    dead, silent, alive = Endpoint("dead", *[BUSY] * 999), Hanging("silent"), Endpoint("alive")
    for target in (dead, silent, alive):
        queue(store, target, *range(20))
    sent_to = lambda: [row.target for row in rows(store) if row.status == "sent"]  # noqa: E731
    deliver(context, dead, silent, alive, until=lambda: len(sent_to()) == 20)

    assert silent.attempts == [[0]]
    assert set(sent_to()) == {"alive"}


def test_retry_after_is_respected(store: TrackingStore, context: DeliveryContext) -> None:
    """No attempt is made earlier, even if the back-off is shorter, and none waits for the next poll."""
    target = Endpoint("there", DeliveryError("status 429", status=429, retry_after=0.3))
    queue(store, target, 1)
    deliver(context, target, until=lambda: target.accepted)

    first, second = target.times
    assert second - first > 0.25


def test_delays_grow_with_the_attempts(migrated_url: str, context: DeliveryContext) -> None:
    """Each delay is stored, so that it outlasts the process."""
    clock, delays = Clock(datetime.now(UTC)), list[float]()
    with closing(TrackingStore(migrated_url, clock=clock)) as frozen:
        target = Endpoint("there", *[BUSY] * 4)
        queue(frozen, target, 1)
        slow = replace(context, store=frozen, backoff=Backoff(initial=10.0, maximum=40.0))
        for _ in range(4):
            asyncio.run(DeliveryWorker(target, slow).deliver_due())
            (row,) = rows(frozen)
            delays.append((row.due_at - clock.now).total_seconds())
            clock.now = row.due_at

    shares = [delay / longest for delay, longest in zip(delays, [10, 20, 40, 40], strict=True)]
    assert all(0.5 <= share <= 1 for share in shares), delays


def test_an_item_that_is_refused_or_too_old_becomes_a_dead_letter(
    store: TrackingStore, context: DeliveryContext, caplog: Any
) -> None:
    """It stays in the outbox with its error. Later items are sent."""
    target = Endpoint("there", REFUSED, BUSY)
    queue(store, target, 0, 1, age=timedelta(days=2))
    queue(store, target, 2)
    deliver(context, target, until=lambda: target.accepted and is_idle(store))

    assert [(row.status, row.error) for row in rows(store)] == [
        ("undelivered", "status 404"),
        ("undelivered", "status 503"),
        ("sent", None),
    ]
    assert [record.getMessage() for record in caplog.records] == [
        "target there failed to deliver an item: status 404; further failures are not logged until a delivery succeeds",
        "target there gave up on an item: status 404",
        "target there gave up on an item: status 503",
        "target there has recovered after 2 failed attempts",
    ]


def test_an_unexpected_error_loses_no_item(store: TrackingStore, context: DeliveryContext) -> None:
    """Its text, which may contain secrets, is not recorded. Items that no person could resend are retried."""
    kept = Endpoint("kept", RuntimeError("my-api-key"))
    deleted = Endpoint("deleted", RuntimeError("my-api-key"), kept=frozenset(), retry_timeout=None)
    for target in (kept, deleted):
        queue(store, target, 1)
    deliver(context, kept, deleted, until=lambda: kept.attempts and deleted.accepted and is_idle(store))

    (row,) = rows(store)
    assert row.status == "undelivered"
    assert row.error.startswith("RuntimeError at test_worker.py:")


@pytest.mark.parametrize("error", [SettingsError("the secret is missing"), StorageError("the database is unreachable")])
def test_a_missing_secret_or_an_outage_is_retried(
    store: TrackingStore, context: DeliveryContext, error: Exception
) -> None:
    """It is no fault of the item."""
    target = Endpoint("there", error)
    queue(store, target, 1)
    deliver(context, target, until=lambda: target.accepted)

    assert target.attempts == [[1]] * 2


def test_a_target_that_is_not_configured_leaves_its_items_to_other_processes(
    store: TrackingStore, context: DeliveryContext
) -> None:
    """No attempt is counted."""
    target = Endpoint()
    target.problem = "the environment variable X is not set"
    queue(store, target, 1)
    worker = DeliveryWorker(target, context)
    asyncio.run(worker.deliver_due())

    assert (worker.problem, target.attempts) == (target.problem, [])
    assert [(row.status, row.attempt) for row in rows(store)] == [("waiting", 0)]


def test_an_interrupted_delivery_is_due_at_once(store: TrackingStore, context: DeliveryContext) -> None:
    """A stopped process does not keep its lease."""
    silent = Hanging()
    queue(store, silent, 1)
    deliver(context, silent, until=lambda: silent.attempts)

    (taken,) = store.outbox.claim(silent.queue, "next", lease=timedelta(seconds=9))
    assert taken.payload == {"number": 1}


def test_a_stopping_process_sends_no_more_items(store: TrackingStore, context: DeliveryContext) -> None:
    """The items that it has claimed, but not sent, are due at once."""
    target = Endpoint(batch_size=6, kept=frozenset(), retry_timeout=None)
    queue(store, target, *range(6))
    stopping = replace(context, stopping=lambda: bool(target.accepted))
    asyncio.run(DeliveryWorker(target, stopping).deliver_due())

    assert target.accepted == [0, 1]
    assert [(row.payload["number"], row.attempt, row.lease_owner) for row in rows(store)] == [
        (number, 0, None) for number in range(2, 6)
    ]


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
def test_a_database_outage_after_sending_causes_no_duplicate(
    store: TrackingStore, context: DeliveryContext, migrated_url: str
) -> None:
    """The outcome is recorded once the database is back, and the items that were not sent yet are sent then."""
    path = Path(migrated_url.removeprefix("sqlite:///"))

    def rename(before: str, after: str) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"ALTER TABLE {before} RENAME TO {after}")

    class Cutting(Endpoint):
        async def send(self, items: Sequence[Delivery]) -> Sent:
            status = await super().send(items)
            if len(self.attempts) == 1:
                await asyncio.to_thread(rename, "delivery", "away")
            return status

    target = Cutting(batch_size=3)
    queue(store, target, 0, 1, 2)
    worker = DeliveryWorker(target, replace(context, lease=timedelta(seconds=0.3)))

    async def work() -> None:
        with pytest.raises(StorageError):
            await worker.deliver_due()
        await asyncio.to_thread(rename, "away", "delivery")
        async with asyncio.timeout(30):
            await worker.wait_for_work()
        await worker.deliver_due()

    asyncio.run(work())
    assert target.accepted == [0, 1, 2]
    assert [row.status for row in rows(store)] == ["sent"] * 3
    assert worker.in_progress == []


def test_the_lease_is_renewed_during_a_slow_delivery(migrated_url: str, context: DeliveryContext) -> None:
    """An item is not sent twice while its sender is running, even if it blocks its event loop."""
    clock, lease = Clock(datetime.now(UTC)), timedelta(seconds=0.6)
    # The clock is frozen so that no lease expires while a busy machine delays the renewal.
    with closing(TrackingStore(migrated_url, clock=clock)) as frozen:

        def wait_for_renewal() -> None:
            clock.advance(seconds=0.4)
            while rows(frozen)[0].due_at < clock.now + lease:
                time.sleep(0.01)

        class Slow(Endpoint):
            async def send(self, items: Sequence[Delivery]) -> Sent:
                for _ in range(3):
                    wait_for_renewal()
                    assert frozen.outbox.claim(self.queue, "other", lease=lease) == []
                return await super().send(items)

        target = Slow()
        queue(frozen, target, 1)
        asyncio.run(DeliveryWorker(target, replace(context, store=frozen, lease=lease)).deliver_due())

        assert [(row.status, row.attempt) for row in rows(frozen)] == [("sent", 1)]


def test_a_worker_that_lost_its_lease_records_nothing(store: TrackingStore, context: DeliveryContext) -> None:
    """The process that has claimed the item since sends and records it."""
    target = Endpoint()
    queue(store, target, 1)

    class Robbed(Endpoint):
        async def send(self, items: Sequence[Delivery]) -> Sent:
            with transaction(store) as connection:
                connection.execute(delivery.update().values(due_at=store.now() - timedelta(seconds=1)))
            assert len(store.outbox.claim(self.queue, "other", lease=timedelta(minutes=1))) == 1
            return await super().send(items)

    robbed = Robbed()
    asyncio.run(DeliveryWorker(robbed, context).deliver_due())

    assert robbed.accepted == [1]
    assert [(row.status, row.lease_owner, row.attempt) for row in rows(store)] == [("waiting", "other", 2)]


def test_waiting_ends_with_the_earliest_retry() -> None:
    """Each retry that is scheduled ends a wait, even if several are."""

    async def work() -> list[float]:
        worker = DeliveryWorker(Endpoint(), DeliveryContext(
            store=TrackingStore("sqlite:///:memory:"), owner="me", threads=DaemonThreadPool(0, name="none"),
            lease=timedelta(seconds=1), backoff=QUICK,
        ))  # fmt: skip
        loop, times = asyncio.get_running_loop(), list[float]()
        started = loop.time()
        for seconds in (0.2, 0.1):
            worker.wake_after(timedelta(seconds=seconds))
        waits: list[Callable[[], Awaitable[None]]] = [worker.wait_for_work] * 2
        for wait in waits:
            await wait()
            times.append(loop.time() - started)
        return times

    first, second = asyncio.run(work())
    assert first >= 0.1
    assert second >= 0.2
