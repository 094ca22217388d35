"""Sampling decisions: one per captured exchange, counted for every scorer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy import event

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import Coverage, SamplingDecision, TrackingStore
from germane.testing import engine_of

Make = Callable[..., Exchange]


def test_undecided_exchanges_are_listed_oldest_first(store: TrackingStore, make: Make) -> None:
    """There is no cursor, so exchanges that commit late are listed too."""
    late, early = make(5), make(1)
    store.exchanges.add([late, early])
    assert store.sampling.list_undecided(1) == [early]

    store.sampling.assign_tasks([SamplingDecision(early.id, 1.0, "uniform")], {"relevancy": "f1"})
    even_earlier = make(0)
    store.exchanges.add([even_earlier])

    assert store.sampling.list_undecided(10) == [even_earlier, late]
    assert store.answers.counts().undecided == 2


def test_sampling_decision_creates_pending_and_skipped_tasks(store: TrackingStore, make: Make) -> None:
    """Tasks are pending for the scorers that run and skipped with a reason for the others."""
    exchange = make()
    store.exchanges.add([exchange])

    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.25, "uniform", {"b": UnscoredReason.NOT_SAMPLED})], {"a": "f1", "b": "f2"}
    )

    assert store.trends.coverage() == [
        Coverage(service="shop", route="ask", scorer="a", seen=1, pending=1),
        Coverage(service="shop", route="ask", scorer="b", seen=1, skipped={"not_sampled": 1}),
    ]
    assert (store.answers.counts().pending, store.answers.counts().skipped) == (1, 1)


def test_equal_decisions_are_written_together(store: TrackingStore, make: Make) -> None:
    """With a statement for each exchange, PostgreSQL's server needs a fifth more CPU time."""
    exchanges = [make(minute) for minute in range(20)]
    store.exchanges.add(exchanges)
    probabilities = [0.5] * 17 + [0.1, 0.2, 0.3]
    written: list[Any] = []

    def record(*call: Any) -> None:
        if call[2].startswith("UPDATE exchange"):
            written.extend(call[3] if call[5] else [call[3]])

    event.listen(engine_of(store), "before_cursor_execute", record)
    pairs = zip(exchanges, probabilities, strict=True)
    store.sampling.assign_tasks([SamplingDecision(one.id, value, "sampled") for one, value in pairs], {"a": "f1"})

    assert len(written) == 4
    found = store.answers.get_exchanges([one.id for one in exchanges])
    assert [found[one.id].sampling_probability for one in exchanges] == probabilities


def test_repeating_a_sampling_decision_changes_nothing(store: TrackingStore, make: Make) -> None:
    """A batch can be retried after a lost commit; the first probability is kept."""
    exchange = make()
    store.exchanges.add([exchange])
    for probability in (0.5, 1.0):
        store.sampling.assign_tasks([SamplingDecision(exchange.id, probability, "uniform")], {"a": "f1"})
        store.sampling.assign_tasks([SamplingDecision(exchange.id, probability, "uniform")], {"a": "f1"})

    assert store.trends.coverage() == [Coverage(service="shop", route="ask", scorer="a", seen=1, pending=1)]


def test_sampling_with_a_new_fingerprint_creates_a_new_task(store: TrackingStore, make: Make) -> None:
    """A changed scorer can score an exchange again."""
    exchange = make()
    store.exchanges.add([exchange])
    for fingerprint in ("f1", "f2"):
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "uniform")], {"a": fingerprint})

    assert store.answers.counts().pending == 2


def test_a_second_decision_on_an_exchange_adds_no_tasks(store: TrackingStore, make: Make) -> None:
    """The stored sampling probability would not apply to the new tasks."""
    exchange = make()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.1, "not_sampled", {"a": UnscoredReason.NOT_SAMPLED})], {"a": "f1"}
    )
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.5, "sampled")], {"a": "f2", "b": "f1"})

    assert (store.answers.counts().pending, [coverage.scorer for coverage in store.trends.coverage()]) == (0, ["a"])


def test_sampling_decision_on_a_deleted_exchange_is_ignored(store: TrackingStore) -> None:
    """Such a decision creates no tasks and changes no counts."""
    store.sampling.assign_tasks([SamplingDecision("0" * 32, 1.0, "uniform")], {"a": "f1"})

    assert (store.answers.counts().pending, store.trends.coverage()) == (0, [])


def test_a_large_batch_of_sampling_decisions_is_split(store: TrackingStore, make: Make) -> None:
    """A batch may need more parameters than one statement allows."""
    exchanges = [make(number / 100) for number in range(1200)]
    store.exchanges.add(exchanges)

    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "uniform") for exchange in exchanges], {"a": "f1", "b": "f2"}
    )

    assert store.answers.counts().pending == 2400
    assert len(store.queue.claim_tasks("me", {"a": "f1", "b": "f2"}, limit=1000, lease=timedelta(seconds=9))) == 1000
    assert store.sampling.list_undecided(10) == []


def test_the_sampler_lease_has_one_owner_until_it_expires(store: TrackingStore, clock: Any) -> None:
    """The owner can renew its lease; an expired lease goes to the next process that requests it."""
    ttl = timedelta(seconds=10)
    assert store.workers.acquire_lease("sampler", "a", ttl=ttl)
    assert not store.workers.acquire_lease("sampler", "b", ttl=ttl)
    clock.advance(seconds=9)
    assert store.workers.acquire_lease("sampler", "a", ttl=ttl)
    clock.advance(seconds=9)
    assert not store.workers.acquire_lease("sampler", "b", ttl=ttl)
    assert store.workers.acquire_lease("other", "b", ttl=ttl)
    clock.advance(seconds=1)

    assert store.workers.acquire_lease("sampler", "b", ttl=ttl)
    assert not store.workers.acquire_lease("sampler", "a", ttl=ttl)
