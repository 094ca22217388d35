"""Candidates in a budgeted interval: selected or skipped when the interval ends, and never lost."""

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
from germane.testing import transaction

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
SAMPLER_LEASE = ("sampler", "me")


def sampler_step(cursor: str = "here") -> SamplerStep:
    return SamplerStep(*SAMPLER_LEASE, cursor)


@pytest.fixture
def write_candidates(store: TrackingStore, make: Make) -> Callable[..., list[Exchange]]:
    """Write exchanges as candidates, holding the sampler's lease."""
    assert store.workers.acquire_lease(*SAMPLER_LEASE, ttl=LEASE)

    def write(count: int, **changes: Any) -> list[Exchange]:
        exchanges = [make(number, **changes) for number in range(count)]
        store.exchanges.add(exchanges)
        assert store.sampling.assign_tasks(candidate_decisions(exchanges), SCORERS, holder=SAMPLER_LEASE)
        return exchanges

    return write


def candidate_decisions(exchanges: list[Exchange]) -> list[SamplingDecision]:
    return [SamplingDecision(exchange.id, None, "candidate") for exchange in exchanges]


def query_rows(store: TrackingStore, query: str) -> list[Any]:
    with transaction(store, read_only=True) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_candidate_is_pending_and_cannot_be_claimed(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]]
) -> None:
    """Candidates count as pending and are listed oldest first without their texts."""
    exchanges = write_candidates(3, sampling_key=0.25, capture_probability=0.5)

    assert store.queue.claim_tasks("me", SCORERS, limit=9, lease=LEASE) == []
    assert store.pool.count_in_progress() == 0
    assert [(coverage.seen, coverage.pending) for coverage in store.trends.coverage()] == [(3, 3), (3, 3)]
    listed = store.pool.list_candidates(9)
    assert [one.id for one in listed] == [exchange.id for exchange in exchanges]
    assert [(one.sampling_key, one.capture_probability, one.proxy) for one in listed] == [(0.25, 0.5, None)] * 3
    assert store.pool.list_candidates(2) == listed[:2]
    assert store.pool.list_candidates(2, after=listed[1]) == listed[2:]


def test_selected_candidates_become_ready_and_count_once(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]], clock: Any
) -> None:
    """Selected candidates get a probability and a reason, can be claimed, and count once against the day's budget."""
    one, other = write_candidates(2)
    picks = [SelectedCandidate(one.id, 0.125, "route_floor")]

    assert store.pool.select_candidates(sampler_step(), picks)
    assert store.pool.select_candidates(sampler_step("there"), picks)

    assert query_rows(
        store, "SELECT id FROM exchange WHERE sampling_reason = 'route_floor' AND sampling_probability = 0.125"
    )
    assert [claim.exchange.id for claim in store.queue.claim_tasks("me", SCORERS, limit=9, lease=LEASE)] == [one.id]
    assert store.pool.count_in_progress() == 1
    assert store.quota.load_usage().selected == 1
    assert store.pool.load_cursor("sampler") == "there"
    assert [candidate.id for candidate in store.pool.list_candidates(9)] == [other.id]


@pytest.mark.parametrize(("reason", "probability"), [(UnscoredReason.NOT_SAMPLED, 0.25), (UnscoredReason.BUDGET, None)])
def test_unselected_candidates_are_skipped_with_a_reason(
    store: TrackingStore,
    write_candidates: Callable[..., list[Exchange]],
    reason: UnscoredReason,
    probability: float | None,
) -> None:
    """Tasks and tallies show the reason; a sampling probability is stored if there is one."""
    exchanges = write_candidates(600)

    assert store.pool.skip_candidates(sampler_step(), {exchange.id: probability for exchange in exchanges}, reason)

    found = query_rows(store, "SELECT DISTINCT sampling_reason, sampling_probability FROM exchange")
    assert found == [(reason.value, probability)]
    assert store.pool.list_candidates(9) == []
    assert [(coverage.seen, coverage.pending, coverage.skipped) for coverage in store.trends.coverage()] == [
        (600, 0, {reason.value: 600})
    ] * 2
    assert store.answers.counts().skipped_reasons == {reason.value: 1200}


def test_late_decision_does_not_add_tasks_to_a_closed_interval(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]]
) -> None:
    """Such tasks would never be selected or skipped."""
    exchanges = write_candidates(2)
    store.pool.select_candidates(sampler_step(), [SelectedCandidate(exchanges[0].id, 0.5, "uniform")])
    store.pool.skip_candidates(sampler_step(), {exchanges[1].id: 0.5}, UnscoredReason.NOT_SAMPLED)

    store.sampling.assign_tasks(candidate_decisions(exchanges), SCORERS | {"later": "f3"}, holder=SAMPLER_LEASE)

    assert query_rows(store, "SELECT count(*) FROM scoring_task WHERE scorer = 'later'") == [(0,)]
    assert sorted(query_rows(store, "SELECT sampling_reason FROM exchange")) == [("not_sampled",), ("uniform",)]


