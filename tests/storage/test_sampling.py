"""Every captured exchange is decided on once, and counted for every scorer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import Coverage, SamplingDecision, TrackingStore

Make = Callable[..., Exchange]


def test_unsampled_exchanges_come_oldest_first_until_they_are_decided_on(store: TrackingStore, make: Make) -> None:
    """No cursor: what commits late is found too."""
    late, early = make(5), make(1)
    store.exchanges.add([late, early])
    assert store.sampling.list_undecided(1) == [early]

    store.sampling.assign_tasks([SamplingDecision(early.id, 1.0, "uniform")], {"relevancy": "f1"})
    even_earlier = make(0)
    store.exchanges.add([even_earlier])

    assert store.sampling.list_undecided(10) == [even_earlier, late]
    assert store.answers.counts().undecided == 2


def test_a_decision_makes_tasks_and_counts(store: TrackingStore, make: Make) -> None:
    """Pending for the scorers that score it, skipped with a reason for the others."""
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


def test_deciding_again_changes_nothing(store: TrackingStore, make: Make) -> None:
    """A batch that was committed without our knowing may be tried again, and the first probability stands."""
    exchange = make()
    store.exchanges.add([exchange])
    for probability in (0.5, 1.0):
        store.sampling.assign_tasks([SamplingDecision(exchange.id, probability, "uniform")], {"a": "f1"})
        store.sampling.assign_tasks([SamplingDecision(exchange.id, probability, "uniform")], {"a": "f1"})

    assert store.trends.coverage() == [Coverage(service="shop", route="ask", scorer="a", seen=1, pending=1)]


def test_a_new_fingerprint_is_a_new_task(store: TrackingStore, make: Make) -> None:
    """An exchange may be scored anew by a changed scorer."""
    exchange = make()
    store.exchanges.add([exchange])
    for fingerprint in ("f1", "f2"):
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "uniform")], {"a": fingerprint})

    assert store.answers.counts().pending == 2


def test_a_decision_that_comes_too_late_adds_nothing(store: TrackingStore, make: Make) -> None:
    """What was decided on otherwise has a probability that is not that of these tasks."""
    exchange = make()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.1, "not_sampled", {"a": UnscoredReason.NOT_SAMPLED})], {"a": "f1"}
    )
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.5, "sampled")], {"a": "f2", "b": "f1"})

    assert (store.answers.counts().pending, [one.scorer for one in store.trends.coverage()]) == (0, ["a"])


def test_a_decision_on_what_is_not_there_is_ignored(store: TrackingStore) -> None:
    """An exchange may have been erased since."""
    store.sampling.assign_tasks([SamplingDecision("0" * 32, 1.0, "uniform")], {"a": "f1"})

    assert (store.answers.counts().pending, store.trends.coverage()) == (0, [])


def test_many_decisions_fit_into_one_call(store: TrackingStore, make: Make) -> None:
    """More than a database takes parameters in one statement."""
    exchanges = [make(number / 100) for number in range(1200)]
    store.exchanges.add(exchanges)

    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "uniform") for one in exchanges], {"a": "f1", "b": "f2"})

    assert store.answers.counts().pending == 2400
    assert len(store.queue.claim_tasks("me", {"a": "f1", "b": "f2"}, limit=1000, lease=timedelta(seconds=9))) == 1000
    assert store.sampling.list_undecided(10) == []


def test_one_owner_is_elected_until_its_lease_ends(store: TrackingStore, clock: Any) -> None:
    """Renewing keeps it; a lease that has run out goes to whoever asks."""
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
