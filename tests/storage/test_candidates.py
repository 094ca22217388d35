"""Candidates wait for their interval, are picked or passed over, and never vanish."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import (
    Coverage,
    HourCount,
    SamplerStep,
    SamplingDecision,
    ScoringTask,
    SelectedCandidate,
    TrackingStore,
)

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
MINE = ("sampler", "me")


def step(cursor: str = "here") -> SamplerStep:
    return SamplerStep(*MINE, cursor)


@pytest.fixture
def pooled(store: TrackingStore, make: Make) -> Callable[..., list[Exchange]]:
    """Writes exchanges, which become candidates, with the sampler's office held."""
    assert store.workers.acquire_lease(*MINE, ttl=LEASE)

    def write(count: int, **changes: Any) -> list[Exchange]:
        exchanges = [make(number, **changes) for number in range(count)]
        store.exchanges.add(exchanges)
        assert store.sampling.assign_tasks(candidates(exchanges), SCORERS, holder=MINE)
        return exchanges

    return write


def candidates(exchanges: list[Exchange]) -> list[SamplingDecision]:
    return [SamplingDecision(one.id, None, "candidate") for one in exchanges]


def rows(store: TrackingStore, what: str) -> list[Any]:
    with store._database.read() as connection:
        return [tuple(row) for row in connection.execute(text(what))]


def test_a_candidate_waits_and_cannot_be_claimed(store: TrackingStore, pooled: Callable[..., list[Exchange]]) -> None:
    """Its tasks are pending and counted so, nobody gets them, and it is read without its texts, oldest first."""
    exchanges = pooled(3, sampling_key=0.25, capture_probability=0.5)

    assert store.queue.claim_tasks("me", SCORERS, limit=9, lease=LEASE) == []
    assert store.sampling.count_in_progress() == 0
    assert [(one.seen, one.pending) for one in store.trends.coverage()] == [(3, 3), (3, 3)]
    found = store.sampling.list_candidates(9)
    assert [one.id for one in found] == [one.id for one in exchanges]
    assert [(one.sampling_key, one.capture_probability, one.proxy) for one in found] == [(0.25, 0.5, None)] * 3
    assert store.sampling.list_candidates(2) == found[:2]
    assert store.sampling.list_candidates(2, after=found[1]) == found[2:]


def test_picks_become_ready_and_are_counted(
    store: TrackingStore, pooled: Callable[..., list[Exchange]], clock: Any
) -> None:
    """They have probability and reason, their tasks can be claimed, and the day's budget row counts them once."""
    one, other = pooled(2)
    picks = [SelectedCandidate(one.id, 0.125, "route_floor")]

    assert store.sampling.select_candidates(step(), picks)
    assert store.sampling.select_candidates(step("there"), picks)

    assert rows(store, "SELECT id FROM exchange WHERE sampling_reason = 'route_floor' AND sampling_probability = 0.125")
    assert [claim.exchange.id for claim in store.queue.claim_tasks("me", SCORERS, limit=9, lease=LEASE)] == [one.id]
    assert store.sampling.count_in_progress() == 1
    assert store.quota.load_usage().selected == 1
    assert store.sampling.load_cursor("sampler") == "there"
    assert [waits.id for waits in store.sampling.list_candidates(9)] == [other.id]


@pytest.mark.parametrize(("reason", "probability"), [(UnscoredReason.NOT_SAMPLED, 0.25), (UnscoredReason.BUDGET, None)])
def test_what_is_passed_over_is_skipped(
    store: TrackingStore, pooled: Callable[..., list[Exchange]], reason: UnscoredReason, probability: float | None
) -> None:
    """Its tasks are skipped for the reason, the tally says so, and its probability is kept where there is one."""
    exchanges = pooled(600)

    assert store.sampling.skip_candidates(step(), {one.id: probability for one in exchanges}, reason)

    found = rows(store, "SELECT DISTINCT sampling_reason, sampling_probability FROM exchange")
    assert found == [(reason.value, probability)]
    assert store.sampling.list_candidates(9) == []
    assert [(one.seen, one.pending, one.skipped) for one in store.trends.coverage()] == [
        (600, 0, {reason.value: 600})
    ] * 2
    assert store.answers.counts().skipped_reasons == {reason.value: 1200}


