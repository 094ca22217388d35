"""How scoring does, as every page tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.insights.context import Desk
from germane.insights.health import Health, health_of
from germane.score import Reason, Score
from germane.settings import Budget, Settings
from germane.storage import Decision, Expense, Presence, Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCORERS = {"answer_relevancy": "f1"}
LEASE = timedelta(seconds=60)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that shows noon."""
    return Clock()


@pytest.fixture
def store(migrated_url: str, clock: Clock) -> Iterator[Store]:
    """A store that goes by the clock."""
    opened = Store(migrated_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def look(store: Store, clock: Clock, bare: Any) -> Callable[..., Health]:
    """Reads how scoring does."""

    def look(**settings: Any) -> Health:
        return health_of(Desk(store=store, settings=Settings(**settings), now=clock))

    return look


def an_exchange(name: str, age: timedelta = timedelta(minutes=5)) -> Exchange:
    """Return an exchange that began so long before noon."""
    texts: dict[str, Any] = {"question": "How do I pay?", "answer": "By card."}
    return Exchange(id=name, trace_id="t", span_id="s", service="shop", route="ask", started_at=NOON - age, **texts)


def beat(store: Store, **given: Any) -> None:
    """Have a process tell that it lives."""
    own: dict[str, Any] = {"id": "w1", "host": "h", "pid": 7, "service": "shop", "version": "1", "scorers": SCORERS}
    store.beat(Presence(**own | given), [], lease=LEASE)


def test_an_empty_database_says_that_nothing_scores_and_nothing_came(look: Callable[..., Health]) -> None:
    """Nobody is told that all is well where nothing has happened yet."""
    found = look()

    assert (found.state, found.headline, found.queue) == ("none", "no worker", "nothing waits")
    assert "germane worker" in str(found.advice)
    assert found.is_stale
    assert not found.is_well
    assert (found.seen_at, found.lag) == (None, timedelta())


def test_a_process_that_was_seen_just_now_runs(store: Store, clock: Clock, look: Callable[..., Health]) -> None:
    """With nothing waiting and nothing failing all is well, though its last sign of life is a minute old."""
    store.add([an_exchange("a")])
    store.assign([Decision("a", 1.0, "uniform")], {})
    beat(store)
    clock.now += timedelta(seconds=60)
    found = look()

    assert (found.state, found.headline, found.advice) == ("running", "running", None)
    assert found.is_well
    assert found.seen_at == NOON
    assert not found.is_stale


def test_a_process_not_seen_for_two_leases_fell_silent(store: Store, clock: Clock, look: Callable[..., Health]) -> None:
    """It is not taken for one that stopped, nor for one that runs."""
    beat(store)
    clock.now += timedelta(seconds=121)
    found = look()

    assert (found.state, found.headline) == ("silent", "fell silent")
    assert [one.id for one in found.silent] == ["w1"]


def test_one_that_stopped_as_it_should_is_not_missed(store: Store, look: Callable[..., Health]) -> None:
    """Its row is gone, and nobody calls it silent."""
    beat(store)
    store.dismiss("w1")

    assert look().state == "none"


def test_a_judge_that_no_process_asks_holds_scoring_up(store: Store, look: Callable[..., Health]) -> None:
    """Why is said; once one of several processes works, scoring is not held up."""
    beat(store, problem="the key is rejected")
    assert (look().state, look().advice) == ("held up", "the key is rejected")

    beat(store, id="w2")
    assert (look().state, look().headline) == ("running", "2 running")


def test_what_waits_is_counted_with_the_age_of_the_oldest(store: Store, look: Callable[..., Health]) -> None:
    """Exchanges that nobody decided on and tasks that nobody took are one queue."""
    store.add([an_exchange("a"), an_exchange("b"), an_exchange("c", timedelta(minutes=20))])
    store.assign([Decision("a", 1.0, "uniform"), Decision("b", 1.0, "uniform")], SCORERS)
    found = look()

    assert (found.waiting, found.queue) == (3, "3 waiting")
    assert found.lag == timedelta(minutes=20)
    assert found.is_late


def test_candidates_of_a_budget_do_not_wait(store: Store, look: Callable[..., Health]) -> None:
    """They are picked when their interval ends: that is no delay."""
    store.add([an_exchange("a")])
    assert store.elect("sampler", "me", ttl=LEASE)
    store.assign([Decision("a", None, "candidate")], SCORERS, holder=("sampler", "me"))
    found = look()

    assert (found.waiting, found.pulse.candidates, found.lag) == (0, 1, timedelta())


def test_failures_of_the_last_hour_are_told_with_their_most_common_reason(
    store: Store, clock: Clock, look: Callable[..., Health]
) -> None:
    """They are apart from scores, and of the last hour only."""
    names = ["a", "b", "c", "d"]
    store.add([an_exchange(name) for name in names])
    store.assign([Decision(name, 1.0, "uniform") for name in names], SCORERS)
    tasks = [task for claim in store.claim("w1", SCORERS, limit=9, lease=LEASE) for task in claim.tasks]
    own: dict[str, Any] = {"scorer": "answer_relevancy", "fingerprint": "f1"}
    ended = [Score(**own, value=0.0), *(Score(**own, reason=reason) for reason in REASONS)]
    store.complete("w1", list(zip(tasks, ended, strict=True)))
    found = look()

    assert (found.pulse.scored, found.failed, found.reason) == (1, 3, "judge_timeout")
    assert found.failures == "3 failures in the last hour, judge timeout"
    clock.now += timedelta(hours=2)
    assert look().failures == "no failure in the last hour"


REASONS = (Reason.JUDGE_TIMEOUT, Reason.UNPARSABLE, Reason.JUDGE_TIMEOUT)


def test_the_cost_of_today_stands_beside_what_may_be_spent(store: Store, look: Callable[..., Health]) -> None:
    """An hourly limit counts up to the hour that has begun."""
    budget = Budget(calls_per_hour=10)
    store.reserve_budget(budget, [Expense(3, 900.0, 0.25)])
    found = look(budget=budget)

    assert found.pulse.spent.calls == 3
    assert found.pulse.spent.usd == pytest.approx(0.25, abs=1e-9)
    assert found.limits is not None
    assert found.limits.calls == 130
    assert look().limits is None


def test_data_older_than_an_hour_is_called_old(store: Store, clock: Clock, look: Callable[..., Health]) -> None:
    """A page about answers of yesterday does not look like one about now."""
    store.add([an_exchange("a", timedelta())])
    clock.now += timedelta(minutes=60)
    assert not look().is_stale

    clock.now += timedelta(seconds=1)
    assert look().is_stale
