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
from germane.score import Reason, Score
from germane.storage import Coverage, Decision, HourCount, Pick, Step, Store, Task

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
MINE = ("sampler", "me")


def step(cursor: str = "here") -> Step:
    return Step(*MINE, cursor)


@pytest.fixture
def pooled(store: Store, make: Make) -> Callable[..., list[Exchange]]:
    """Writes exchanges, which become candidates, with the sampler's office held."""
    assert store.elect(*MINE, ttl=LEASE)

    def write(count: int, **changes: Any) -> list[Exchange]:
        exchanges = [make(number, **changes) for number in range(count)]
        store.add(exchanges)
        assert store.assign(candidates(exchanges), SCORERS, holder=MINE)
        return exchanges

    return write


def candidates(exchanges: list[Exchange]) -> list[Decision]:
    return [Decision(one.id, None, "candidate") for one in exchanges]


def rows(store: Store, what: str) -> list[Any]:
    with store._database.read() as connection:
        return [tuple(row) for row in connection.execute(text(what))]


def test_a_candidate_waits_and_cannot_be_claimed(store: Store, pooled: Callable[..., list[Exchange]]) -> None:
    """Its tasks are pending and counted so, nobody gets them, and it is read without its texts, oldest first."""
    exchanges = pooled(3, draw=0.25, capture_probability=0.5)

    assert store.claim("me", SCORERS, limit=9, lease=LEASE) == []
    assert store.under_way() == 0
    assert [(one.seen, one.pending) for one in store.coverage()] == [(3, 3), (3, 3)]
    found = store.candidates(9)
    assert [one.id for one in found] == [one.id for one in exchanges]
    assert [(one.draw, one.capture_probability, one.proxy) for one in found] == [(0.25, 0.5, None)] * 3
    assert store.candidates(2) == found[:2]
    assert store.candidates(2, after=found[1]) == found[2:]


def test_picks_become_ready_and_are_counted(store: Store, pooled: Callable[..., list[Exchange]], clock: Any) -> None:
    """They have probability and reason, their tasks can be claimed, and the day's budget row counts them once."""
    one, other = pooled(2)
    picks = [Pick(one.id, 0.125, "route_floor")]

    assert store.pick(step(), picks)
    assert store.pick(step("there"), picks)

    assert rows(store, "SELECT id FROM exchange WHERE sampling_reason = 'route_floor' AND sampling_probability = 0.125")
    assert [claim.exchange.id for claim in store.claim("me", SCORERS, limit=9, lease=LEASE)] == [one.id]
    assert store.under_way() == 1
    assert store.spent().picked == 1
    assert store.cursor("sampler") == "there"
    assert [waits.id for waits in store.candidates(9)] == [other.id]


@pytest.mark.parametrize(("reason", "probability"), [(Reason.NOT_DRAWN, 0.25), (Reason.BUDGET, None)])
def test_what_is_passed_over_is_skipped(
    store: Store, pooled: Callable[..., list[Exchange]], reason: Reason, probability: float | None
) -> None:
    """Its tasks are skipped for the reason, the tally says so, and its probability is kept where there is one."""
    exchanges = pooled(600)

    assert store.pass_over(step(), {one.id: probability for one in exchanges}, reason)

    found = rows(store, "SELECT DISTINCT sampling_reason, sampling_probability FROM exchange")
    assert found == [(reason.value, probability)]
    assert store.candidates(9) == []
    assert [(one.seen, one.pending, one.skipped) for one in store.coverage()] == [(600, 0, {reason.value: 600})] * 2
    assert store.counts().skipped_reasons == {reason.value: 1200}


