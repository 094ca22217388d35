"""The candidate pool under a budget: exact selections that survive the exit of any process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from sqlalchemy import text

from germane.daemon_pool import DaemonThreadPool
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.sampling import candidate_pool as pools
from germane.monitor.sampling.budget_allocation import ExchangeCost
from germane.monitor.sampling.candidate_pool import CandidatePool, PoolCursor
from germane.monitor.sampling.eligibility import Eligibility, EligibilityChecker
from germane.monitor.sampling.priority_sampling import build_mixture
from germane.monitor.sampling.sampler import Sampler
from germane.score import Score, UnscoredReason
from germane.settings import Budget
from germane.storage import RequestUsage, TrackingStore
from germane.testing import Clock, transaction

DAY = datetime(2026, 3, 2, tzinfo=UTC)
LEASE_TTL = timedelta(seconds=30)
PICKED = {"uniform", "route_floor", "suspicion"}
numbers = count()


class Plain:
    """A scorer that is never run."""

    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self, name: str = "plain", fingerprint: str = "f1") -> None:
        self.name, self.fingerprint = name, fingerprint

    async def score(self, exchange: Any) -> float:
        return 0.5


class Process:
    """One process's sampler, with the test's clock. Each selected exchange costs one request."""

    def __init__(self, url: str, clock: Clock, budget: Budget | None, scorers: Sequence[Any], **given: Any) -> None:
        self.owner, self.clock = f"process-{next(numbers)}", clock
        self.store = TrackingStore(url, clock=clock)
        self.scorers = {scorer.name: scorer.fingerprint for scorer in scorers}
        self.threads = DaemonThreadPool(1, name=self.owner)
        self.pool = CandidatePool(
            self.store, budget=budget, sample_rate=given.get("sample_rate", 1.0), default_cost=ExchangeCost(1, 0, 0),
            lease_holder=("sampler", self.owner),
        )  # fmt: skip
        self.leader = LeaderLease(self.store, "sampler", self.owner, ttl=LEASE_TTL, clock=clock)
        self.sampling = Sampler(
            self.store, scorers, sample_rate=None if budget else given.get("sample_rate", 1.0),
            eligibility=given.get("eligibility", EligibilityChecker(scorers)),
            pool=self.pool, score_proxies=given.get("proxies"), leader=self.leader, thread_pool=self.threads,
            attach=lambda *_: None, clock=clock,
        )  # fmt: skip

    def run(self) -> int:
        return asyncio.run(self.sampling.run())

    def score(self) -> int:
        """Score all ready tasks, with one request per exchange; return the number of exchanges."""
        claims = self.store.queue.claim_tasks(self.owner, self.scorers, limit=1000, lease=LEASE_TTL)
        tasks = [task for claim in claims for task in claim.tasks]
        results = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in tasks]
        self.store.queue.complete_tasks(self.owner, results)
        self.store.quota.reserve_budget(Budget(requests_per_day=10**6), [RequestUsage(1)] * len(claims))
        return len(claims)

    def decisions(self) -> dict[str, tuple[str | None, float | None]]:
        """Return the sampling reason and probability of each exchange, by trace id."""
        query = "SELECT trace_id, sampling_reason, sampling_probability FROM exchange"
        with transaction(self.store, read_only=True) as connection:
            return {row[0]: (row[1], row[2]) for row in connection.execute(text(query))}

    def reasons(self) -> Counter[str | None]:
        return Counter(reason for reason, _ in self.decisions().values())

    def close(self) -> None:
        self.threads.close()
        self.threads.join(5)
        self.store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock(DAY)


@pytest.fixture
def process(url: str, clock: Clock) -> Iterator[Callable[..., Process]]:
    """Create processes on one database."""
    with ExitStack() as stack:

        def make(budget: Budget | None, scorers: Sequence[Any] = (Plain(),), *, at: str = url, **given: Any) -> Process:
            made = Process(at, clock, budget, scorers, **given)
            stack.callback(made.close)
            return made

        yield make


def add(process: Process, make: Any, many: int, **changes: Any) -> list[Any]:
    exchanges = [make(started_at=process.clock.now, route=f"route-{number % 3}", **changes) for number in range(many)]
    process.store.exchanges.add(exchanges)
    return exchanges


def later(process: Process, **units: float) -> None:
    process.clock.now += timedelta(**units)


class SlowEligibilityChecker(EligibilityChecker):
    """Takes ten seconds per exchange, like a slow predicate, and calls a function during that time."""

    def __init__(self, clock: Clock, meanwhile: Callable[[], object]) -> None:
        super().__init__([Plain()])
        self._clock, self._meanwhile = clock, meanwhile

    def check(self, exchange: Any) -> Eligibility:
        self._clock.now += LEASE_TTL / 3
        self._meanwhile()
        return super().check(exchange)


def test_the_sampler_keeps_its_lease_during_slow_predicates(
    process: Any, clock: Clock, url: str, new_exchange: Any
) -> None:
    """The lease is renewed during a long sampling run. Otherwise, two processes would keep starting over."""
    other = TrackingStore(url, clock=clock)
    eligibility = SlowEligibilityChecker(
        clock, lambda: taken.append(other.workers.acquire_lease("sampler", "other", ttl=LEASE_TTL))
    )
    slow, taken = process(Budget(requests_per_day=24), eligibility=eligibility), list[bool]()
    add(slow, new_exchange, 9)

    assert slow.run() == 9
    assert taken == [False] * 9
    other.close()


def test_sampling_decisions_are_kept_when_the_sampler_stops(process: Any, clock: Clock, new_exchange: Any) -> None:
    """A stopping process waits for one predicate, not for all of them. The next process decides on the rest."""
    slow = process(None, eligibility=SlowEligibilityChecker(clock, lambda: setattr(slow.sampling, "stopping", True)))
    add(slow, new_exchange, 3)

    assert slow.run() == 1
    assert slow.reasons() == {"sampled": 1, None: 2}


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_the_intervals_of_a_day_use_exactly_the_daily_budget(process: Any, new_exchange: Any) -> None:
    """Every hour selects some exchanges, 46 in total. Each exchange gets a final reason, and all selected exchanges are
    scored."""
    one = process(Budget(requests_per_day=46))
    picked = []
    for _ in range(23):
        one.run()
        add(one, new_exchange, 20)
        one.run()
        later(one, hours=1)
        one.run()
        picked.append(one.score())

    assert picked == [2] * 23
    assert one.reasons().keys() - PICKED == {"not_sampled"}
    assert one.reasons()["not_sampled"] == 20 * 23 - 46
    assert one.store.quota.load_usage().selected == one.store.quota.load_usage().requests == 46
    (covered,) = {(route.seen, route.scored + sum(route.skipped.values())) for route in one.store.trends.coverage()[:1]}
    assert covered[0] == covered[1]
    assert one.store.answers.counts().pending == 0


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_candidates_wait_for_the_end_of_their_interval(process: Any, new_exchange: Any) -> None:
    """Late exchanges belong to the next interval."""
    one = process(Budget(requests_per_day=240))
    one.run()
    add(one, new_exchange, 5)
    later(one, minutes=59)
    one.run()
    assert (one.reasons(), one.score()) == ({"candidate": 5}, 0)

    later(one, minutes=1)
    one.run()
    late = [new_exchange(started_at=DAY)]
    one.store.exchanges.add(late)
    one.run()

    assert one.score() == 5
    assert one.decisions()[late[0].trace_id] == ("candidate", None)


def test_inverse_probabilities_of_the_selection_add_up_to_the_number_of_candidates(
    process: Any, new_exchange: Any
) -> None:
    """Each probability includes the capture probability. The inverses are summed over the selected exchanges."""
    one = process(Budget(requests_per_hour=200))
    one.run()
    add(one, new_exchange, 1000)
    for exchange in (kept := [new_exchange(started_at=DAY, capture_probability=0.5) for _ in range(100)]):
        object.__setattr__(
            exchange, "sampling_key", exchange.sampling_key / 2
        )  # otherwise, the exchange limit would have dropped the exchange
    one.store.exchanges.add(kept)
    one.run()
    later(one, hours=1)
    one.run()

    sampled = one.decisions().values()
    picked = [probability for reason, probability in sampled if reason in PICKED]
    assert all(0 < probability <= 1 for _, probability in sampled)
    assert all(one.decisions()[exchange.trace_id][1] <= 0.5 for exchange in kept)
    assert sum(1 / probability for probability in picked) == pytest.approx(1200, rel=0.2)


def played(process: Callable[..., Process], url: str, exchanges: list[Any], interrupt: bool) -> dict[str, Any]:
    """Return the decisions on 1,300 candidates, with or without a process exit after each transaction."""
    budget = Budget(requests_per_hour=40)
    one = process(budget, at=url)
    one.run()
    one.store.exchanges.add(exchanges)
    one.run()
    one.clock.now = DAY + timedelta(hours=1)
    while interrupt:
        one = process(budget, at=url)
        one.clock.now += 3 * LEASE_TTL  # until the lease of the previous process has expired
        assert one.leader.acquire()
        if not one.pool.run_step() and PoolCursor.from_json(one.store.pool.load_cursor("sampler")).unselected is None:
            break
    one.run()
    one.clock.now = DAY
    return one.decisions()


def test_restarts_during_a_selection_do_not_change_its_result(
    process: Any, url: str, tmp_path: Any, new_exchange: Any
) -> None:
    """After any number of process exits, reasons and probabilities are the same as in an uninterrupted run."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    store = TrackingStore(other)
    store.migrate()
    store.close()
    exchanges = [new_exchange(started_at=DAY, route=f"route-{number % 7}") for number in range(1300)]

    smooth, interrupted = (
        played(process, where, exchanges, interrupt) for where, interrupt in ((url, False), (other, True))
    )

    assert smooth == interrupted
    assert sum(reason in PICKED for reason, _ in smooth.values()) > 20
    assert {reason for reason, _ in smooth.values()} <= PICKED | {"not_sampled"}


