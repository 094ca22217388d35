"""A budget's sampler: exact picks, in time, that no end of a process changes."""

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

from germane.daemon_pool import Threads
from germane.monitor.loop.leader import Office
from germane.monitor.sampling import candidate_pool as pools
from germane.monitor.sampling.budget_allocation import Cost
from germane.monitor.sampling.candidate_pool import Cursor, Pool
from germane.monitor.sampling.eligibility import Fit, Fitness
from germane.monitor.sampling.priority_sampling import mixture_of
from germane.monitor.sampling.sampler import Sampling
from germane.score import Reason, Score
from germane.settings import Budget
from germane.storage import Expense, Store

DAY = datetime(2026, 3, 2, tzinfo=UTC)
TERM = timedelta(seconds=30)
PICKED = {"uniform", "route_floor", "suspicion"}
numbers = count()


class Clock:
    def __init__(self) -> None:
        self.now = DAY

    def __call__(self) -> datetime:
        return self.now


class Plain:
    """A scorer that is never run."""

    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self, name: str = "plain", fingerprint: str = "f1") -> None:
        self.name, self.fingerprint = name, fingerprint

    async def score(self, exchange: Any) -> float:
        return 0.5


class Process:
    """What of one process samples, with a clock of the test's; each pick costs one call."""

    def __init__(self, url: str, clock: Clock, budget: Budget | None, scorers: Sequence[Any], **given: Any) -> None:
        self.owner, self.clock = f"process-{next(numbers)}", clock
        self.store = Store(url, clock=clock)
        self.scorers = {scorer.name: scorer.fingerprint for scorer in scorers}
        self.threads = Threads(1, name=self.owner)
        self.pool = Pool(
            self.store, budget=budget, rate=given.get("rate", 1.0), assumed=Cost(1, 0, 0),
            holder=("sampler", self.owner),
        )  # fmt: skip
        self.office = Office(self.store, "sampler", self.owner, term=TERM, clock=clock)
        self.sampling = Sampling(
            self.store, scorers, rate=None if budget else given.get("rate", 1.0),
            fitness=given.get("fitness", Fitness(scorers)),
            pool=self.pool, proxies=given.get("proxies"), office=self.office, threads=self.threads,
            attach=lambda *_: None, clock=clock,
        )  # fmt: skip

    def run(self) -> int:
        return asyncio.run(self.sampling.run())

    def score(self) -> int:
        """Score what is ready, each exchange for one call; return how many it was."""
        claims = self.store.claim(self.owner, self.scorers, limit=1000, lease=TERM)
        tasks = [task for claim in claims for task in claim.tasks]
        results = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in tasks]
        self.store.complete(self.owner, results)
        self.store.reserve_budget(Budget(calls_per_day=10**6), [Expense(1)] * len(claims))
        return len(claims)

    def told(self) -> dict[str, tuple[str | None, float | None]]:
        """Return by trace reason and probability."""
        query = "SELECT trace_id, sampling_reason, sampling_probability FROM exchange"
        with self.store._database.read() as connection:
            return {row[0]: (row[1], row[2]) for row in connection.execute(text(query))}

    def reasons(self) -> Counter[str | None]:
        return Counter(reason for reason, _ in self.told().values())

    def close(self) -> None:
        self.threads.close()
        self.threads.join(5)
        self.store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def process(url: str, clock: Clock) -> Iterator[Callable[..., Process]]:
    """Makes processes on one database."""
    with ExitStack() as stack:

        def make(budget: Budget | None, scorers: Sequence[Any] = (Plain(),), *, at: str = url, **given: Any) -> Process:
            made = Process(at, clock, budget, scorers, **given)
            stack.callback(made.close)
            return made

        yield make


def add(process: Process, make: Any, many: int, **changes: Any) -> list[Any]:
    exchanges = [make(started_at=process.clock.now, route=f"route-{number % 3}", **changes) for number in range(many)]
    process.store.add(exchanges)
    return exchanges


def later(process: Process, **units: float) -> None:
    process.clock.now += timedelta(**units)