def test_an_interval_that_has_ended_takes_nobody_in(store: Store, pooled: Callable[..., list[Exchange]]) -> None:
    """A look that comes late changes nothing: tasks that wait for an interval that is over would wait for ever."""
    exchanges = pooled(2)
    store.pick(step(), [Pick(exchanges[0].id, 0.5, "uniform")])
    store.pass_over(step(), {exchanges[1].id: 0.5}, Reason.NOT_DRAWN)

    store.assign(candidates(exchanges), SCORERS | {"later": "f3"}, holder=MINE)

    assert rows(store, "SELECT count(*) FROM scoring_task WHERE scorer = 'later'") == [(0,)]
    assert sorted(rows(store, "SELECT sampling_reason FROM exchange")) == [("not_drawn",), ("uniform",)]


def test_only_the_holder_of_the_office_writes(
    store: Store, pooled: Callable[..., list[Exchange]], make: Make, clock: Any
) -> None:
    """Whoever was taken for gone finds itself refused, and changes nothing."""
    exchanges = pooled(2)
    fresh = make(5)
    store.add([fresh])
    clock.advance(hours=1)
    assert store.elect("sampler", "another", ttl=LEASE)

    assert not store.assign(candidates([fresh]), SCORERS, holder=MINE)
    assert not store.pick(step(), [Pick(exchanges[0].id, 0.5, "uniform")])
    assert not store.pass_over(step(), {exchanges[0].id: 0.5}, Reason.NOT_DRAWN)
    assert not store.move(step())

    assert len(store.candidates(9)) == 2
    assert (store.counts().unsampled, store.spent().picked, store.cursor("sampler")) == (1, 0, None)


def test_what_a_rule_asks_for_counts_as_picked(store: Store, make: Make) -> None:
    """Once, where a scorer is to look at it: it takes of the budget."""
    exchanges = [make(number) for number in range(3)]
    store.elect(*MINE, ttl=LEASE)
    store.add(exchanges)
    nobody = dict.fromkeys(SCORERS, Reason.MISSING_INPUT)
    decisions = [Decision(exchanges[0].id, 1.0, "always"), Decision(exchanges[1].id, 1.0, "always", nobody)]

    for _ in range(2):
        store.assign([*decisions, *candidates(exchanges[2:])], SCORERS, holder=MINE)

    assert store.spent().picked == 1


def test_what_was_not_paid_for_does_not_count_as_picked(store: Store, pooled: Callable[..., list[Exchange]]) -> None:
    """Once for an exchange, however many scorers it has: a pick does not look cheaper than it is."""
    exchanges = pooled(3)
    store.pick(step(), [Pick(one.id, 0.5, "uniform") for one in exchanges])
    claims = store.claim("me", SCORERS, limit=2, lease=LEASE)
    reasons = (Reason.BUDGET, Reason.JUDGE_TIMEOUT)
    results = [
        (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, reason=reason))
        for claim, reason in zip(claims, reasons, strict=True)
        for task in claim.tasks
    ]

    for _ in range(2):
        store.complete("me", results)

    assert store.spent().picked == 2


def test_a_proxy_is_written_with_the_decision(store: Store, make: Make) -> None:
    """With the probability of having one; what is there stays where a decision has none."""
    one, other = make(0), make(1)
    store.add([one, other])

    store.assign(
        [
            Decision(one.id, 1.0, "drawn", proxy=0.5, proxy_probability=0.25),
            Decision(other.id, 1.0, "drawn", proxy_probability=0.25),
        ],
        SCORERS,
    )

    assert rows(store, "SELECT proxy, proxy_probability FROM exchange ORDER BY started_at") == [
        (0.5, 0.25),
        (None, 0.25),
    ]


def test_traffic_is_counted_by_the_hour(store: Store, make: Make) -> None:
    """Whatever became of it; hours without any are left out."""
    store.add([make(0), make(59), make(150)])
    store.assign([Decision(one.id, 1.0, "drawn") for one in store.unsampled(9)], {"relevancy": "f1"})
    eleven = datetime(2026, 3, 1, 11, tzinfo=UTC)

    counted = store.traffic_by_hour(since=eleven - timedelta(days=1), until=eleven + timedelta(hours=9))

    assert counted == [HourCount(eleven, 2), HourCount(eleven + timedelta(hours=2), 1)]
    assert store.traffic_by_hour(since=eleven, until=eleven + timedelta(hours=2)) == counted[:1]


