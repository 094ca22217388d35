"""One process of all clears away what is old, on its own time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.jobs.retention import Housekeeping, Rhythm
from germane.settings import Retention
from germane.storage import Decision, Presence, Store

Make = Callable[..., Exchange]
Until = Callable[..., None]
OFTEN = Rhythm(first=timedelta(seconds=0.05), every=timedelta(seconds=0.1))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAYS_30 = Retention(text_days=30, score_days=400)


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
def old(new_exchange: Make) -> Make:
    """Makes exchanges of so many days before noon."""
    return lambda days, **given: new_exchange(started_at=NOON - timedelta(days=days), **given)


def keeper(store: Store, owner: str, clock: Clock, retention: Retention = DAYS_30) -> Housekeeping:
    return Housekeeping(store, retention, owner=owner, rhythm=Rhythm(), clock=clock)


def run(*keepers: Housekeeping) -> None:
    async def one_after_the_other() -> None:
        for each in keepers:
            await each.run()
            each.close()

    asyncio.run(one_after_the_other())


def has_text(store: Store) -> list[bool]:
    return [one.question is not None for one in store.exchanges()]


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_process_without_a_scorer_keeps_house_too(
    url: str, start: Callable[..., Monitor], settings: Callable[..., Any], new_exchange: Make, until: Until
) -> None:
    """Again and again, as the settings say: what becomes old while it runs goes as well."""
    store = Store(url)
    now = datetime.now(UTC)
    aged = new_exchange(started_at=now - timedelta(days=3))
    store.add([aged, new_exchange(started_at=now)])
    monitor = start(store, settings=settings(retention={"text_days": 2, "score_days": 9}), rhythm=OFTEN)

    until(lambda: has_text(store) == [True, False])
    store.add([new_exchange(started_at=now - timedelta(days=10))])
    until(lambda: store.counts().captured == 2)

    until(lambda: monitor.status().jobs["housekeeping"].last_run)
    assert monitor.status().jobs["housekeeping"].problem is None
    assert monitor.stop(60)
    store.close()


def test_a_clock_that_is_ahead_makes_nothing_old(store: Store, old: Make, clock: Clock) -> None:
    """The database's clock counts as well: a host whose own one is wrong by a year erases nothing before its time."""
    timed = Store(store._database.url.render_as_string(hide_password=False), clock=clock)
    ahead = Clock()
    ahead.now += timedelta(days=365)
    timed.add([old(1), old(31)])

    run(keeper(timed, "me", ahead))

    assert has_text(timed) == [True, False]
    timed.close()


def test_one_process_of_all_does_it(store: Store, other_store: Store, old: Make, clock: Clock) -> None:
    """For as long as it is there; another one does once it has gone."""
    first, second = keeper(store, "first", clock), keeper(other_store, "second", clock)
    run(first)
    store.add([old(31)])

    run(second)
    assert has_text(store) == [True]

    first.office.resign()
    run(keeper(other_store, "second", clock))
    assert has_text(store) == [False]


def test_what_was_done_is_said_in_one_line(
    store: Store, old: Make, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """And nothing where nothing was to be done."""
    caplog.set_level(logging.INFO, "germane.monitor")
    store.add([old(31), old(32), old(401)])

    run(keeper(store, "me", clock))
    run(keeper(store, "me", clock))

    assert [record.getMessage() for record in caplog.records] == ["housekeeping: 2 texts erased, 1 exchange deleted"]


def test_tasks_that_nobody_runs_expire(store: Store, old: Make, clock: Clock) -> None:
    """Those of a scorer that the processes which are there do not have."""
    timed = Store(store._database.url.render_as_string(hide_password=False), clock=clock)
    exchange = old(1)
    timed.add([exchange])
    timed.assign([Decision(exchange.id, 1.0, "drawn")], {"gone": "f1", "there": "f2"})
    presence = Presence(id="w", host="h", pid=1, service="s", version="1", scorers={"there": "f2"})
    timed.beat(presence, (), lease=timedelta(minutes=1))
    clock.now += timedelta(hours=2)
    timed.beat(presence, (), lease=timedelta(minutes=1))

    run(keeper(timed, "me", clock))

    assert {one.scorer: (one.pending, dict(one.skipped)) for one in timed.coverage()} == {
        "gone": (0, {"expired": 1}),
        "there": (1, {}),
    }
    timed.close()


def test_stopping_ends_it_between_two_transactions(store: Store, old: Make, clock: Clock) -> None:
    """The rest is done next time."""
    store.add([old(31 + number / 1000) for number in range(450)])
    house = keeper(store, "me", clock)

    class Office:
        """Stops the work as soon as some of it is done."""

        def held(self) -> bool:
            house.stopping = not all(has_text_of_all(store))
            return not house.stopping

    house.office = Office()  # type: ignore[assignment]  # it has what is asked of one
    run(house)
    assert sum(has_text_of_all(store)) == 250

    run(keeper(store, "me", clock))
    assert sum(has_text_of_all(store)) == 0


def has_text_of_all(store: Store) -> list[bool]:
    return [one.question is not None for one in store.exchanges(limit=1000)]


def test_a_house_that_is_about_to_close_does_not_begin(store: Store, old: Make, clock: Clock) -> None:
    """No thread is made for it either."""
    store.add([old(31)])
    house = keeper(store, "me", clock)
    house.stopping = True

    run(house)

    assert has_text(store) == [True]


def test_a_size_that_cannot_be_kept_is_said_once(
    store: Store, new_exchange: Make, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """And once more when it is kept again."""
    caplog.set_level(logging.INFO, "germane.monitor")
    store.add([new_exchange(started_at=datetime.now(UTC))])
    tight = DAYS_30.model_copy(update={"max_size": 1})
    house = keeper(store, "me", clock, tight)

    asyncio.run(twice(house))
    house._retention = tight.model_copy(update={"max_size": 10**9})
    asyncio.run(twice(house))
    house.close()

    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert told[0].endswith("and what is left is too young to go")
    assert told[1] == "the database is within retention.max_size again"
    assert has_text(store) == [True]


async def twice(house: Housekeeping) -> None:
    await house.run()
    await house.run()


def test_text_goes_with_the_last_score_of_a_monitor(
    url: str, start_judged: Callable[..., Monitor], judge: Any, new_exchange: Make, attached: Any, until: Until
) -> None:
    """The whole way: what is attached to spans has its text, what is kept has none."""
    store = Store(url, erase_after_scoring=True)
    exchange = new_exchange()
    store.add([exchange])
    start_judged(store, judge, scorers=["answer_relevancy"])

    until(lambda: attached.scores)
    until(lambda: has_text(store) == [False])
    [score] = store.scores_of([exchange.id])[exchange.id]
    [shown] = attached.scores
    assert score.value == pytest.approx(shown.value, abs=1e-9)
    assert attached.calls[0][0] == exchange
    assert shown.details["questions"][0]["text"]
    assert "text" not in score.details["questions"][0]
    assert replace(exchange, question=None, answer=None) == store.exchanges()[0]
    store.close()