class SlowFitness(Fitness):
    """Takes ten seconds for an exchange, as slow predicates would, and meanwhile does something."""

    def __init__(self, clock: Clock, meanwhile: Callable[[], object]) -> None:
        super().__init__([Plain()])
        self._clock, self._meanwhile = clock, meanwhile

    def of(self, exchange: Any) -> Fit:
        self._clock.now += TERM / 3
        self._meanwhile()
        return super().of(exchange)


def test_slow_predicates_do_not_lose_the_office(process: Any, clock: Clock, url: str, new_exchange: Any) -> None:
    """Another process does not take a look over that takes longer than a term: both would begin anew for ever."""
    other = Store(url, clock=clock)
    fitness = SlowFitness(clock, lambda: taken.append(other.elect("sampler", "other", ttl=TERM)))
    slow, taken = process(Budget(calls_per_day=24), fitness=fitness), list[bool]()
    add(slow, new_exchange, 9)

    assert slow.run() == 9
    assert taken == [False] * 9
    other.close()


def test_a_look_that_is_to_stop_keeps_what_it_has(process: Any, clock: Clock, new_exchange: Any) -> None:
    """A process that ends waits for one predicate and not for all; the rest is left to the next one."""
    slow = process(None, fitness=SlowFitness(clock, lambda: setattr(slow.sampling, "stopping", True)))
    add(slow, new_exchange, 3)

    assert slow.run() == 1
    assert slow.reasons() == {"drawn": 1, None: 2}


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_day_of_intervals_uses_its_budget_up_and_no_more(process: Any, new_exchange: Any) -> None:
    """Every hour gets its picks, 46 in all, each exchange ends with a reason, and all picks are scored."""
    one = process(Budget(calls_per_day=46))
    picked = []
    for _ in range(23):
        one.run()
        add(one, new_exchange, 20)
        one.run()
        later(one, hours=1)
        one.run()
        picked.append(one.score())

    assert picked == [2] * 23
    assert one.reasons().keys() - PICKED == {"not_drawn"}
    assert one.reasons()["not_drawn"] == 20 * 23 - 46
    assert one.store.spent().picked == one.store.spent().calls == 46
    (covered,) = {(route.seen, route.scored + sum(route.skipped.values())) for route in one.store.coverage()[:1]}
    assert covered[0] == covered[1]
    assert one.store.counts().pending == 0


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_nothing_is_ready_before_its_interval_ends(process: Any, new_exchange: Any) -> None:
    """Candidates wait; what comes late falls into the next interval."""
    one = process(Budget(calls_per_day=240))
    one.run()
    add(one, new_exchange, 5)
    later(one, minutes=59)
    one.run()
    assert (one.reasons(), one.score()) == ({"candidate": 5}, 0)

    later(one, minutes=1)
    one.run()
    late = [new_exchange(started_at=DAY)]
    one.store.add(late)
    one.run()

    assert one.score() == 5
    assert one.told()[late[0].trace_id] == ("candidate", None)


def test_probabilities_tell_how_many_there_were(process: Any, new_exchange: Any) -> None:
    """All carry theirs, times that of being kept; picks' inverses sum to about the number of exchanges."""
    one = process(Budget(calls_per_hour=200))
    one.run()
    add(one, new_exchange, 1000)
    for exchange in (kept := [new_exchange(started_at=DAY, capture_probability=0.5) for _ in range(100)]):
        object.__setattr__(exchange, "draw", exchange.draw / 2)  # else the capture limit had not kept it
    one.store.add(kept)
    one.run()
    later(one, hours=1)
    one.run()

    told = one.told().values()
    picked = [probability for reason, probability in told if reason in PICKED]
    assert all(0 < probability <= 1 for _, probability in told)
    assert all(one.told()[exchange.trace_id][1] <= 0.5 for exchange in kept)
    assert sum(1 / probability for probability in picked) == pytest.approx(1200, rel=0.2)


def played(process: Callable[..., Process], url: str, exchanges: list[Any], interrupt: bool) -> dict[str, Any]:
    """Return what becomes of 1,300 candidates, with or without the process's end after each transaction."""
    budget = Budget(calls_per_hour=40)
    one = process(budget, at=url)
    one.run()
    one.store.add(exchanges)
    one.run()
    one.clock.now = DAY + timedelta(hours=1)
    while interrupt:
        one = process(budget, at=url)
        one.clock.now += 3 * TERM  # until it is known that the one before is gone
        assert one.office.held()
        if not one.pool.step() and Cursor.read(one.store.cursor("sampler")).remainder is None:
            break
    one.run()
    one.clock.now = DAY
    return one.told()