def test_no_candidate_is_added_while_an_interval_is_being_closed(process: Any, new_exchange: Any) -> None:
    """Exchanges that arrive between the selection and the last skip belong to the next interval."""
    one = process(Budget(requests_per_hour=20))
    one.run()
    add(one, new_exchange, 700)
    one.run()
    later(one, hours=1)
    assert one.leader.acquire()
    assert one.pool.run_step() == 700  # the selection is committed, then the process ends
    late = add(one, new_exchange, 3)

    successor = process(Budget(requests_per_hour=20))
    later(successor, minutes=1)
    successor.run()

    assert {successor.decisions()[exchange.trace_id][0] for exchange in late} == {"candidate"}
    assert successor.reasons()["candidate"] == 3


def test_a_process_that_lost_the_leader_lease_writes_nothing(process: Any, new_exchange: Any) -> None:
    """Its transaction detects that another process holds the lease, and does not change the pool."""
    one, other = process(Budget(requests_per_hour=20)), process(Budget(requests_per_hour=20))
    one.run()
    add(one, new_exchange, 60)
    one.run()
    later(one, hours=1)
    assert other.leader.acquire()
    before = other.decisions()

    assert one.pool.run_step() == 0
    assert other.decisions() == before
    other.run()
    assert other.reasons()["candidate"] == 0


