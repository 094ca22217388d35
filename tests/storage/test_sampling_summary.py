"""Sampling summary: how the newest exchanges were sampled and kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.queue.health import SamplingReasonCount

Make = Callable[..., Exchange]


def test_empty_database_has_an_empty_summary(store: TrackingStore) -> None:
    """The summary has no exchanges and no reasons."""
    summary = store.health.summarize_sampling()

    assert (summary.n, summary.since, summary.reasons) == (0, None, [])


def test_sampling_reasons_are_counted_with_their_probabilities(store: TrackingStore, make: Make) -> None:
    """The most frequent reason comes first; undecided exchanges and those without text are included."""
    exchanges = [make(number) for number in range(5)] + [make(9, question=None, answer=None)]
    store.exchanges.add(exchanges)
    sampled_decisions = [
        SamplingDecision(one.id, 0.25 + 0.25 * number, "sampled") for number, one in enumerate(exchanges[:3])
    ]
    store.sampling.assign_tasks(
        [*sampled_decisions, SamplingDecision(exchanges[3].id, 0.5, "not_sampled", {"a": UnscoredReason.NOT_SAMPLED})],
        {"a": "f1"},
    )
    summary = store.health.summarize_sampling()

    assert summary.reasons == [
        SamplingReasonCount(reason="sampled", n=3, min_probability=0.25, max_probability=0.75),
        SamplingReasonCount(reason="", n=2, min_probability=None, max_probability=None),
        SamplingReasonCount(reason="not_sampled", n=1, min_probability=0.5, max_probability=0.5),
    ]
    assert (summary.n, summary.without_text, summary.erased) == (6, 1, 0)
    assert summary.since == exchanges[0].started_at


def test_summary_covers_only_the_newest_exchanges(store: TrackingStore, make: Make) -> None:
    """The limit bounds the work on large databases."""
    exchanges = [make(number) for number in range(9)]
    store.exchanges.add(exchanges)
    summary = store.health.summarize_sampling(newest=4)

    assert (summary.n, summary.since) == (4, exchanges[5].started_at)


def test_erased_text_and_unstored_text_are_counted_separately(store: TrackingStore, make: Make, clock: Any) -> None:
    """An exchange whose text was never stored does not count as erased."""
    store.exchanges.add([make(0), make(1, question=None, answer=None)])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in store.sampling.list_undecided(9)], {}
    )
    store.retention.prune(texts_before=clock.now - timedelta(minutes=59, seconds=30))
    summary = store.health.summarize_sampling()

    assert (summary.erased, summary.without_text) == (1, 1)


def test_backlog_age_is_reported_per_scorer(store: TrackingStore, make: Make, sampled: Any, clock: Any) -> None:
    """Each scorer reports its oldest pending task."""
    sampled(make(0), scorers={"a": "f1"})
    began = clock.now
    clock.advance(minutes=5)
    sampled(make(1), scorers={"a": "f1", "b": "f2"})

    assert {task.scorer: task.waiting_since for task in store.backlog.load_outstanding().tasks} == {
        "a": began,
        "b": clock.now,
    }
