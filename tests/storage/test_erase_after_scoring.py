"""Erasure of text as soon as it is scored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from germane.annotation import Feedback
from germane.exchange import Context, Exchange, Message
from germane.score import Score, UnscoredReason
from germane.storage import PruneResult, SamplerStep, SamplingDecision, TrackingStore
from germane.testing import transaction

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SECRET = "zanzibar"
SCORERS = {"faithfulness": "f2", "relevancy": "f1"}


@pytest.fixture
def erasing(migrated_url: str, clock: Any) -> Iterator[Callable[[], TrackingStore]]:
    """A function that opens stores that erase scored text."""
    opened: list[TrackingStore] = []

    def open_one() -> TrackingStore:
        opened.append(TrackingStore(migrated_url, clock=clock, erase_after_scoring=True))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def secret(make: Make) -> Callable[..., Exchange]:
    """A function that creates exchanges with one secret word in every text."""

    def full(minutes: float = 0, **given: Any) -> Exchange:
        texts = {"question": SECRET, "answer": SECRET, "error": SECRET}
        return make(minutes, contexts=(Context(SECRET),), history=(Message("user", SECRET),), **texts | given)

    return full


def results(store: TrackingStore, owner: str = "me", **scorers: str) -> list[tuple[Any, Score]]:
    claims = store.queue.claim_tasks(owner, scorers or SCORERS, limit=99, lease=LEASE)
    return [
        (
            task,
            Score(
                scorer=task.scorer, fingerprint="f", value=0.5, explanation=SECRET, details={"text": SECRET, "words": 3}
            ),
        )
        for claim in claims
        for task in claim.tasks
    ]


def drawn(store: TrackingStore, *exchanges: Exchange) -> None:
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], SCORERS)


def places_of_secret(store: TrackingStore) -> list[str]:
    found = []
    for table in ("exchange", "scoring_task", "score", "feedback"):
        with transaction(store, read_only=True) as connection:
            rows = connection.execute(text(f"SELECT * FROM {table}")).mappings()
            found += [f"{table}.{name}" for row in rows for name, value in row.items() if SECRET in str(value)]
    return found


def test_text_is_erased_when_the_last_score_is_written(
    erasing: Callable[[], TrackingStore], secret: Make, clock: Any
) -> None:
    """Text is not erased earlier, because the other scorer needs it. The returned score, which is exported on spans,
    keeps its text."""
    store = erasing()
    exchange = secret()
    drawn(store, exchange)
    store.labels.add_feedback(
        [Feedback(id="1", exchange_id=exchange.id, score=0.0, comment=SECRET, created_at=clock.now)]
    )
    first, last = results(store)

    assert store.queue.complete_tasks("me", [first]) == [first]
    assert store.answers.list_exchanges() == [exchange]

    assert store.queue.complete_tasks("me", [last]) == [last]
    assert places_of_secret(store) == []
    assert [one.value for one in store.answers.get_scores([exchange.id])[exchange.id]] == [0.5, 0.5]
    assert store.answers.get_scores([exchange.id])[exchange.id][0].details == {"words": 3}


def test_explanations_are_never_stored_if_text_is_erased_after_scoring(
    erasing: Callable[[], TrackingStore], secret: Make
) -> None:
    """No explanation is written, even while the exchange waits for another scorer."""
    store = erasing()
    drawn(store, secret())
    first, _ = results(store)
    store.queue.complete_tasks("me", [first])

    assert not any(place.startswith(("score", "scoring_task")) for place in places_of_secret(store))


def test_text_is_erased_after_scoring_fails(erasing: Callable[[], TrackingStore], secret: Make) -> None:
    """The error may quote the answer, and is erased too."""
    store = erasing()
    drawn(store, secret())
    failed = [
        (task, Score(scorer=task.scorer, fingerprint="f", reason=UnscoredReason.UNPARSABLE, explanation=SECRET))
        for task, _ in results(store)
    ]

    store.queue.complete_tasks("me", failed)

    assert places_of_secret(store) == []


def test_text_of_skipped_exchanges_is_erased_immediately(erasing: Callable[[], TrackingStore], secret: Make) -> None:
    """The text is kept if another scorer still needs it."""
    store = erasing()
    skipped, drawn_ = secret(0), secret(1)
    store.exchanges.add([skipped, drawn_])
    skip = dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED)
    one = {"relevancy": UnscoredReason.FILTERED}
    store.sampling.assign_tasks(
        [SamplingDecision(skipped.id, 0.5, "not_sampled", skip), SamplingDecision(drawn_.id, 0.5, "sampled", one)],
        SCORERS,
    )

    assert [found.question for found in store.answers.list_exchanges()] == [SECRET, None]


def test_text_of_skipped_candidates_is_erased(erasing: Callable[[], TrackingStore], secret: Make) -> None:
    """A candidate keeps its text until it is skipped."""
    store = erasing()
    exchange = secret()
    store.exchanges.add([exchange])
    store.workers.acquire_lease("sampler", "me", ttl=LEASE)
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "candidate")], SCORERS)
    assert store.answers.list_exchanges() == [exchange]

    assert store.pool.skip_candidates(
        SamplerStep("sampler", "me", "here"), {exchange.id: 0.5}, UnscoredReason.NOT_SAMPLED
    )

    assert places_of_secret(store) == []


def test_feedback_on_erased_exchanges_does_not_change_sampling_weights(
    erasing: Callable[[], TrackingStore], secret: Make
) -> None:
    """Skipped exchanges have lost their text and are not scored; candidates are."""
    store = erasing()
    picked, candidate = secret(0), secret(1)
    store.exchanges.add([picked, candidate])
    store.sampling.assign_tasks(
        [SamplingDecision(picked.id, 0.25, "sampled"), SamplingDecision(candidate.id, None, "candidate")], SCORERS
    )

    assert store.sampling.apply_feedback([], [picked.id, candidate.id], SCORERS) == 2

    store.queue.complete_tasks("me", results(store))
    with transaction(store, read_only=True) as connection:
        rows = connection.execute(text("SELECT DISTINCT exchange_id, sampling_probability FROM score")).all()
    assert {tuple(row) for row in rows} == {(picked.id, 0.25), (candidate.id, 1.0)}


def test_text_is_erased_if_two_processes_finish_its_tasks_concurrently(
    erasing: Callable[[], TrackingStore], secret: Make
) -> None:
    """The process that commits later detects that no task remains."""
    first, second = erasing(), erasing()
    drawn(first, *(secret(place) for place in range(20)))
    done = [(first, "a", results(first, "a", relevancy="f1")), (second, "b", results(second, "b", faithfulness="f2"))]
    barrier = threading.Barrier(2)

    def complete(store: TrackingStore, owner: str, found: list[tuple[Any, Score]]) -> None:
        for one in found:
            barrier.wait(30)
            store.queue.complete_tasks(owner, [one])

    threads = [threading.Thread(target=complete, args=each) for each in done]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert first.answers.counts().done == 40
    assert places_of_secret(first) == []


def test_pruning_erases_text_scored_before_the_setting_was_enabled(
    erasing: Callable[[], TrackingStore], store: TrackingStore, secret: Make, clock: Any
) -> None:
    """Undecided exchanges and those with pending tasks keep their text."""
    scored, waiting, undecided = secret(0), secret(1), secret(2)
    drawn(store, scored)
    store.queue.complete_tasks("me", results(store))
    drawn(store, waiting)
    store.exchanges.add([undecided])

    assert erasing().retention.prune() == PruneResult(texts=1)
    assert [found.question for found in store.answers.list_exchanges()] == [SECRET, SECRET, None]


def test_text_is_kept_by_default(store: TrackingStore, secret: Make) -> None:
    """Text is kept until the retention period ends."""
    drawn(store, secret())
    store.queue.complete_tasks("me", results(store))

    assert "exchange.answer" in places_of_secret(store)
    assert "score.explanation" in places_of_secret(store)
