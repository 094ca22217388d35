"""Rolling up loses nothing: not with several at it at once, not with one that is killed, not while others write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, text

from germane.annotation import RecordedScore
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.counts import dirty_hours
from germane.storage.db.tables import rollup
from germane.storage.retention.expire import delete_exchanges
from germane.storage.trends.time_ranges import HOUR

Make = Callable[..., Exchange]
TOTAL = "SELECT coalesce(sum(n), 0), coalesce(sum(sum_wy), 0) FROM rollup WHERE span = :span AND dimension = :dimension"


@pytest.fixture
def scored(store: TrackingStore, make: Make, clock: Any) -> Callable[..., list[Exchange]]:
    """Writes exchanges with a score that was made elsewhere."""

    def write(*minutes: float, value: float = 0.5, **given: Any) -> list[Exchange]:
        exchanges = [make(minute, **given) for minute in minutes]
        store.exchanges.add(exchanges)
        store.exchanges.record_scores(
            [RecordedScore(exchange_id=one.id, name="mine", value=value, recorded_at=clock.now) for one in exchanges]
        )
        return exchanges

    return write


def rolled(store: TrackingStore, span: int = HOUR, dimension: str = "route") -> tuple[int, float]:
    with store._database.read() as connection:
        n, total = connection.execute(text(TOTAL), {"span": span, "dimension": dimension}).one()
    return int(n), float(total)


def test_rollers_and_writers_at_once_lose_nothing(migrated_url: str, make: Make, clock: Any) -> None:
    """Four write to the same two hours while three roll them up all the time: in the end every score is in the sums."""
    done, problems = threading.Event(), list[BaseException]()

    def write(number: int) -> None:
        store = TrackingStore(migrated_url, clock=clock)
        for turn in range(12):
            exchange = make((number + turn) % 2 * 60 + turn)
            store.exchanges.add([exchange])
            store.exchanges.record_scores(
                [RecordedScore(exchange_id=exchange.id, name="mine", value=0.5, recorded_at=clock.now)]
            )
        store.close()

    def roll(_: int) -> None:
        store = TrackingStore(migrated_url, clock=clock)
        while not done.is_set():
            store.rollups.update()
            before = store.trends.summary()
            assert sum(one.n for one in before) <= 48
        store.close()

    def guarded(work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            problems.append(error)
            raise

    writers = [threading.Thread(target=guarded, args=(write, number)) for number in range(4)]
    rollers = [threading.Thread(target=guarded, args=(roll, number)) for number in range(3)]
    for thread in (*writers, *rollers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in rollers:
        thread.join()

    store = TrackingStore(migrated_url, clock=clock)
    store.rollups.update()
    assert problems == []
    assert store.rollups.count_dirty_hours() == 0
    assert [rolled(store, span) for span in (3_600, 86_400, 604_800)] == [(48, 24.0)] * 3
    store.close()


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("at", range(1, 40, 3))
def test_a_roller_that_is_killed_leaves_all_to_the_next(
    store: TrackingStore, other_store: TrackingStore, scored: Any, at: int
) -> None:
    """At whatever statement: what it has not finished is due still, and readers never notice."""
    scored(0, 30, 90)
    count = [0]

    def kill(*_: Any) -> None:
        count[0] += 1
        if count[0] == at:
            raise Killed

    event.listen(store._database.engine, "before_cursor_execute", kill)
    with suppress(Killed):
        store.rollups.update(breakdowns=["model"])
    event.remove(store._database.engine, "before_cursor_execute", kill)

    assert [one.n for one in other_store.trends.summary()] == [3]
    other_store.rollups.update(breakdowns=["model"])
    assert (other_store.rollups.count_dirty_hours(), rolled(other_store), rolled(other_store, dimension="model")) == (
        0,
        (3, 1.5),
        (3, 1.5),
    )


def test_one_that_was_overtaken_writes_nothing(
    store: TrackingStore, other_store: TrackingStore, scored: Any, clock: Any
) -> None:
    """It read before a change that another one has rolled up since: its sums are old, and are thrown away."""
    [exchange] = scored(0)

    def overtake(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM tally" in statement and not overtaken:
            overtaken.append(True)
            clock.advance(seconds=1)
            other_store.exchanges.record_scores(
                [RecordedScore(exchange_id=exchange.id, name="mine", value=0.9, recorded_at=clock.now)]
            )
            other_store.rollups.update()

    overtaken: list[bool] = []
    event.listen(store._database.engine, "before_cursor_execute", overtake)
    store.rollups.update()
    event.remove(store._database.engine, "before_cursor_execute", overtake)

    assert overtaken
    assert rolled(store) == (1, 0.9)
    assert store.rollups.count_dirty_hours() == 0


def test_what_is_committed_late_is_not_missed(
    store: TrackingStore, other_store: TrackingStore, scored: Any, clock: Any
) -> None:
    """A transaction that began before a round and ends after it has its hour rolled up again."""
    scored(0)
    if store._database.dialect == "sqlite":
        pytest.skip("nobody else can write while somebody does")
    [exchange] = scored(1)
    with other_store._database.write() as connection:
        connection.execute(text("UPDATE score SET value = 1.0 WHERE exchange_id = :id"), {"id": exchange.id})
        dirty_hours.mark_dirty(connection, [exchange.started_at])
        dirty_hours.write_pending(connection)
        store.rollups.update()
        assert rolled(store) == (2, 1.0)

    assert store.rollups.count_dirty_hours() == 1
    assert store.trends.summary()[0].mean == pytest.approx(0.75)
    store.rollups.update()
    assert rolled(store) == (2, 1.5)


def test_other_dimensions_are_taken_up_for_all_hours(store: TrackingStore, scored: Any) -> None:
    """Those that are not asked for any more go; trends are right before, meanwhile and after."""
    scored(0, model="m1", attributes={"tier": "gold"})
    scored(200, model="m2", attributes={"tier": "free"}, value=0.7)
    window: dict[str, Any] = {"scorer": "mine", "since": None}

    found = []
    for trend_by, limit in ((["model"], None), (["attributes.tier"], 1), (None, None), ([], None)):
        store.rollups.update(limit, breakdowns=trend_by)
        found.append(
            (
                store.rollups.count_dirty_hours(),
                rolled(store, dimension="model")[0],
                rolled(store, dimension="attributes.tier")[0],
            )
        )
        labels = {one.label: one.mean for one in store.trends.means(**window, by="attributes.tier")}
        assert labels == pytest.approx({"gold": 0.5, "free": 0.7})

    assert found == [(0, 2, 0), (1, 0, 1), (0, 0, 2), (0, 0, 0)]
    with pytest.raises(UsageError, match="unknown dimension 'user'"):
        store.rollups.update(breakdowns=["user"])


def test_dimensions_do_not_change_while_an_hour_is_written(
    store: TrackingStore, other_store: TrackingStore, scored: Any
) -> None:
    """Else the hour that is just being written would have no labels of the new one, and not be due either."""
    if store._database.dialect == "sqlite":
        pytest.skip("nobody else can write while somebody does")
    scored(0, prompt_version="7")
    store.rollups.update(breakdowns=["model"])
    scored(60, prompt_version="8")
    others = threading.Thread(target=other_store.rollups.update, args=[0], kwargs={"trend_by": ["prompt_version"]})

    def change(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO rollup ") and others.ident is None:
            others.start()
            others.join(0.5)  # it waits for this transaction

    event.listen(store._database.engine, "before_cursor_execute", change)
    store.rollups.update()
    event.remove(store._database.engine, "before_cursor_execute", change)
    others.join()
    store.rollups.update()

    assert {one.label: one.n for one in store.trends.means(scorer="mine", since=None, by="prompt_version")} == {
        "7": 1,
        "8": 1,
    }


def test_very_many_labels_count_as_one(store: TrackingStore, make: Make, clock: Any) -> None:
    """Ninety-nine of an hour and route are told apart, the most frequent ones; nothing is left out of the sum."""
    exchanges = [make(number / 100, model=f"m{number % 150}") for number in range(200)]
    store.exchanges.add(exchanges)
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=one.id, name="mine", value=0.5, recorded_at=clock.now) for one in exchanges]
    )

    store.rollups.update(breakdowns=["model"])

    found = {one.label: one.n for one in store.trends.means(scorer="mine", since=None, by="model")}
    assert (len(found), sum(found.values())) == (100, 200)
    assert found["m3"] == 2
    assert found["other"] == 200 - 2 * 50 - 49


def test_hours_are_rolled_up_newest_first(store: TrackingStore, scored: Any, make: Make) -> None:
    """As many as are asked for, and no younger ones than that."""
    scored(-3000, -60, 0, 59)
    eleven = make(0).started_at

    assert store.rollups.update(1) == 1
    assert _hours(store) == [eleven]
    assert store.rollups.update(1, before=eleven - timedelta(hours=1)) == 1
    assert _hours(store) == [eleven - timedelta(hours=50), eleven]
    assert (store.rollups.update(), store.rollups.update(), store.rollups.count_dirty_hours()) == (1, 0, 0)


def _hours(store: TrackingStore) -> list[datetime]:
    with store._database.read() as connection:
        query = rollup.select().where(rollup.c.span == HOUR, rollup.c.dimension == "")
        return sorted(row.start for row in connection.execute(query))


def test_what_is_deleted_leaves_the_sums(store: TrackingStore, scored: Any, make: Make, clock: Any) -> None:
    """Also the rows of hours that have nothing any more."""
    scored(-100, user="u1")
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "uniform", proxy=0.5) for one in store.sampling.list_undecided(9)], {}
    )
    store.rollups.update()
    store.retention.forget(user="u1")
    store.retention.prune(before=clock.now)
    store.rollups.update()

    with store._database.read() as connection:
        tables = ("rollup", "rollup_count", "rollup_proxy", "rollup_dirty_hour")
        assert [connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() for table in tables] == [0] * 4


def test_a_score_whose_exchange_is_gone_leaves_them_too(store: TrackingStore, scored: Any, clock: Any) -> None:
    """It came while its exchange went, which marked its hour; it goes for its age, or with an exchange of its id."""
    for take_out in (lambda _: store.retention.prune(before=clock.now), lambda one: _delete(store, one.id)):
        [exchange] = scored(-100)
        with store._database.write() as connection:
            connection.execute(text("DELETE FROM exchange"))
        store.rollups.update()
        assert store.trends.means(scorer="mine", since=None) != []
        take_out(exchange)
        assert store.trends.means(scorer="mine", since=None) == []


def _delete(store: TrackingStore, exchange_id: str) -> None:
    with store._database.write() as connection:
        delete_exchanges(connection, [exchange_id])


def test_an_hour_is_marked_by_each_transaction_that_changes_it(store: TrackingStore, make: Make) -> None:
    """One row per transaction and hour, however many exchanges; none by one that came to nothing."""
    store.exchanges.add([make(number, id=f"{uuid4().hex}") for number in range(3)])
    ids = [one.id for one in store.answers.list_exchanges()]
    store.sampling.assign_tasks([SamplingDecision(one, 1.0, "uniform") for one in ids], {"a": "f1"})
    with suppress(ZeroDivisionError), store._database.write() as connection:
        dirty_hours.mark_dirty(connection, [make().started_at])
        raise ZeroDivisionError
    store.exchanges.add([make(5)])

    with store._database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM rollup_dirty_hour")).scalar() == 1