def test_a_process_that_ends_between_batches_changes_nothing(
    process: Any, url: str, tmp_path: Any, new_exchange: Any
) -> None:
    """However often it happens, reasons and probabilities are those of a run that nothing interrupted."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    store = Store(other)
    store.migrate()
    store.close()
    exchanges = [new_exchange(started_at=DAY, route=f"route-{number % 7}") for number in range(1300)]

    smooth, interrupted = (
        played(process, where, exchanges, interrupt) for where, interrupt in ((url, False), (other, True))
    )

    assert smooth == interrupted
    assert sum(reason in PICKED for reason, _ in smooth.values()) > 20
    assert {reason for reason, _ in smooth.values()} <= PICKED | {"not_drawn"}


def test_no_look_slips_into_an_interval_that_is_being_closed(process: Any, new_exchange: Any) -> None:
    """Exchanges that come between the picks and the last of the rest have their own interval."""
    one = process(Budget(calls_per_hour=20))
    one.run()
    add(one, new_exchange, 700)
    one.run()
    later(one, hours=1)
    assert one.office.held()
    assert one.pool.step() == 700  # the picks; then it ends
    late = add(one, new_exchange, 3)

    successor = process(Budget(calls_per_hour=20))
    later(successor, minutes=1)
    successor.run()

    assert {successor.told()[exchange.trace_id][0] for exchange in late} == {"candidate"}
    assert successor.reasons()["candidate"] == 3


def test_a_process_that_was_taken_for_gone_writes_nothing(process: Any, new_exchange: Any) -> None:
    """It finds the office in other hands in the same transaction, and leaves the pool to them."""
    one, other = process(Budget(calls_per_hour=20)), process(Budget(calls_per_hour=20))
    one.run()
    add(one, new_exchange, 60)
    one.run()
    later(one, hours=1)
    assert other.office.held()
    before = other.told()

    assert one.pool.step() == 0
    assert other.told() == before
    other.run()
    assert other.reasons()["candidate"] == 0


def test_scorers_that_change_leave_nothing_behind(process: Any, new_exchange: Any) -> None:
    """Those that looked at an exchange stay the ones that score it; tasks of others are neither made nor lost."""
    one = process(Budget(calls_per_hour=20), [Plain(), Plain("gone")])
    one.run()
    add(one, new_exchange, 30)
    one.run()
    later(one, hours=1)
    changed = process(Budget(calls_per_hour=20), [Plain(), Plain("new")])
    later(changed, minutes=1)
    changed.run()

    states = Counter()
    with changed.store._database.read() as connection:
        for row in connection.execute(text("SELECT scorer, state, not_before IS NULL FROM scoring_task")):
            states[tuple(row)] += 1
    picked = 30 - changed.reasons()["not_drawn"]
    assert states == {
        (name, *state): many
        for name in ("plain", "gone")
        for state, many in ((("pending", 0), picked), (("skipped", 1), 30 - picked))
    }
    assert changed.score() == picked


def test_when_nothing_is_left_the_rest_of_the_day_is_skipped_for_it(process: Any, new_exchange: Any) -> None:
    """With the reason budget and no probability; the next day has its own."""
    one = process(Budget(calls_per_day=30))
    one.run()
    one.store.reserve_budget(Budget(calls_per_day=30), [Expense(30)])
    add(one, new_exchange, 8)
    one.run()
    later(one, hours=2)
    one.run()
    assert set(one.told().values()) == {("budget", None)}
    assert one.store.counts().skipped_reasons == {Reason.BUDGET: 8}

    later(one, hours=23)
    add(one, new_exchange, 8)
    one.run()
    later(one, hours=1)
    one.run()
    assert sum(one.reasons()[reason] for reason in PICKED) > 0


def test_a_pool_waits_while_its_share_is_none(process: Any, new_exchange: Any) -> None:
    """Of two picks a day the first comes when about half of the day is over, from all that has gathered."""
    one = process(Budget(calls_per_day=2))
    one.run()
    seen = []
    for _ in range(12):
        add(one, new_exchange, 2)
        one.run()
        later(one, hours=1)
        one.run()
        seen.append(one.reasons()["not_drawn"])

    assert seen[:3] == [0, 0, 0]
    assert seen[-1] >= 10
    assert sum(one.reasons()[reason] for reason in PICKED) == 1


def test_a_clock_that_is_set_back_holds_the_pool_up_for_an_interval_at_most(process: Any, new_exchange: Any) -> None:
    """Not until the time is reached again that it showed."""
    one = process(Budget(calls_per_hour=100))
    later(one, hours=12)
    one.run()
    later(one, hours=-6)
    successor = process(Budget(calls_per_hour=100))
    later(successor, minutes=2)
    successor.run()
    add(successor, new_exchange, 30)
    successor.run()
    later(successor, hours=1)
    successor.run()

    assert successor.reasons()["candidate"] == 0


def test_without_the_budget_the_rate_decides_on_what_it_left(process: Any, new_exchange: Any) -> None:
    """Candidates of an earlier budget are not forgotten when it is taken out of the settings."""
    one = process(Budget(calls_per_day=20))
    one.run()
    exchanges = add(one, new_exchange, 700)
    one.run()
    assert one.reasons() == {"candidate": 700}

    later(one, minutes=2)
    other = process(None, rate=0.25)
    other.run()

    drawn = sum(exchange.draw <= 0.25 for exchange in exchanges)
    assert other.reasons() == {"drawn": drawn, "not_drawn": 700 - drawn}
    assert {probability for _, probability in other.told().values()} == {0.25}
    assert other.score() == drawn


def test_suspicious_exchanges_are_picked_more_often(process: Any, new_exchange: Any) -> None:
    """By the proxies that were made at the first look, which are kept with the exchange."""

    def proxies(exchanges: Sequence[Any]) -> dict[str, tuple[float | None, float]]:
        return {one.id: (0.1 if one.attributes["bad"] else 0.95, 1.0) for one in exchanges}

    one = process(Budget(calls_per_hour=100), proxies=proxies)
    one.run()
    bad = add(one, new_exchange, 200, attributes={"bad": True})
    good = add(one, new_exchange, 800, attributes={"bad": False})
    one.run()
    later(one, hours=1)
    one.run()

    told = one.told()
    shares = [sum(told[each.trace_id][1] for each in some) / len(some) for some in (bad, good)]
    assert shares[0] > 2 * shares[1]
    assert one.reasons()["suspicion"] > 10


def test_a_cursor_is_read_as_it_was_written() -> None:
    """To the last digit, whatever routes are called."""
    import numpy as np

    mixture = mixture_of(np.array([0, 1, 1]), np.array([0.1, 0.7, np.nan]))
    cursor = Cursor(DAY, pools.Remainder(Reason.NOT_DRAWN, mixture, (('sh"op', "a\nsk"), ("", "∞"))))

    assert Cursor.read(cursor.written()) == cursor
    assert Cursor.read(Cursor(DAY, pools.Remainder(Reason.BUDGET)).written()).remainder.mixture is None
    assert Cursor.read(Cursor(DAY).written()) == Cursor(DAY)


@pytest.fixture
def timed_store(url: str, clock: Clock) -> Iterator[Store]:
    """A store that goes by the clock."""
    store = Store(url, clock=clock)
    yield store
    store.close()


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_under_a_budget_a_monitor_picks_and_scores(
    timed_store: Store, clock: Clock, start: Any, settings: Any, attached: Any, new_exchange: Any, until: Any
) -> None:
    """With the settings alone: candidates wait, and once their interval is over they are picked and scored."""
    start(timed_store, [Plain()], settings=settings(budget={"calls_per_day": 10**6}), clock=clock)
    until(lambda: timed_store.cursor("sampler"))
    exchanges = [new_exchange(started_at=DAY) for _ in range(5)]
    timed_store.add(exchanges)
    until(lambda: len(timed_store.candidates(9)) == 5)
    assert timed_store.counts().rows == 0

    clock.now += timedelta(hours=1)
    until(lambda: timed_store.counts().rows == 5)

    assert timed_store.spent().picked == 5
    until(lambda: len(attached.calls) == 5)
    assert {one.id for one, _ in attached.calls} == {one.id for one in exchanges}