def test_an_interval_that_has_ended_takes_nobody_in(
    store: TrackingStore, pooled: Callable[..., list[Exchange]]
) -> None:
    """A look that comes late changes nothing: tasks that wait for an interval that is over would wait for ever."""
    exchanges = pooled(2)
    store.sampling.select_candidates(step(), [SelectedCandidate(exchanges[0].id, 0.5, "uniform")])
    store.sampling.skip_candidates(step(), {exchanges[1].id: 0.5}, UnscoredReason.NOT_SAMPLED)

    store.sampling.assign_tasks(candidates(exchanges), SCORERS | {"later": "f3"}, holder=MINE)

    assert rows(store, "SELECT count(*) FROM scoring_task WHERE scorer = 'later'") == [(0,)]
    assert sorted(rows(store, "SELECT sampling_reason FROM exchange")) == [("not_sampled",), ("uniform",)]


def test_only_the_holder_of_the_office_writes(
    store: TrackingStore, pooled: Callable[..., list[Exchange]], make: Make, clock: Any
) -> None:
    """Whoever was taken for gone finds itself refused, and changes nothing."""
    exchanges = pooled(2)
    fresh = make(5)
    store.exchanges.add([fresh])
    clock.advance(hours=1)
    assert store.workers.acquire_lease("sampler", "another", ttl=LEASE)

    assert not store.sampling.assign_tasks(candidates([fresh]), SCORERS, holder=MINE)
    assert not store.sampling.select_candidates(step(), [SelectedCandidate(exchanges[0].id, 0.5, "uniform")])
    assert not store.sampling.skip_candidates(step(), {exchanges[0].id: 0.5}, UnscoredReason.NOT_SAMPLED)
    assert not store.sampling.save_cursor(step())

    assert len(store.sampling.list_candidates(9)) == 2
    assert (
        store.answers.counts().undecided,
        store.quota.load_usage().selected,
        store.sampling.load_cursor("sampler"),
    ) == (1, 0, None)


def test_what_a_rule_asks_for_counts_as_picked(store: TrackingStore, make: Make) -> None:
    """Once, where a scorer is to look at it: it takes of the budget."""
    exchanges = [make(number) for number in range(3)]
    store.workers.acquire_lease(*MINE, ttl=LEASE)
    store.exchanges.add(exchanges)
    nobody = dict.fromkeys(SCORERS, UnscoredReason.MISSING_INPUT)
    decisions = [
        SamplingDecision(exchanges[0].id, 1.0, "always"),
        SamplingDecision(exchanges[1].id, 1.0, "always", nobody),
    ]

    for _ in range(2):
        store.sampling.assign_tasks([*decisions, *candidates(exchanges[2:])], SCORERS, holder=MINE)

    assert store.quota.load_usage().selected == 1


def test_what_was_not_paid_for_does_not_count_as_picked(
    store: TrackingStore, pooled: Callable[..., list[Exchange]]
) -> None:
    """Once for an exchange, however many scorers it has: a pick does not look cheaper than it is."""
    exchanges = pooled(3)
    store.sampling.select_candidates(step(), [SelectedCandidate(one.id, 0.5, "uniform") for one in exchanges])
    claims = store.queue.claim_tasks("me", SCORERS, limit=2, lease=LEASE)
    reasons = (UnscoredReason.BUDGET, UnscoredReason.JUDGE_TIMEOUT)
    results = [
        (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, reason=reason))
        for claim, reason in zip(claims, reasons, strict=True)
        for task in claim.tasks
    ]

    for _ in range(2):
        store.queue.complete_tasks("me", results)

    assert store.quota.load_usage().selected == 2


def test_a_proxy_is_written_with_the_decision(store: TrackingStore, make: Make) -> None:
    """With the probability of having one; what is there stays where a decision has none."""
    one, other = make(0), make(1)
    store.exchanges.add([one, other])

    store.sampling.assign_tasks(
        [
            SamplingDecision(one.id, 1.0, "sampled", proxy=0.5, proxy_probability=0.25),
            SamplingDecision(other.id, 1.0, "sampled", proxy_probability=0.25),
        ],
        SCORERS,
    )

    assert rows(store, "SELECT proxy, proxy_probability FROM exchange ORDER BY started_at") == [
        (0.5, 0.25),
        (None, 0.25),
    ]


def test_traffic_is_counted_by_the_hour(store: TrackingStore, make: Make) -> None:
    """Whatever became of it; hours without any are left out."""
    store.exchanges.add([make(0), make(59), make(150)])
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in store.sampling.list_undecided(9)], {"relevancy": "f1"}
    )
    eleven = datetime(2026, 3, 1, 11, tzinfo=UTC)

    counted = store.quota.traffic_by_hour(since=eleven - timedelta(days=1), until=eleven + timedelta(hours=9))

    assert counted == [HourCount(eleven, 2), HourCount(eleven + timedelta(hours=2), 1)]
    assert store.quota.traffic_by_hour(since=eleven, until=eleven + timedelta(hours=2)) == counted[:1]