def test_only_the_lease_holder_changes_candidates(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]], make: Make, clock: Any
) -> None:
    """A process that has lost the sampler's lease changes nothing."""
    exchanges = write_candidates(2)
    fresh = make(5)
    store.exchanges.add([fresh])
    clock.advance(hours=1)
    assert store.workers.acquire_lease("sampler", "another", ttl=LEASE)

    assert not store.sampling.assign_tasks(candidate_decisions([fresh]), SCORERS, holder=SAMPLER_LEASE)
    assert not store.pool.select_candidates(sampler_step(), [SelectedCandidate(exchanges[0].id, 0.5, "uniform")])
    assert not store.pool.skip_candidates(sampler_step(), {exchanges[0].id: 0.5}, UnscoredReason.NOT_SAMPLED)
    assert not store.pool.save_cursor(sampler_step())

    assert len(store.pool.list_candidates(9)) == 2
    assert (
        store.answers.counts().undecided,
        store.quota.load_usage().selected,
        store.pool.load_cursor("sampler"),
    ) == (1, 0, None)


def test_always_score_rules_count_against_the_budget(store: TrackingStore, make: Make) -> None:
    """An exchange counts once, and only if at least one scorer runs."""
    exchanges = [make(number) for number in range(3)]
    store.workers.acquire_lease(*SAMPLER_LEASE, ttl=LEASE)
    store.exchanges.add(exchanges)
    nobody = dict.fromkeys(SCORERS, UnscoredReason.MISSING_INPUT)
    decisions = [
        SamplingDecision(exchanges[0].id, 1.0, "always"),
        SamplingDecision(exchanges[1].id, 1.0, "always", nobody),
    ]

    for _ in range(2):
        store.sampling.assign_tasks([*decisions, *candidate_decisions(exchanges[2:])], SCORERS, holder=SAMPLER_LEASE)

    assert store.quota.load_usage().selected == 1


def test_tasks_skipped_for_budget_are_refunded(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]]
) -> None:
    """An exchange that was not judged for lack of budget is subtracted once, regardless of its number of scorers."""
    exchanges = write_candidates(3)
    store.pool.select_candidates(
        sampler_step(), [SelectedCandidate(exchange.id, 0.5, "uniform") for exchange in exchanges]
    )
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


def test_only_exchanges_without_a_judge_request_are_refunded(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]]
) -> None:
    """An exchange counts as selected if one of its scorers asked a judge before the budget was exhausted.

    Otherwise, it is subtracted once. Scorers without a judge cost nothing.
    """
    exchanges = write_candidates(4)
    store.pool.select_candidates(
        sampler_step(), [SelectedCandidate(exchange.id, 0.5, "uniform") for exchange in exchanges]
    )
    outcomes: list[list[dict[str, Any]]] = [
        [{"reason": UnscoredReason.BUDGET}, {"reason": UnscoredReason.BUDGET}],
        [{"value": 0.5, "judge": "m"}, {"reason": UnscoredReason.BUDGET}],
        [{"reason": UnscoredReason.BUDGET}, {"value": 0.5, "judge": "m"}],
        [{"value": 0.5}, {"reason": UnscoredReason.BUDGET}],
    ]
    claims = {claim.exchange.id: claim for claim in store.queue.claim_tasks("me", SCORERS, limit=4, lease=LEASE)}

    selected = []
    for exchange, outcome in zip(exchanges, outcomes, strict=True):
        for task, result in zip(claims[exchange.id].tasks, outcome, strict=True):
            score = Score(scorer=task.scorer, fingerprint=task.fingerprint, **result)
            store.queue.complete_tasks("me", [(task, score)])
        selected.append(store.quota.load_usage().selected)

    assert selected == [3, 3, 3, 2]


def test_rescoring_that_exceeds_the_budget_is_refunded(
    store: TrackingStore, write_candidates: Callable[..., list[Exchange]]
) -> None:
    """The answer keeps its score, for which it was selected before."""
    (exchange,) = write_candidates(1)
    store.pool.select_candidates(sampler_step(), [SelectedCandidate(exchange.id, 1.0, "uniform")])

    def complete(**given: Any) -> int:
        (claim,) = store.queue.claim_tasks("me", SCORERS, limit=1, lease=LEASE)
        results = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, **given)) for task in claim.tasks]
        store.queue.complete_tasks("me", results)
        return store.quota.load_usage().selected

    scored = complete(value=0.5, judge="m")
    store.queue.rescore([(exchange.id, scorer) for scorer in SCORERS], SCORERS, budgeted=True)

    assert (scored, complete(reason=UnscoredReason.BUDGET)) == (1, 1)


def test_sampling_decision_stores_proxy_score_and_probability(store: TrackingStore, make: Make) -> None:
    """A decision without a proxy stores only the probability of having one."""
    one, other = make(0), make(1)
    store.exchanges.add([one, other])

    store.sampling.assign_tasks(
        [
            SamplingDecision(one.id, 1.0, "sampled", proxy=0.5, proxy_probability=0.25),
            SamplingDecision(other.id, 1.0, "sampled", proxy_probability=0.25),
        ],
        SCORERS,
    )

    assert query_rows(store, "SELECT proxy, proxy_probability FROM exchange ORDER BY started_at") == [
        (0.5, 0.25),
        (None, 0.25),
    ]


