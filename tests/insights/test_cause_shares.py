"""Shares of answers with symptoms of a cause, before and since the onset of a drop."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from germane.exchange import Exchange
from germane.insights.cause_shares import CauseShare, load_cause_shares
from germane.score import NONCOMMITTAL, Score
from germane.storage import SamplingDecision, TrackingStore

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
ONSET = NOW - timedelta(hours=9, minutes=17)
PLACE = {"scorer": "answer_relevancy", "service": "shop", "route": "ask"}
CONTEXTS, SUPPORT, REFUSALS = (
    "Contexts of low relevance to the question",
    "Answers that the contexts support poorly",
    "Refusals",
)


def add(store: TrackingStore, values: Mapping[str, Sequence[float]], first: datetime, *, judge: str = "j") -> None:
    """Store answers on one route, one per minute, with a value of each scorer. A relevancy of 0 is a refusal."""
    count = len(next(iter(values.values())))
    ids = [UUID(int=random.Random(f"{first}{number}").getrandbits(128)).hex for number in range(count)]
    times = [first + timedelta(minutes=number) for number in range(count)]
    store.exchanges.add(
        [
            Exchange(
                id=id_, trace_id=id_, span_id=id_[:16], service="shop", route="ask", question="q", answer="a",
                started_at=at,
            )
            for id_, at in zip(ids, times, strict=True)
        ]
    )  # fmt: skip
    scorers = dict.fromkeys(values, judge)
    store.sampling.assign_tasks([SamplingDecision(id_, 1.0, "sampled") for id_ in ids], scorers)
    position = {id_: number for number, id_ in enumerate(ids)}
    claims = store.queue.claim_tasks("me", scorers, limit=count, lease=timedelta(days=1))
    results = []
    for task in (task for claim in claims for task in claim.tasks):
        value = values[task.scorer][position[task.exchange_id]]
        label = NONCOMMITTAL if value == 0 and task.scorer == "answer_relevancy" else None
        results.append((task, Score(scorer=task.scorer, fingerprint=judge, value=value, label=label, scored_at=NOW)))
    store.queue.complete_tasks("me", results)


def shares(store: TrackingStore) -> dict[str, CauseShare]:
    """Return the shares by symptom."""
    return {share.symptom: share for share in load_cause_shares(store, ONSET, NOW, **PLACE)}


@pytest.fixture
def filled(store: TrackingStore) -> TrackingStore:
    """Return a store in which the contexts became worse and refusals more frequent, but support did not change."""
    made = random.Random(7)
    for first, count, contexts, refused in ((ONSET - timedelta(days=1), 300, 0.0, 20), (ONSET, 100, 0.3, 40)):
        values = {
            "answer_relevancy": [0.0 if number < refused else 0.8 for number in range(count)],
            "context_relevance": [made.uniform(0.4, 0.9) - contexts for _ in range(count)],
            "faithfulness": [made.uniform(0.5, 1.0) for _ in range(count)],
        }
        add(store, values, first)
    return store


def test_a_symptom_is_a_score_in_the_lowest_tenth_of_the_week_before(filled: TrackingStore) -> None:
    found = shares(filled)
    assert set(found) == {CONTEXTS, SUPPORT, REFUSALS}
    contexts, support, refusals = found[CONTEXTS], found[SUPPORT], found[REFUSALS]
    assert contexts.below == pytest.approx(0.45, abs=0.02)
    assert contexts.before.share == pytest.approx(0.1, abs=0.02)
    assert contexts.since.share == pytest.approx(0.7, abs=0.1)
    assert (refusals.before.share, refusals.since.share) == pytest.approx((20 / 300, 40 / 100))
    assert (contexts.has_risen, support.has_risen, refusals.has_risen) == (True, False, True)
    assert (contexts.before.n, contexts.since.n) == (300, 100)
    for level in (contexts.before, support.since, refusals.since):
        assert level.interval[0] < level.share < level.interval[1]


def test_many_equal_scores_before_the_onset_are_not_a_symptom(store: TrackingStore) -> None:
    add(store, {"faithfulness": [1.0] * 60}, ONSET - timedelta(hours=5))
    add(store, {"faithfulness": [1.0] * 30 + [0.5] * 20}, ONSET)
    support = shares(store)[SUPPORT]
    assert (support.before.share, support.since.share) == pytest.approx((0.0, 0.4))


def test_scores_of_another_judge_or_fewer_than_twenty_are_not_compared(store: TrackingStore) -> None:
    add(store, {"faithfulness": [0.9] * 60}, ONSET - timedelta(days=2), judge="old")
    add(store, {"faithfulness": [0.9] * 19}, ONSET - timedelta(hours=5))
    add(store, {"faithfulness": [0.2] * 40}, ONSET)
    assert shares(store) == {}
    add(store, {"faithfulness": [0.9]}, ONSET - timedelta(minutes=5))
    assert shares(store)[SUPPORT].since.share == pytest.approx(1.0)
