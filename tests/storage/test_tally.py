"""The tally: seen = scored + skipped + failed + pending at every commit."""

from __future__ import annotations

from collections import Counter
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
from germane.storage import Coverage, SamplingDecision, ScoringTask, TrackingStore
from germane.testing import transaction

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
REASONS = (None, UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.MISSING_INPUT)

owners = st.sampled_from(["a", "b"])
few = st.integers(1, 4)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few, st.sampled_from(["ask", "search"])),
        st.tuples(st.just("assign"), few, st.sampled_from([None, UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])),
        st.tuples(st.just("claim"), owners, few),
        st.tuples(st.just("complete"), owners, st.sampled_from(REASONS)),
        st.tuples(st.just("postpone"), owners, few),
        st.tuples(st.just("release"), owners, few),
        st.tuples(st.just("advance"), few, st.just(30)),
        st.tuples(st.just("drop"), few, st.sampled_from(["ask", "search"])),
    ),
    max_size=30,
)


class Run:
    """Runs operations on one service's exchanges, and records the counts that are not in the task tables."""

    def __init__(self, store: TrackingStore, make: Make, clock: Any) -> None:
        self.store, self.make, self.clock = store, make, clock
        self.service = uuid4().hex
        self.claimed: dict[str, list[ScoringTask]] = {"a": [], "b": []}
        self.dropped: Counter[tuple[str, str]] = Counter()

    def add(self, count: int, route: str) -> None:
        self.store.exchanges.add([self.make(number, service=self.service, route=route) for number in range(count)])

    def assign(self, count: int, reason: UnscoredReason | None) -> None:
        skip = {} if reason is None else {"faithfulness": reason}
        decisions = [
            SamplingDecision(one.id, 0.5, "uniform", skip) for one in self.store.sampling.list_undecided(count)
        ]
        self.store.sampling.assign_tasks(decisions, SCORERS)
        self.store.sampling.assign_tasks(decisions[:1], SCORERS)

    def claim(self, owner: str, limit: int) -> None:
        claims = self.store.queue.claim_tasks(owner, SCORERS, limit=limit, lease=LEASE)
        self.claimed[owner] += [task for claim in claims for task in claim.tasks]

    def complete(self, owner: str, reason: UnscoredReason | None) -> None:
        value = 0.5 if reason is None else None
        results = [
            (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=value, reason=reason))
            for task in self.claimed[owner]
        ]
        self.store.queue.complete_tasks(owner, results)
        self.store.queue.complete_tasks(owner, results)

    def postpone(self, owner: str, seconds: int) -> None:
        until = self.clock.now + timedelta(seconds=seconds)
        self.store.queue.postpone_tasks(
            owner, self.claimed[owner], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow"
        )

    def release(self, owner: str, _: int) -> None:
        self.store.queue.release_tasks(owner)

    def advance(self, count: int, seconds: int) -> None:
        self.clock.advance(seconds=count * seconds)

    def drop(self, count: int, route: str) -> None:
        self.store.exchanges.count_dropped({(self.service, route): count}, SCORERS)
        self.dropped.update({(route, scorer): count for scorer in SCORERS})

    def finish(self) -> None:
        """Finish all tasks before the next run."""
        self.store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "uniform") for one in self.store.sampling.list_undecided(1000)], SCORERS
        )
        self.clock.advance(hours=1)
        self.claim("a", 1000)
        self.complete("a", None)


@pytest.mark.slow
@given(steps=operations)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tally_counts_add_up_after_every_operation(
    store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]]
) -> None:
    """seen = scored + skipped + failed + pending, and the counts match the tasks."""
    run = Run(store, make, clock)
    for name, first, second in steps:
        getattr(run, name)(first, second)

        covered = [one for one in store.trends.coverage() if one.service == run.service]
        assert all(_adds_up(one) for one in covered)
        assert {(one.route, one.scorer): _counts(one) for one in covered} == _truth(run)
    run.finish()


def _adds_up(one: Coverage) -> bool:
    return one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())


def _counts(one: Coverage) -> Counter[str]:
    return +Counter({"scored": one.scored, "pending": one.pending, **one.skipped, **one.failed})