def test_candidate_traffic_is_counted_per_hour(store: TrackingStore, make: Make) -> None:
    """All exchanges count, scored or not; hours without traffic are omitted."""
    store.exchanges.add([make(0), make(59), make(150)])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in store.sampling.list_undecided(9)],
        {"relevancy": "f1"},
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
        st.tuples(st.just("assign"), st.sampled_from([(), ("faithfulness",)])),
        st.tuples(st.just("assign_with_another_scorer"), few),
        st.tuples(st.just("rule"), few),
        st.tuples(st.just("select"), few),
        st.tuples(st.just("skip"), st.sampled_from([UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])),
        st.tuples(st.just("claim"), owners),
        st.tuples(st.just("complete"), owners),
        st.tuples(st.just("release"), owners),
        st.tuples(st.just("advance"), few),
    ),
    max_size=30,
)


class CandidateModel:
    """Apply sampler and scorer operations to one service's exchanges in any order."""

    def __init__(self, store: TrackingStore, make: Make, clock: Any) -> None:
        self.store, self.make, self.clock = store, make, clock
        self.service = uuid4().hex
        self.claimed: dict[str, list[ScoringTask]] = {"a": [], "b": []}
        store.workers.acquire_lease(*SAMPLER_LEASE, ttl=timedelta(days=900))

    def add(self, count: int) -> None:
        self.store.exchanges.add([self.make(number, service=self.service) for number in range(count)])

    def assign(self, unfit: tuple[str, ...], scorers: dict[str, str] = SCORERS) -> None:
        skip = dict.fromkeys(unfit, UnscoredReason.FILTERED)
        decisions = [
            SamplingDecision(exchange.id, None, "candidate", skip) for exchange in self.store.sampling.list_undecided(3)
        ]
        self.store.sampling.assign_tasks(decisions, scorers, holder=SAMPLER_LEASE)
        self.store.sampling.assign_tasks(decisions[:1], scorers, holder=SAMPLER_LEASE)

    def assign_with_another_scorer(self, _: int) -> None:
        self.assign((), {"relevancy": "f9", "brevity": "f3"})

    def rule(self, count: int) -> None:
        decisions = [
            SamplingDecision(exchange.id, 1.0, "always") for exchange in self.store.sampling.list_undecided(count)
        ]
        self.store.sampling.assign_tasks(decisions, SCORERS, holder=SAMPLER_LEASE)

    def select(self, count: int) -> None:
        self.store.pool.select_candidates(
            sampler_step(),
            [SelectedCandidate(exchange.id, 0.5, "uniform") for exchange in self.store.pool.list_candidates(count)],
        )

    def skip(self, reason: UnscoredReason) -> None:
        self.store.pool.skip_candidates(
            sampler_step(), {exchange.id: 0.5 for exchange in self.store.pool.list_candidates(2)}, reason
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
        """Complete or skip everything, and check that no task stays open."""
        while self.store.sampling.list_undecided(1):
            self.assign(())
        while self.store.pool.list_candidates(1):
            self.skip(UnscoredReason.BUDGET)
        for _ in range(40):
            self.advance(4)
            self.claim("a")
            self.complete("a")
        waiting = "SELECT count(*) FROM scoring_task WHERE state IN ('pending', 'running')"
        assert query_rows(self.store, waiting) == [(0,)]


@pytest.mark.slow
@given(operation_list=operations)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tally_counts_add_up_after_every_candidate_operation(
    store: TrackingStore, make: Make, clock: Any, operation_list: list[tuple[str, Any]]
) -> None:
    """seen = scored + skipped + failed + pending for any order of decisions, selections, claims and results."""
    run = CandidateModel(store, make, clock)
    for name, argument in operation_list:
        getattr(run, name)(argument)

        covered = [coverage for coverage in store.trends.coverage() if coverage.service == run.service]
        assert all(
            coverage.seen == coverage.scored + coverage.pending + _sum(coverage.skipped) + _sum(coverage.failed)
            for coverage in covered
        )
        assert {coverage.scorer: _counts(coverage) for coverage in covered} == _truth(run)
    run.finish()


def _sum(counts: Any) -> int:
    return sum(counts.values())


def _counts(one: Coverage) -> tuple[int, int, int]:
    return one.pending, one.scored, _sum(one.skipped)


def _truth(run: CandidateModel) -> dict[str, tuple[int, int, int]]:
    query = f"""SELECT scorer, count(*) FILTER (WHERE state IN ('pending', 'running')),
        count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'skipped')
        FROM scoring_task JOIN exchange ON exchange.id = exchange_id WHERE service = '{run.service}' GROUP BY scorer"""
    return {row[0]: tuple(row[1:]) for row in query_rows(run.store, query)}