def test_no_open_tasks_remain_after_the_scorers_change(process: Any, new_exchange: Any) -> None:
    """A candidate is scored by the scorers that were configured when it was added. For other scorers, tasks are neither
    created nor lost."""
    one = process(Budget(requests_per_hour=20), [Plain(), Plain("gone")])
    one.run()
    add(one, new_exchange, 30)
    one.run()
    later(one, hours=1)
    changed = process(Budget(requests_per_hour=20), [Plain(), Plain("new")])
    later(changed, minutes=1)
    changed.run()

    states = Counter()
    with transaction(changed.store, read_only=True) as connection:
        for row in connection.execute(text("SELECT scorer, state, due_at IS NULL FROM scoring_task")):
            states[tuple(row)] += 1
    picked = 30 - changed.reasons()["not_sampled"]
    assert states == {
        (name, *state): many
        for name in ("plain", "gone")
        for state, many in ((("pending", 0), picked), (("skipped", 1), 30 - picked))
    }
    assert changed.score() == picked


def test_an_exhausted_daily_budget_skips_later_exchanges_of_the_day(process: Any, new_exchange: Any) -> None:
    """The reason is ``budget``, and there is no probability. The next day has its own budget."""
    one = process(Budget(requests_per_day=30))
    one.run()
    one.store.quota.reserve_budget(Budget(requests_per_day=30), [RequestUsage(30)])
    add(one, new_exchange, 8)
    one.run()
    later(one, hours=2)
    one.run()
    assert set(one.decisions().values()) == {("budget", None)}
    assert one.store.answers.counts().skipped_reasons == {UnscoredReason.BUDGET: 8}

    later(one, hours=23)
    add(one, new_exchange, 8)
    one.run()
    later(one, hours=1)
    one.run()
    assert sum(one.reasons()[reason] for reason in PICKED) > 0


def test_candidates_wait_until_the_budget_covers_at_least_one_exchange(process: Any, new_exchange: Any) -> None:
    """With two exchanges per day, the first is selected around noon, from all exchanges that have arrived."""
    one = process(Budget(requests_per_day=2))
    one.run()
    seen = []
    for _ in range(12):
        add(one, new_exchange, 2)
        one.run()
        later(one, hours=1)
        one.run()
        seen.append(one.reasons()["not_sampled"])

    assert seen[:3] == [0, 0, 0]
    assert seen[-1] >= 10
    assert sum(one.reasons()[reason] for reason in PICKED) == 1


