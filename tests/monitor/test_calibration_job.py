"""The calibration job: one process calibrates the embedders in use, and all processes use the calibrations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from germane.annotation import RecordedScore
from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Exchange
from germane.monitor.jobs.calibration import CHECK_INTERVAL, MAX_AGE, CalibrationJob
from germane.monitor.loop.leases import LeaderLease
from germane.score import Score
from germane.scorers import MIN_CALIBRATION_EXCHANGES, QuestionAnswerSimilarity
from germane.scorers.base.protocols import Vectors
from germane.storage import CalibrationCache, SamplingDecision, TrackingStore
from germane.testing import FakeEmbedder

Make = Callable[..., Exchange]
NAME = "question_answer_similarity"
NOW = datetime.now(UTC)


class Time:
    """A clock that the test advances."""

    now = NOW

    def __call__(self) -> datetime:
        return self.now


class Process:
    """One process's calibration job."""

    def __init__(
        self, store: TrackingStore, time: Time, threads: DaemonThreadPool, name: str, embedder: FakeEmbedder
    ) -> None:
        self.embedder = embedder
        self.cache = CalibrationCache(store)
        self.time = time
        self.job = CalibrationJob(
            store,
            [QuestionAnswerSimilarity(self.embedder)],
            self.cache,
            leader=LeaderLease(store, "sampler", name, ttl=timedelta(days=100), clock=time),
            thread_pool=threads,
            clock=time,
        )

    def check(self, after: timedelta = CHECK_INTERVAL) -> int:
        """Let time pass, run the job, and return the number of requests that the embedder has received so far."""
        self.time.now += after
        asyncio.run(self.job.run())
        return len(self.embedder.calls)


@pytest.fixture
def threads() -> Iterator[DaemonThreadPool]:
    """A thread pool for database calls."""
    pool = DaemonThreadPool(1, name="test-calibration")
    yield pool
    pool.close()
    assert pool.join(60)


@pytest.fixture
def start(store: TrackingStore, threads: DaemonThreadPool) -> Callable[..., Process]:
    """Start the job of a process."""
    time = Time()
    return lambda name="me", embedder=None: Process(store, time, threads, name, embedder or FakeEmbedder())


@pytest.fixture
def score(store: TrackingStore, new_exchange: Make) -> Callable[[int], None]:
    """Capture and score a number of exchanges with different questions."""
    numbers = iter(range(1000))

    def score(count: int, *, recorded: bool = False) -> None:
        exchanges = [new_exchange(question=f"w{number} is") for _, number in zip(range(count), numbers, strict=False)]
        store.exchanges.add(exchanges)
        if recorded:
            store.exchanges.record_scores(
                [RecordedScore(exchange_id=each.id, name=NAME, value=0.5, recorded_at=NOW) for each in exchanges]
            )
            return
        fingerprints = {NAME: "f1"}
        store.sampling.assign_tasks([SamplingDecision(each.id, 1.0, "sampled") for each in exchanges], fingerprints)
        claims = store.queue.claim_tasks("me", fingerprints, limit=count, lease=timedelta(minutes=1))
        score = Score(scorer=NAME, fingerprint="f1", value=0.5, embedder="fake-embedder")
        store.queue.complete_tasks("me", [(task, score) for claim in claims for task in claim.tasks])

    return score


def test_an_embedder_is_calibrated_as_soon_as_there_are_enough_exchanges(
    store: TrackingStore, start: Callable[..., Process], score: Callable[..., None]
) -> None:
    """Fifty scored exchanges with different questions are needed. Labels change without a restart."""
    process = start()
    assert process.check(after=timedelta(minutes=9)) == 0
    score(MIN_CALIBRATION_EXCHANGES - 1)
    assert process.check() == 0

    score(1)
    assert process.check() > 0

    measured = process.cache["fake-embedder", NAME]
    assert (measured.n, measured.made_at) == (MIN_CALIBRATION_EXCHANGES, process.time.now)
    assert measured in store.labels.list_calibrations()


def test_exchanges_with_only_recorded_scores_are_not_embedded_for_calibration(
    start: Callable[..., Process], score: Callable[..., None]
) -> None:
    """Filters and sample rates also limit the texts that the embedder receives."""
    process = start()
    score(100, recorded=True)

    assert process.check() == 0


def test_an_embedder_is_calibrated_again_after_a_week(
    start: Callable[..., Process], score: Callable[..., None]
) -> None:
    """Only one process measures, and not earlier. The other processes use its calibration."""
    leader, other = start(), start("other")
    score(60)
    requests = leader.check()
    assert requests > 0

    assert leader.check() == requests
    assert leader.check(after=MAX_AGE - 2 * CHECK_INTERVAL) == requests
    assert leader.check(after=2 * CHECK_INTERVAL) == 2 * requests
    assert other.check() == 0
    assert other.cache["fake-embedder", NAME] == leader.cache["fake-embedder", NAME]


def test_an_embedder_that_cannot_be_calibrated_is_reported(
    start: Callable[..., Process], score: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """An embedder that finds all texts equally similar gets no calibration, so there are no labels."""

    class Constant(FakeEmbedder):
        async def embed(self, texts: Any) -> Vectors:
            await super().embed(texts)
            return np.tile(np.eye(1, 8), (len(texts), 1))

    process = start(embedder=Constant())
    score(60)

    with caplog.at_level(logging.WARNING):
        process.check()

    assert "similarity is the same for all texts" in caplog.text
    assert ("fake-embedder", NAME) not in process.cache