def _truth(run: Run) -> dict[tuple[str, str], Counter[str]]:
    """Count the tasks themselves."""
    query = text(
        "SELECT exchange.route, scorer, state, reason, count(*) FROM scoring_task "
        "JOIN exchange ON exchange.id = exchange_id WHERE service = :service GROUP BY 1, 2, 3, 4"
    )
    truth: dict[tuple[str, str], Counter[str]] = {}
    with transaction(run.store, read_only=True) as connection:
        for route, scorer, state, reason, count in connection.execute(query, {"service": run.service}):
            named = {"running": "pending", "done": "scored", "pending": "pending"}.get(state, reason)
            truth.setdefault((route, scorer), Counter())[named] += count
    for key, count in run.dropped.items():
        truth.setdefault(key, Counter())["queue_full"] += count
    return truth


def test_an_exchange_counts_in_the_minute_in_which_it_started(store: TrackingStore, make: Make, clock: Any) -> None:
    """The time of scoring does not matter."""
    exchange = make(0)
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "uniform")], {"a": "f1"})
    clock.advance(days=1)
    [claim] = store.queue.claim_tasks("me", {"a": "f1"}, limit=1, lease=LEASE)
    store.queue.complete_tasks("me", [(claim.tasks[0], Score(scorer="a", fingerprint="f1", value=1.0))])

    assert [one.scored for one in store.trends.coverage(since=exchange.started_at + timedelta(seconds=59))] == [1]
    assert store.trends.coverage(since=exchange.started_at + timedelta(minutes=1)) == []


def test_each_process_writes_its_own_tally_rows(migrated_url: str, make: Make, clock: Any) -> None:
    """One process may finish a task that another started; the sums are correct."""
    first, second = TrackingStore(migrated_url, clock=clock), TrackingStore(migrated_url, clock=clock)
    exchange = make(0)
    first.exchanges.add([exchange])
    first.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "uniform")], {"a": "f1"})
    [claim] = second.queue.claim_tasks("me", {"a": "f1"}, limit=1, lease=LEASE)
    second.queue.complete_tasks("me", [(claim.tasks[0], Score(scorer="a", fingerprint="f1", value=1.0))])

    expected = [Coverage(service="shop", route="ask", scorer="a", seen=1, scored=1)]
    assert first.trends.coverage() == second.trends.coverage() == expected
    assert expected[0].share == 1.0
    first.close()
    second.close()


def test_dropped_exchanges_count_as_seen_and_skipped(store: TrackingStore, make: Make) -> None:
    """Each exchange counts for every scorer in the minute of the drop or, without scorers, under an empty name."""
    at = make(0).started_at
    store.exchanges.count_dropped({("shop", "ask"): 3}, ["a", "b"], at=at)
    store.exchanges.count_dropped({("shop", "ask"): 2}, [], UnscoredReason.EXCHANGE_LIMIT)

    assert store.trends.coverage() == [
        Coverage(service="shop", route="ask", scorer="", seen=2, skipped={"exchange_limit": 2}),
        Coverage(service="shop", route="ask", scorer="a", seen=3, skipped={"queue_full": 3}),
        Coverage(service="shop", route="ask", scorer="b", seen=3, skipped={"queue_full": 3}),
    ]
    assert [one.scorer for one in store.trends.coverage(since=at + timedelta(minutes=1))] == [""]


def test_declared_routes_have_coverage_before_their_first_exchange(store: TrackingStore) -> None:
    """A route that is declared repeatedly is listed once. Its seen count is 0, and it has no scored share."""
    for _ in range(2):
        store.exchanges.declare_routes("shop", ["search\0", "ask", "ask"])

    assert store.trends.coverage() == [
        Coverage(service="shop", route="ask", scorer=""),
        Coverage(service="shop", route="search\ufffd", scorer=""),
    ]
    assert store.trends.coverage()[0].share is None


def test_counts_of_one_minute_add_up(store: TrackingStore) -> None:
    """Each transaction adds to what earlier ones have counted."""
    for count in (2, 3):
        store.exchanges.count_dropped({("shop", "ask"): count}, ["relevancy"], at=datetime(2026, 1, 1, tzinfo=UTC))

    (counts,) = store.trends.coverage()
    assert (counts.seen, counts.skipped) == (5, {"queue_full": 5})