def test_setting_the_clock_back_delays_the_pool_by_at_most_one_interval(process: Any, new_exchange: Any) -> None:
    """The pool does not wait until the clock shows the earlier time again."""
    one = process(Budget(requests_per_hour=100))
    later(one, hours=12)
    one.run()
    later(one, hours=-6)
    successor = process(Budget(requests_per_hour=100))
    later(successor, minutes=2)
    successor.run()
    add(successor, new_exchange, 30)
    successor.run()
    later(successor, hours=1)
    successor.run()

    assert successor.reasons()["candidate"] == 0


def test_candidates_are_sampled_at_the_sample_rate_after_the_budget_is_removed(process: Any, new_exchange: Any) -> None:
    """They are still sampled after the budget is removed from the settings."""
    one = process(Budget(requests_per_day=20))
    one.run()
    exchanges = add(one, new_exchange, 700)
    one.run()
    assert one.reasons() == {"candidate": 700}

    later(one, minutes=2)
    other = process(None, sample_rate=0.25)
    other.run()

    drawn = sum(exchange.sampling_key <= 0.25 for exchange in exchanges)
    assert other.reasons() == {"sampled": drawn, "not_sampled": 700 - drawn}
    assert {probability for _, probability in other.decisions().values()} == {0.25}
    assert other.score() == drawn


def test_exchanges_with_low_proxy_scores_are_selected_more_often(process: Any, new_exchange: Any) -> None:
    """Suspicion comes from the proxy scores stored with the exchange."""

    def proxies(exchanges: Sequence[Any]) -> dict[str, tuple[float | None, float]]:
        return {one.id: (0.1 if one.attributes["bad"] else 0.95, 1.0) for one in exchanges}

    one = process(Budget(requests_per_hour=100), proxies=proxies)
    one.run()
    bad = add(one, new_exchange, 200, attributes={"bad": True})
    good = add(one, new_exchange, 800, attributes={"bad": False})
    one.run()
    later(one, hours=1)
    one.run()

    selected = one.decisions()
    shares = [sum(selected[each.trace_id][1] for each in some) / len(some) for some in (bad, good)]
    assert shares[0] > 2 * shares[1]
    assert one.reasons()["suspicion"] > 10


def test_a_pool_cursor_is_unchanged_by_serialization() -> None:
    """The parsed cursor is bitwise equal, for any route names."""
    import numpy as np

    mixture = build_mixture(np.array([0, 1, 1]), np.array([0.1, 0.7, np.nan]))
    cursor = PoolCursor(
        DAY, pools.UnselectedCandidates(UnscoredReason.NOT_SAMPLED, mixture, (('sh"op', "a\nsk"), ("", "∞")))
    )

    assert PoolCursor.from_json(cursor.to_json()) == cursor
    assert (
        PoolCursor.from_json(
            PoolCursor(DAY, pools.UnselectedCandidates(UnscoredReason.BUDGET)).to_json()
        ).unselected.mixture
        is None
    )
    assert PoolCursor.from_json(PoolCursor(DAY).to_json()) == PoolCursor(DAY)


@pytest.fixture
def timed_store(url: str, clock: Clock) -> Iterator[TrackingStore]:
    """A store that uses the test's clock."""
    store = TrackingStore(url, clock=clock)
    yield store
    store.close()


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_monitor_with_a_budget_selects_and_scores_candidates(
    timed_store: TrackingStore, clock: Clock, start: Any, settings: Any, attached: Any, new_exchange: Any, until: Any
) -> None:
    """Settings are enough: candidates wait, and are selected and scored after their interval."""
    start(timed_store, [Plain()], settings=settings(budget={"requests_per_day": 10**6}), clock=clock)
    until(lambda: timed_store.pool.load_cursor("sampler"))
    exchanges = [new_exchange(started_at=DAY) for _ in range(5)]
    timed_store.exchanges.add(exchanges)
    until(lambda: len(timed_store.pool.list_candidates(9)) == 5)
    assert timed_store.answers.counts().scores == 0

    clock.now += timedelta(hours=1)
    until(lambda: timed_store.answers.counts().scores == 5)

    assert timed_store.quota.load_usage().selected == 5
    until(lambda: len(attached.calls) == 5)
    assert {one.id for one, _ in attached.calls} == {one.id for one in exchanges}
