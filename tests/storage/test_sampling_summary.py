"""How exchanges are sampled and kept in fact is told by the newest of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from germane.exchange import Exchange
from germane.score import Reason
from germane.storage import Decision, Sampled, Store

Make = Callable[..., Exchange]


def test_an_empty_database_tells_nothing(store: Store) -> None:
    """Nothing was sampled."""
    found = store.manner()

    assert (found.n, found.since, found.sampled) == (0, None, [])


def test_reasons_are_counted_with_their_probabilities(store: Store, make: Make) -> None:
    """The most common first; what nobody has decided on is among them, and so is what keeps no text."""
    exchanges = [make(number) for number in range(5)] + [make(9, question=None, answer=None)]
    store.add(exchanges)
    drawn = [Decision(one.id, 0.25 + 0.25 * number, "drawn") for number, one in enumerate(exchanges[:3])]
    store.assign([*drawn, Decision(exchanges[3].id, 0.5, "not_drawn", {"a": Reason.NOT_DRAWN})], {"a": "f1"})
    found = store.manner()

    assert found.sampled == [
        Sampled(reason="drawn", n=3, lowest=0.25, highest=0.75),
        Sampled(reason="", n=2, lowest=None, highest=None),
        Sampled(reason="not_drawn", n=1, lowest=0.5, highest=0.5),
    ]
    assert (found.n, found.without_text, found.erased) == (6, 1, 0)
    assert found.since == exchanges[0].started_at


def test_only_the_newest_are_looked_at(store: Store, make: Make) -> None:
    """However many there are."""
    exchanges = [make(number) for number in range(9)]
    store.add(exchanges)
    found = store.manner(newest=4)

    assert (found.n, found.since) == (4, exchanges[5].started_at)


def test_erased_text_is_told_apart_from_text_that_was_never_kept(store: Store, make: Make, clock: Any) -> None:
    """It was there, and has gone when its time had come."""
    store.add([make(0), make(1, question=None, answer=None)])
    store.assign([Decision(one.id, 1.0, "drawn") for one in store.unsampled(9)], {})
    store.prune(texts_before=clock.now - timedelta(minutes=59, seconds=30))
    found = store.manner()

    assert (found.erased, found.without_text) == (1, 1)


def test_the_age_of_what_waits_is_known_by_scorer(store: Store, make: Make, sampled: Any, clock: Any) -> None:
    """Of a scorer for which nothing is to be scored it is unknown; the revision of the tables is told too."""
    sampled(make(0), scorers={"a": "f1"})
    began = clock.now
    clock.advance(minutes=5)
    sampled(make(1), scorers={"a": "f1", "b": "f2"})

    assert {one.scorer: one.since for one in store.outstanding().tasks} == {"a": began, "b": clock.now}
    assert store.revision() == "0006"