owners = st.sampled_from(["a", "b"])
few = st.integers(1, 4)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few),
        st.tuples(st.just("look"), st.sampled_from([(), ("faithfulness",)])),
        st.tuples(st.just("look_with_another_scorer"), few),
        st.tuples(st.just("rule"), few),
        st.tuples(st.just("pick"), few),
        st.tuples(st.just("pass_over"), st.sampled_from([UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])),
        st.tuples(st.just("claim"), owners),
        st.tuples(st.just("complete"), owners),
        st.tuples(st.just("release"), owners),
        st.tuples(st.just("advance"), few),
    ),
    max_size=30,
)


class Run:
    """Plays a budget's sampler and scorers on one service's exchanges, in any order."""

    def __init__(self, store: TrackingStore, make: Make, clock: Any) -> None:
        self.store, self.make, self.clock = store, make, clock
        self.service = uuid4().hex
        self.claimed: dict[str, list[ScoringTask]] = {"a": [], "b": []}
        store.workers.acquire_lease(*MINE, ttl=timedelta(days=900))

    def add(self, count: int) -> None:
        self.store.exchanges.add([self.make(number, service=self.service) for number in range(count)])

    def look(self, unfit: tuple[str, ...], scorers: dict[str, str] = SCORERS) -> None:
        skip = dict.fromkeys(unfit, UnscoredReason.FILTERED)
        decisions = [SamplingDecision(one.id, None, "candidate", skip) for one in self.store.sampling.list_undecided(3)]
        self.store.sampling.assign_tasks(decisions, scorers, holder=MINE)
        self.store.sampling.assign_tasks(decisions[:1], scorers, holder=MINE)

    def look_with_another_scorer(self, _: int) -> None:
        self.look((), {"relevancy": "f9", "brevity": "f3"})

    def rule(self, count: int) -> None:
        decisions = [SamplingDecision(one.id, 1.0, "always") for one in self.store.sampling.list_undecided(count)]
        self.store.sampling.assign_tasks(decisions, SCORERS, holder=MINE)

    def pick(self, count: int) -> None:
        self.store.sampling.select_candidates(
            step(), [SelectedCandidate(one.id, 0.5, "uniform") for one in self.store.sampling.list_candidates(count)]
        )

    def pass_over(self, reason: UnscoredReason) -> None:
        self.store.sampling.skip_candidates(
            step(), {one.id: 0.5 for one in self.store.sampling.list_candidates(2)}, reason
        )

    def claim(self, owner: str) -> None:
        for scorers in (SCORERS, {"relevancy": "f9", "brevity": "f3"}):
            claims = self.store.queue.claim_tasks(owner, scorers, limit=2, lease=LEASE)
            self.claimed[owner] += [task for claim in claims for task in claim.tasks]

    def complete(self, owner: str) -> None:
        results = [
            (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in self.claimed[owner]
        ]
        self.store.queue.complete_tasks(owner, results)

    def release(self, owner: str) -> None:
        self.store.queue.release_tasks(owner)

    def advance(self, count: int) -> None:
        self.clock.advance(seconds=30 * count)

    def finish(self) -> None:
        """Leave nothing open for the next run, and nothing behind that waits for ever."""
        while self.store.sampling.list_undecided(1):
            self.look(())
        while self.store.sampling.list_candidates(1):
            self.pass_over(UnscoredReason.BUDGET)
        for _ in range(40):
            self.advance(4)
            self.claim("a")
            self.complete("a")
        waiting = "SELECT count(*) FROM scoring_task WHERE state IN ('pending', 'running')"
        assert rows(self.store, waiting) == [(0,)]


@given(steps=operations)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_identity_holds_at_every_commit(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any]]
) -> None:
    """seen = scored + skipped + failed + pending in whatever order looks, draws, claims and results come."""
    run = Run(store, make, clock)
    for name, argument in steps:
        getattr(run, name)(argument)

        covered = [one for one in store.trends.coverage() if one.service == run.service]
        assert all(one.seen == one.scored + one.pending + _sum(one.skipped) + _sum(one.failed) for one in covered)
        assert {one.scorer: _counts(one) for one in covered} == _truth(run)
    run.finish()


def _sum(counts: Any) -> int:
    return sum(counts.values())


def _counts(one: Coverage) -> tuple[int, int, int]:
    return one.pending, one.scored, _sum(one.skipped)


def _truth(run: Run) -> dict[str, tuple[int, int, int]]:
    query = f"""SELECT scorer, count(*) FILTER (WHERE state IN ('pending', 'running')),
        count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'skipped')
        FROM scoring_task JOIN exchange ON exchange.id = exchange_id WHERE service = '{run.service}' GROUP BY scorer"""
    return {row[0]: tuple(row[1:]) for row in rows(run.store, query)}
