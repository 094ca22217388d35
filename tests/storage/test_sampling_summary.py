"""How exchanges are sampled and kept in fact is told by the newest of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import SamplingDecision, SamplingReasonCount, TrackingStore

Make = Callable[..., Exchange]


def test_an_empty_database_tells_nothing(store: TrackingStore) -> None:
    """Nothing was sampled."""
    found = store.sampling.load_summary()

    assert (found.n, found.since, found.reasons) == (0, None, [])


def test_reasons_are_counted_with_their_probabilities(store: TrackingStore, make: Make) -> None:
    """The most common first; what nobody has decided on is among them, and so is what keeps no text."""
    exchanges = [make(number) for number in range(5)] + [make(9, question=None, answer=None)]
    store.exchanges.add(exchanges)
    drawn = [SamplingDecision(one.id, 0.25 + 0.25 * number, "sampled") for number, one in enumerate(exchanges[:3])]
    store.sampling.assign_tasks(
        [*drawn, SamplingDecision(exchanges[3].id, 0.5, "not_sampled", {"a": UnscoredReason.NOT_SAMPLED})], {"a": "f1"}
    )
    found = store.sampling.load_summary()

    assert found.reasons == [
        SamplingReasonCount(reason="sampled", n=3, min_probability=0.25, max_probability=0.75),
        SamplingReasonCount(reason="", n=2, min_probability=None, max_probability=None),
        SamplingReasonCount(reason="not_sampled", n=1, min_probability=0.5, max_probability=0.5),
    ]
    assert (found.n, found.without_text, found.erased) == (6, 1, 0)
    assert found.since == exchanges[0].started_at


def test_only_the_newest_are_looked_at(store: TrackingStore, make: Make) -> None:
    """However many there are."""
    exchanges = [make(number) for number in range(9)]
    store.exchanges.add(exchanges)
    found = store.sampling.load_summary(newest=4)

    assert (found.n, found.since) == (4, exchanges[5].started_at)


def test_erased_text_is_told_apart_from_text_that_was_never_kept(store: TrackingStore, make: Make, clock: Any) -> None:
    """It was there, and has gone when its time had come."""
    store.exchanges.add([make(0), make(1, question=None, answer=None)])
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in store.sampling.list_undecided(9)], {}
    )
    store.retention.prune(texts_before=clock.now - timedelta(minutes=59, seconds=30))
    found = store.sampling.load_summary()

    assert (found.erased, found.without_text) == (1, 1)


def test_the_age_of_what_waits_is_known_by_scorer(store: TrackingStore, make: Make, sampled: Any, clock: Any) -> None:
    """Of a scorer for which nothing is to be scored it is unknown; the revision of the tables is told too."""
    sampled(make(0), scorers={"a": "f1"})
    began = clock.now
    clock.advance(minutes=5)
    sampled(make(1), scorers={"a": "f1", "b": "f2"})

    assert {one.scorer: one.waiting_since for one in store.queue.load_outstanding().tasks} == {
        "a": began,
        "b": clock.now,
    }
    assert store.revision() == "0007"
