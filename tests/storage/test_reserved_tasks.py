"""While the span of an exchange waits for its scores, only the process that holds the span may score the exchange."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import SamplingDecision, TrackingStore, WorkerHeartbeat
from germane.storage.workers import HEARTBEAT_TIMEOUT

Make = Callable[..., Exchange]
DELAY, LEASE = timedelta(seconds=15), timedelta(seconds=60)
SCORERS = {"a": "f1", "b": "f2"}


@pytest.fixture
def assign(store: TrackingStore, make: Make, clock: Any) -> Callable[..., Exchange]:
    """Store an exchange that ended just now, and assign its tasks."""

    def new(number: int, holder: str | None, before: Callable[[], object] = bool) -> Exchange:
        exchange = make(number, id=f"{number:032x}", started_at=clock.now, duration=0.0, span_holder=holder)
        store.exchanges.add([exchange])
        before()
        decision = SamplingDecision(exchange.id, 1.0, "sampled")
        store.sampling.assign_tasks([decision], SCORERS, max_span_delay=DELAY)
        return exchange

    return new


def send_heartbeat(store: TrackingStore, worker: str) -> None:
    presence = WorkerHeartbeat(id=worker, host="h", pid=1, service="s", version="1", scorers=SCORERS)
    store.workers.heartbeat(presence, (), lease=LEASE)


def claim(store: TrackingStore, worker: str, *preferred: Exchange, limit: int = 9) -> list[str]:
    """Return the ids of the claimed exchanges."""
    ids = [exchange.id for exchange in preferred]
    claims = store.queue.claim_tasks(worker, SCORERS, limit=limit, lease=LEASE, preferred=ids)
    assert all(len(claimed.tasks) == len(SCORERS) for claimed in claims)
    return [claimed.exchange.id for claimed in claims]


def test_tasks_are_reserved_until_the_span_is_exported(
    store: TrackingStore, assign: Callable[..., Exchange], clock: Any
) -> None:
    """Before the export, other processes claim nothing; afterwards, any process may claim the tasks."""
    send_heartbeat(store, "holder")
    exchange = assign(1, "holder")

    assert claim(store, "other") == []
    clock.now += DELAY
    assert claim(store, "other") == [exchange.id]


def test_the_process_that_holds_a_span_claims_its_tasks_first(
    store: TrackingStore, assign: Callable[..., Exchange], clock: Any
) -> None:
    """The holder's exchanges come before older ones, with all their tasks, up to the limit."""
    send_heartbeat(store, "holder")
    older = [assign(number, None) for number in (1, 2)]
    clock.now += timedelta(seconds=1)
    own = [assign(number, "holder") for number in (3, 4, 5)]

    assert claim(store, "holder", *own, limit=2) == [own[0].id, own[1].id]
    assert claim(store, "holder", *own, limit=2) == [older[0].id, own[2].id]
    assert claim(store, "holder", *own) == [older[1].id]


def test_tasks_are_reserved_for_a_process_that_has_not_yet_sent_a_heartbeat(
    store: TrackingStore, assign: Callable[..., Exchange]
) -> None:
    """A process writes its first exchanges while it is still starting its background work."""
    exchange = assign(1, "starting")

    assert claim(store, "other") == []
    assert claim(store, "starting", exchange) == [exchange.id]
    send_heartbeat(store, "starting")
    assert [worker.scorers for worker in store.workers.list_workers()] == [SCORERS]


@pytest.mark.parametrize("ending", ["no span waits", "stopped", "stopped before it wrote", "dead"])
def test_tasks_are_ready_immediately_if_the_process_holding_the_span_has_stopped(
    store: TrackingStore, assign: Callable[..., Exchange], clock: Any, ending: str
) -> None:
    """Either no span is waiting, or its process has ended."""

    def stop() -> None:
        store.workers.deregister_worker("holder")

    if ending in {"dead", "stopped before it wrote"}:
        send_heartbeat(store, "holder")
    if ending == "dead":
        clock.now += HEARTBEAT_TIMEOUT + timedelta(seconds=1)
    elif ending == "stopped before it wrote":
        stop()
    holder = None if ending == "no span waits" else "holder"
    exchange = assign(1, holder, before=stop if ending == "stopped" else bool)

    assert claim(store, "other") == [exchange.id]
    assert "stopped" not in ending or store.workers.list_workers() == []


@pytest.mark.parametrize("ending", ["stops", "dies"])
def test_reserved_tasks_are_released_when_the_process_holding_the_span_stops(
    store: TrackingStore, make: Make, clock: Any, ending: str
) -> None:
    """A stopped holder releases its tasks immediately. A killed holder loses them once its heartbeat is too old."""
    exchange = make(1, started_at=clock.now, duration=0.0, span_holder="holder")
    for worker in ("holder", "other"):
        send_heartbeat(store, worker)
    store.exchanges.add([exchange])
    decision = SamplingDecision(exchange.id, 1.0, "sampled")
    store.sampling.assign_tasks([decision], SCORERS, max_span_delay=timedelta(hours=1))
    store.queue.release_reserved_tasks(SCORERS)
    assert claim(store, "other") == []

    if ending == "dies":
        clock.now += HEARTBEAT_TIMEOUT + timedelta(seconds=1)
        send_heartbeat(store, "other")
    store.queue.release_reserved_tasks(SCORERS, stopping="holder" if ending == "stops" else None)

    assert claim(store, "other") == [exchange.id]


def test_a_retried_task_is_not_claimed_before_its_delay_ends(
    store: TrackingStore, assign: Callable[..., Exchange], clock: Any
) -> None:
    """A span that is still waiting does not shorten the retry delay."""
    send_heartbeat(store, "holder")
    exchange = assign(1, "holder")
    (claimed,) = store.queue.claim_tasks("holder", SCORERS, limit=1, lease=LEASE, preferred=[exchange.id])
    store.queue.postpone_tasks(
        "holder",
        claimed.tasks,
        until=clock.now + timedelta(seconds=5),
        reason=UnscoredReason.JUDGE_RATE_LIMITED,
        error="busy",
    )

    assert claim(store, "holder", exchange) == []
