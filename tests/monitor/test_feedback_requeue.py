"""Feedback rules: a low label causes the exchange to be scored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.annotation import Feedback
from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.sampling.eligibility import EligibilityChecker
from germane.monitor.sampling.sampler import FeedbackRequeue
from germane.score import UnscoredReason
from germane.settings import AlwaysScore, Settings
from germane.storage import SamplingDecision, TrackingStore

BELOW = [{"feedback_below": 0.5}]


class Plain:
    """A scorer that gives every answer a low score."""

    name, fingerprint, range = "plain", "f1", (0.0, 1.0)
    requires = frozenset({"question", "answer"})

    async def score(self, exchange: Exchange) -> float:
        return 0.1


def label(exchange: Exchange, score: float) -> Feedback:
    return Feedback(id=exchange.id, exchange_id=exchange.id, score=score, created_at=datetime.now(UTC))


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_low_label_requeues_the_labeled_exchange(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    attached: Any,
    new_exchange: Any,
    until: Any,
) -> None:
    """An unsampled exchange is scored after a low label, which any process may record. A high label has no effect."""
    disliked, liked, early = (new_exchange() for _ in range(3))
    store.exchanges.add([disliked, liked])
    store.labels.add_feedback([label(early, 0.0)])
    start(store, [Plain()], settings=settings(sample_rate=0.0, always_score=BELOW))
    until(lambda: store.answers.counts().skipped == 2)

    store.labels.add_feedback([label(disliked, 0.49), label(liked, 0.5)])
    store.exchanges.add([early])

    until(lambda: len(attached.calls) == 2)
    assert {scored.exchange.id for scored in store.answers.worst()} == {disliked.id, early.id}
    assert store.answers.counts().skipped_reasons == {UnscoredReason.NOT_SAMPLED: 1}
    (mean,) = store.trends.means(scorer="plain", since=None)
    assert mean.n == 2
    assert mean.mean == pytest.approx(0.1, abs=1e-9)
    (coverage,) = store.trends.coverage()
    assert (coverage.seen, coverage.scored, coverage.skipped) == (3, 2, {"not_sampled": 1})


def test_a_feedback_rule_can_have_additional_conditions(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
) -> None:
    """A low label counts only if the other conditions match."""
    there, elsewhere = new_exchange(route="support"), new_exchange(route="faq")
    store.exchanges.add([there, elsewhere])
    store.labels.add_feedback([label(there, 0.0), label(elsewhere, 0.0)])
    start(
        store, [Plain()], settings=settings(sample_rate=0.0, always_score=[{"feedback_below": 0.5, "routes": ["sup*"]}])
    )

    until(lambda: store.answers.counts().scores == 1 and not store.sampling.list_pending_feedback(5))

    assert [scored.exchange.id for scored in store.answers.worst()] == [there.id]


def test_labels_stay_pending_without_a_feedback_rule(
    store: TrackingStore,
    start: Callable[..., Monitor],
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Any,
) -> None:
    """They are processed after a later start with a feedback rule."""
    exchange = new_exchange()
    store.exchanges.add([exchange])
    store.labels.add_feedback([label(exchange, 0.0)])
    monitor = start(store, [Plain()], settings=settings(sample_rate=0.0))
    until(lambda: store.answers.counts().skipped == 1)
    sampled_at = monitor.status().jobs["sample"].last_run
    until(lambda: monitor.status().jobs["sample"].last_run != sampled_at)
    assert monitor.stop(60)
    assert len(store.sampling.list_pending_feedback(5)) == 1

    start(store, [Plain()], settings=settings(sample_rate=0.0, always_score=BELOW))

    until(lambda: store.answers.counts().scores == 1)
    assert store.sampling.list_pending_feedback(5) == []


def test_labels_stay_pending_when_another_process_has_taken_the_lease(
    store: TrackingStore, other_store: TrackingStore, new_exchange: Any
) -> None:
    """A process that does not know yet that its lease has expired requeues nothing, and reports nothing."""
    exchange = new_exchange()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.1, "not_sampled", {"plain": UnscoredReason.NOT_SAMPLED})], {"plain": "f1"}
    )
    store.labels.add_feedback([label(exchange, 0.0)])
    now = datetime.now(UTC)
    lease = LeaderLease(store, "sampler", "me", ttl=timedelta(minutes=1), clock=lambda: now)
    requeue = FeedbackRequeue(
        store,
        EligibilityChecker([Plain()], always_score=[AlwaysScore(feedback_below=0.5)]),
        {"plain": "f1"},
        leader=lease,
        thread_pool=DaemonThreadPool(1, name="germane-test"),
        lease_holder=("sampler", "me"),
    )
    assert lease.acquire()
    store.workers.acquire_lease("sampler", "me", ttl=timedelta())
    assert other_store.workers.acquire_lease("sampler", "another", ttl=timedelta(minutes=1))

    assert asyncio.run(requeue.run()) == 0

    assert [pending.exchange.id for pending in store.sampling.list_pending_feedback(5)] == [exchange.id]
    store.workers.acquire_lease("sampler", "another", ttl=timedelta())
    assert store.workers.acquire_lease("sampler", "me", ttl=timedelta(minutes=1))
    assert asyncio.run(requeue.run()) == 1