owners = st.sampled_from(["a", "b"])
few = st.integers(1, 4)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few),
        st.tuples(st.just("look"), st.sampled_from([(), ("faithfulness",)])),
        st.tuples(st.just("look_with_another_scorer"), few),
        st.tuples(st.just("rule"), few),
        st.tuples(st.just("pick"), few),
        st.tuples(st.just("pass_over"), st.sampled_from([Reason.NOT_DRAWN, Reason.BUDGET])),
        st.tuples(st.just("claim"), owners),
        st.tuples(st.just("complete"), owners),
        st.tuples(st.just("release"), owners),
        st.tuples(st.just("advance"), few),
    ),
    max_size=30,
)


class Run:
    """Plays a budget's sampler and scorers on one service's exchanges, in any order."""

    def __init__(self, store: Store, make: Make, clock: Any) -> None:
        self.store, self.make, self.clock = store, make, clock
        self.service = uuid4().hex
        self.claimed: dict[str, list[Task]] = {"a": [], "b": []}
        store.elect(*MINE, ttl=timedelta(days=900))

    def add(self, count: int) -> None:
        self.store.add([self.make(number, service=self.service) for number in range(count)])

    def look(self, unfit: tuple[str, ...], scorers: dict[str, str] = SCORERS) -> None:
        skip = dict.fromkeys(unfit, Reason.FILTERED)
        decisions = [Decision(one.id, None, "candidate", skip) for one in self.store.unsampled(3)]
        self.store.assign(decisions, scorers, holder=MINE)
        self.store.assign(decisions[:1], scorers, holder=MINE)

    def look_with_another_scorer(self, _: int) -> None:
        self.look((), {"relevancy": "f9", "brevity": "f3"})

    def rule(self, count: int) -> None:
        decisions = [Decision(one.id, 1.0, "always") for one in self.store.unsampled(count)]
        self.store.assign(decisions, SCORERS, holder=MINE)

    def pick(self, count: int) -> None:
        self.store.pick(step(), [Pick(one.id, 0.5, "uniform") for one in self.store.candidates(count)])

    def pass_over(self, reason: Reason) -> None:
        self.store.pass_over(step(), {one.id: 0.5 for one in self.store.candidates(2)}, reason)

    def claim(self, owner: str) -> None:
        for scorers in (SCORERS, {"relevancy": "f9", "brevity": "f3"}):
            claims = self.store.claim(owner, scorers, limit=2, lease=LEASE)
            self.claimed[owner] += [task for claim in claims for task in claim.tasks]

    def complete(self, owner: str) -> None:
        results = [
            (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in self.claimed[owner]
        ]
        self.store.complete(owner, results)

    def release(self, owner: str) -> None:
        self.store.release(owner)

    def advance(self, count: int) -> None:
        self.clock.advance(seconds=30 * count)

    def finish(self) -> None:
        """Leave nothing open for the next run, and nothing behind that waits for ever."""
        while self.store.unsampled(1):
            self.look(())
        while self.store.candidates(1):
            self.pass_over(Reason.BUDGET)
        for _ in range(40):
            self.advance(4)
            self.claim("a")
            self.complete("a")
        waiting = "SELECT count(*) FROM scoring_task WHERE state IN ('pending', 'running')"
        assert rows(self.store, waiting) == [(0,)]


@given(steps=operations)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_identity_holds_at_every_commit(store: Store, make: Make, clock: Any, steps: list[tuple[str, Any]]) -> None:
    """seen = scored + skipped + failed + pending in whatever order looks, draws, claims and results come."""
    run = Run(store, make, clock)
    for name, argument in steps:
        getattr(run, name)(argument)

        covered = [one for one in store.coverage() if one.service == run.service]
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
