"""Pruning while other threads capture, sample, score, record and import."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from tests.exports import load_records

from germane.annotation import Feedback, RecordedScore
from germane.exchange import Exchange
from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.transfer.record import ExchangeRecord
from germane.testing import transaction

Make = Callable[..., Exchange]
ROUNDS = 12
SCORERS = {"faithfulness": "f2", "relevancy": "f1"}
LEASE = timedelta(seconds=60)


class Crew:
    """Threads that each repeat one operation on their own store, as separate processes would."""

    def __init__(self, url: str, make: Make, clock: Any) -> None:
        self.url, self.make, self.clock = url, make, clock
        self.problems: list[BaseException] = []
        self.captured: list[str] = []
        self.exported: list[ExchangeRecord] = []

    def run(self, *jobs: Callable[[TrackingStore, random.Random], None]) -> None:
        threads = [threading.Thread(target=self._repeat, args=(job, seed)) for seed, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert self.problems == []

    def _repeat(self, job: Callable[[TrackingStore, random.Random], None], seed: int) -> None:
        store, chance = (
            TrackingStore(self.url, clock=self.clock, erase_after_scoring=bool(seed % 2)),
            random.Random(seed),
        )
        try:
            for _ in range(ROUNDS):
                job(store, chance)
        except BaseException as problem:  # noqa: BLE001 - reported by the test, because a thread cannot fail it
            self.problems.append(problem)
        finally:
            store.close()

    def capture(self, store: TrackingStore, chance: random.Random) -> None:
        ages = [chance.choice((0.5, 40, 500)) + chance.random() for _ in range(8)]
        exchanges = [
            self.make(started_at=self.clock.now - timedelta(days=age), user=f"u{number % 4}")
            for number, age in enumerate(ages)
        ]
        store.exchanges.add(exchanges)
        self.captured += [one.id for one in exchanges]

    def decide(self, store: TrackingStore, _: random.Random) -> None:
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "sampled") for one in store.sampling.list_undecided(50)], SCORERS
        )

    def score(self, store: TrackingStore, chance: random.Random) -> None:
        owner = str(chance)
        claims = store.queue.claim_tasks(owner, SCORERS, limit=10, lease=LEASE)
        found = [
            (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5, explanation="said"))
            for claim in claims
            for task in claim.tasks
        ]
        chance.shuffle(found)
        store.queue.complete_tasks(owner, found[::2])
        store.queue.complete_tasks(owner, found[1::2])

    def tell(self, store: TrackingStore, chance: random.Random) -> None:
        for _ in range(4):
            if self.captured:
                of = chance.choice(self.captured)
                name = f"mine {chance.random()}"
                store.exchanges.record_scores(
                    [RecordedScore(exchange_id=of, name=name, value=0.5, recorded_at=self.clock.now)]
                )
                fields = {"score": 0.0, "comment": "said", "created_at": self.clock.now}
                store.labels.add_feedback([Feedback(id=name, exchange_id=of, user="u1", **fields)])

    def prune(self, store: TrackingStore, _: random.Random) -> None:
        now = self.clock.now
        store.retention.prune(texts_before=now - timedelta(days=30), before=now - timedelta(days=400))

    def bring(self, store: TrackingStore, _: random.Random) -> None:
        """Import a recent export, part of which has been deleted since."""
        store.transfer.restore_records(self.exported)
        self.exported = load_records(store, limit=40)

    def forget(self, store: TrackingStore, _: random.Random) -> None:
        store.retention.forget(user="u2")


@pytest.mark.slow
def test_pruning_during_concurrent_writes_leaves_no_orphaned_rows(migrated_url: str, make: Make, clock: Any) -> None:
    """No score or task lacks its exchange, no text remains in erased exchanges, and counts are consistent."""
    crew = Crew(migrated_url, make, clock)
    crew.run(
        crew.capture, crew.decide, crew.score, crew.score, crew.tell, crew.prune, crew.forget, crew.prune, crew.bring
    )
    store = TrackingStore(migrated_url, clock=clock)
    for job in (crew.decide, crew.score, crew.prune, crew.forget):
        crew.run(job)

    assert loose(store, "scoring_task") == loose(store, "score") == 0
    assert number(store, "SELECT count(*) FROM exchange WHERE erased_at IS NOT NULL AND question IS NOT NULL") == 0
    assert number(store, "SELECT count(*) FROM exchange WHERE \"user\" = 'u2'") == 0
    done = number(store, "SELECT count(*) FROM scoring_task WHERE state = 'done'")
    assert done == store.answers.counts().scores > 0
    for one in store.trends.coverage():
        assert one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
        assert one.pending == 0
    store.close()


def loose(store: TrackingStore, table: str) -> int:
    return number(store, f"SELECT count(*) FROM {table} WHERE exchange_id NOT IN (SELECT id FROM exchange)")


def number(store: TrackingStore, query: str) -> int:
    with transaction(store, read_only=True) as connection:
        return int(connection.execute(text(query)).scalar_one())
