"""The law of the outbox: each item is sent once and in order, and no target delays another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.deliveries import BUSY, LEASE, REFUSED, SENT

from germane.storage import Delivery, TrackingStore
from germane.storage.db.tables import delivery
from germane.storage.outbox import TargetQueue, queue_items
from germane.testing import Clock, transaction

KEYED = TargetQueue("notification", "oncall")
"""Items with order keys, which are kept after they were sent."""
PLAIN = TargetQueue("forwarding", "there", batch_size=3, retry_timeout=None, kept=frozenset())
"""Items in the order of the target, which are deleted when they are sent."""
BATCHED = TargetQueue("notification", "batched", batch_size=3)
QUEUES = (KEYED, PLAIN, BATCHED)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(QUEUES), st.sets(st.sampled_from("xyz"), min_size=1)),
        st.tuples(st.just("claim"), st.sampled_from(QUEUES), st.sampled_from("ab")),
        st.tuples(st.just("record"), st.sampled_from("ab"), st.sampled_from([SENT, BUSY, REFUSED])),
        st.tuples(st.just("record"), st.sampled_from("ab"), st.just(BUSY)),
        st.tuples(st.just("release"), st.sampled_from("ab")),
        st.tuples(st.just("wait"), st.sampled_from([1, 5, 60])),
    ),
    min_size=25,
    max_size=40,
)


def add(store: TrackingStore, queue: TargetQueue, number: int, at: datetime, keys: Sequence[str] = ()) -> None:
    """Queue an item."""
    item = {"payload": {"number": number}, "order_keys": sorted(keys), "created_at": at, "due_at": at}
    with transaction(store) as connection:
        queue_items(connection, queue, [item])


def claim(store: TrackingStore, queue: TargetQueue = KEYED, owner: str = "a") -> list[Delivery]:
    """Claim the items that are due."""
    return store.outbox.claim(queue, owner, lease=LEASE)


def numbers(items: Sequence[Delivery]) -> list[int]:
    """Return the numbers of items."""
    return [item.payload["number"] for item in items]


@dataclass
class World:
    """What processes have claimed and done, and what the outbox must therefore do."""

    store: TrackingStore
    clock: Clock
    queues: dict[int, TargetQueue] = field(default_factory=dict)
    keys: dict[int, set[str]] = field(default_factory=dict)
    held: dict[str, tuple[TargetQueue, list[Delivery]]] = field(default_factory=dict)
    holder: dict[int, str] = field(default_factory=dict)
    """The process that claimed an item last."""
    retried_at: dict[int, datetime] = field(default_factory=dict)
    """The items that wait for a retry."""
    settled: list[int] = field(default_factory=list)

    def add(self, queue: TargetQueue, keys: set[str]) -> None:
        number = len(self.queues)
        self.queues[number], self.keys[number] = queue, keys if queue is not PLAIN else set()
        add(self.store, queue, number, self.clock.now, sorted(self.keys[number]))
        self.clock.advance(timedelta(microseconds=1))

    def claim(self, queue: TargetQueue, owner: str) -> None:
        items = claim(self.store, queue, owner)
        for number in numbers(items):
            earlier = [one for one in self.open(queue) if one < number]
            assert self.queues[number] is queue
            assert number not in self.settled
            assert self.clock.now >= self.retried_at.pop(number, self.clock.now)
            assert not any(self.keys[one] & self.keys[number] for one in earlier)
            if queue is PLAIN:
                assert not any(self.retried_at.get(one, self.clock.now) > self.clock.now for one in earlier)
            self.holder[number] = owner
        assert numbers(items) == sorted(numbers(items))
        if items:
            self.held[owner] = queue, items

    def record(self, owner: str, outcome: Any) -> None:
        queue, items = self.held.pop(owner, (KEYED, []))
        if not items:
            return
        status = self.store.outbox.record_attempt(queue, owner, {items[0].id: outcome}).get(items[0].id)
        number = items[0].payload["number"]
        assert (status is None) == (self.holder[number] != owner)
        if status == "waiting":
            self.retried_at[number] = self.clock.now + outcome.retry_after
            self.holder[number] = ""
        elif status is not None:
            self.settled.append(number)
        self.store.outbox.release(owner, [item.id for item in items[1:]])
        for number in numbers(items[1:]):
            self.holder[number] = "" if self.holder[number] == owner else self.holder[number]

    def release(self, owner: str) -> None:
        _, items = self.held.pop(owner, (KEYED, []))
        self.store.outbox.release(owner, [item.id for item in items])
        for number in numbers(items):
            self.holder[number] = "" if self.holder[number] == owner else self.holder[number]

    def open(self, queue: TargetQueue) -> list[int]:
        """Return the numbers of the items that must still be delivered."""
        return [number for number, of in self.queues.items() if of is queue and number not in self.settled]


@given(steps=STEPS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_items_are_sent_once_and_in_order(store: TrackingStore, clock: Clock, steps: list[Any]) -> None:
    """Whatever processes do, no item overtakes one with a common key, and in the end each is settled exactly once."""
    with transaction(store) as connection:
        connection.execute(delivery.delete())
    world = World(store, clock)
    for number in range(9):
        world.add(QUEUES[number % 3], set("xyz"[number % 2 : number % 2 + 2]))
    for action, *arguments in steps:
        if action == "wait":
            clock.advance(seconds=arguments[0])
        else:
            getattr(world, action)(*arguments)

    clock.advance(seconds=200)  # all leases and delays have ended
    for queue in QUEUES:
        for _ in world.open(queue):
            world.claim(queue, "last")
            world.record("last", SENT)
    assert sorted(world.settled) == list(world.queues)


def test_a_target_that_waits_for_a_retry_delays_no_other_target(store: TrackingStore, clock: Clock) -> None:
    """Its own items wait for the time that it asked for, in every process."""
    other = TargetQueue("forwarding", "elsewhere", batch_size=3, retry_timeout=None, kept=frozenset())
    for number in range(3):
        add(store, PLAIN, number, clock.now)
        add(store, other, number, clock.now)
    first, *rest = claim(store, PLAIN)
    assert store.outbox.record_attempt(PLAIN, "a", {first.id: BUSY}) == {first.id: "waiting"}
    assert store.outbox.release("a", [item.id for item in rest]) == 2

    assert numbers(claim(store, other)) == [0, 1, 2]
    assert claim(store, PLAIN, "b") == []
    clock.advance(seconds=5)
    assert numbers(claim(store, PLAIN, "b")) == [0, 1, 2]


def test_a_retry_is_not_claimed_before_its_delay(store: TrackingStore, clock: Clock) -> None:
    """Not even by another process, and not after a restart."""
    add(store, KEYED, 1, clock.now, ["x"])
    (item,) = claim(store)
    assert store.outbox.record_attempt(KEYED, "a", {item.id: BUSY}) == {item.id: "waiting"}
    clock.advance(seconds=4.9)
    assert claim(store, owner="b") == []
    clock.advance(seconds=0.1)
    assert [one.attempt for one in claim(store, owner="b")] == [2]


def test_items_become_undelivered_after_a_refusal_or_a_day_of_retries(store: TrackingStore, clock: Clock) -> None:
    """They stay in the outbox, and are not claimed again."""
    add(store, KEYED, 1, clock.now, ["x"])
    add(store, KEYED, 2, clock.now, ["y"])
    (refused,), (retried,) = claim(store), claim(store)
    assert store.outbox.record_attempt(KEYED, "a", {refused.id: REFUSED}) == {refused.id: "undelivered"}
    clock.advance(hours=24, seconds=-1)
    assert store.outbox.record_attempt(KEYED, "a", {retried.id: BUSY}) == {retried.id: "waiting"}
    clock.advance(seconds=5)
    (again,) = claim(store)
    assert store.outbox.record_attempt(KEYED, "a", {again.id: BUSY}) == {again.id: "undelivered"}

    clock.advance(days=1)
    assert claim(store) == []


def test_outdated_items_are_not_sent(store: TrackingStore, clock: Clock) -> None:
    """A channel that is configured again after several weeks does not send old notifications."""
    add(store, KEYED, 1, clock.now, ["x"])
    add(store, KEYED, 2, clock.now, ["y"])
    add(store, PLAIN, 3, clock.now)
    (item,) = claim(store)
    store.outbox.record_attempt(KEYED, "a", {item.id: BUSY})
    clock.advance(days=20)
    add(store, KEYED, 4, clock.now, ["z"])

    assert numbers(claim(store)) == [4]
    assert numbers(claim(store, PLAIN)) == [3]  # requests that are forwarded have no such limit
    with transaction(store, read_only=True) as connection:
        rows = connection.execute(delivery.select().where(delivery.c.status == "undelivered")).all()
    assert sorted((row.error, row.settled_at) for row in rows) == [
        ("no process attempted delivery in time", clock.now),
        ("status 503", clock.now),
    ]


def test_setting_the_clock_back_does_not_delay_items(store: TrackingStore, clock: Clock) -> None:
    """Leases and retry times far in the future are ignored."""
    clock.advance(days=3)
    add(store, KEYED, 1, clock.now, ["x"])
    claim(store)
    clock.advance(days=-3)

    assert numbers(claim(store, owner="b")) == [1]


def test_items_that_are_not_kept_are_deleted(store: TrackingStore, clock: Clock) -> None:
    """Forwarded requests are many, and nobody looks at them again."""
    for number in range(2):
        add(store, PLAIN, number, clock.now)
    accepted, refused = claim(store, PLAIN)
    assert store.outbox.record_attempt(PLAIN, "a", {accepted.id: SENT}) == {accepted.id: "sent"}
    assert store.outbox.record_attempt(PLAIN, "a", {refused.id: REFUSED}) == {refused.id: "undelivered"}

    with transaction(store, read_only=True) as connection:
        assert connection.execute(delivery.select()).all() == []


def test_released_items_are_due_as_if_they_had_never_been_claimed(store: TrackingStore, clock: Clock) -> None:
    """A stopping process does not keep items until its lease expires, and the order does not change."""
    for number in range(4):
        add(store, PLAIN, number, clock.now + timedelta(microseconds=number))
    clock.advance(seconds=1)
    items = claim(store, PLAIN)
    assert store.outbox.release("a", [item.id for item in items]) == 3
    assert store.outbox.release("a", [item.id for item in items]) == 0

    assert [(item.payload["number"], item.attempt) for item in claim(store, PLAIN, "b")] == [(0, 1), (1, 1), (2, 1)]
