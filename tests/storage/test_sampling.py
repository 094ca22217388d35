"""Every captured exchange is decided on once, and counted for every scorer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from germane.exchange import Exchange
from germane.score import Reason
from germane.storage import Coverage, Decision, Store

Make = Callable[..., Exchange]


def test_unsampled_exchanges_come_oldest_first_until_they_are_decided_on(store: Store, make: Make) -> None:
    """No cursor: what commits late is found too."""
    late, early = make(5), make(1)
    store.add([late, early])
    assert store.unsampled(1) == [early]

    store.assign([Decision(early.id, 1.0, "uniform")], {"relevancy": "f1"})
    even_earlier = make(0)
    store.add([even_earlier])

    assert store.unsampled(10) == [even_earlier, late]
    assert store.counts().unsampled == 2


def test_a_decision_makes_tasks_and_counts(store: Store, make: Make) -> None:
    """Pending for the scorers that score it, skipped with a reason for the others."""
    exchange = make()
    store.add([exchange])

    store.assign([Decision(exchange.id, 0.25, "uniform", {"b": Reason.NOT_DRAWN})], {"a": "f1", "b": "f2"})

    assert store.coverage() == [
        Coverage(service="shop", route="ask", scorer="a", seen=1, pending=1),
        Coverage(service="shop", route="ask", scorer="b", seen=1, skipped={"not_drawn": 1}),
    ]
    assert (store.counts().pending, store.counts().skipped) == (1, 1)


def test_deciding_again_changes_nothing(store: Store, make: Make) -> None:
    """A batch that was committed without our knowing may be tried again, and the first probability stands."""
    exchange = make()
    store.add([exchange])
    for probability in (0.5, 1.0):
        store.assign([Decision(exchange.id, probability, "uniform")], {"a": "f1"})
        store.assign([Decision(exchange.id, probability, "uniform")], {"a": "f1"})

    assert store.coverage() == [Coverage(service="shop", route="ask", scorer="a", seen=1, pending=1)]


def test_a_new_fingerprint_is_a_new_task(store: Store, make: Make) -> None:
    """An exchange may be scored anew by a changed scorer."""
    exchange = make()
    store.add([exchange])
    for fingerprint in ("f1", "f2"):
        store.assign([Decision(exchange.id, 1.0, "uniform")], {"a": fingerprint})

    assert store.counts().pending == 2


def test_a_decision_that_comes_too_late_adds_nothing(store: Store, make: Make) -> None:
    """What was decided on otherwise has a probability that is not that of these tasks."""
    exchange = make()
    store.add([exchange])
    store.assign([Decision(exchange.id, 0.1, "not_drawn", {"a": Reason.NOT_DRAWN})], {"a": "f1"})
    store.assign([Decision(exchange.id, 0.5, "drawn")], {"a": "f2", "b": "f1"})

    assert (store.counts().pending, [one.scorer for one in store.coverage()]) == (0, ["a"])


def test_a_decision_on_what_is_not_there_is_ignored(store: Store) -> None:
    """An exchange may have been erased since."""
    store.assign([Decision("0" * 32, 1.0, "uniform")], {"a": "f1"})

    assert (store.counts().pending, store.coverage()) == (0, [])


def test_many_decisions_fit_into_one_call(store: Store, make: Make) -> None:
    """More than a database takes parameters in one statement."""
    exchanges = [make(number / 100) for number in range(1200)]
    store.add(exchanges)

    store.assign([Decision(one.id, 1.0, "uniform") for one in exchanges], {"a": "f1", "b": "f2"})

    assert store.counts().pending == 2400
    assert len(store.claim("me", {"a": "f1", "b": "f2"}, limit=1000, lease=timedelta(seconds=9))) == 1000
    assert store.unsampled(10) == []


def test_one_owner_is_elected_until_its_lease_ends(store: Store, clock: Any) -> None:
    """Renewing keeps it; a lease that has run out goes to whoever asks."""
    ttl = timedelta(seconds=10)
    assert store.elect("sampler", "a", ttl=ttl)
    assert not store.elect("sampler", "b", ttl=ttl)
    clock.advance(seconds=9)
    assert store.elect("sampler", "a", ttl=ttl)
    clock.advance(seconds=9)
    assert not store.elect("sampler", "b", ttl=ttl)
    assert store.elect("other", "b", ttl=ttl)
    clock.advance(seconds=1)

    assert store.elect("sampler", "b", ttl=ttl)
    assert not store.elect("sampler", "a", ttl=ttl)
