"""Rollups under concurrency: nothing is lost with several processes, killed processes and concurrent writers."""

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
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
TOTALS_QUERY = (
    "SELECT coalesce(sum(n), 0), coalesce(sum(sum_wy), 0) FROM rollup WHERE span = :span AND dimension = :dimension"
)


@pytest.fixture
def record_scores(store: TrackingStore, make: Make, clock: Any) -> Callable[..., list[Exchange]]:
    """Write exchanges with recorded scores."""

    def write(*minutes: float, value: float = 0.5, **given: Any) -> list[Exchange]:
        exchanges = [make(minute, **given) for minute in minutes]
        store.exchanges.add(exchanges)
        store.exchanges.record_scores(
            [
                RecordedScore(exchange_id=exchange.id, name="mine", value=value, recorded_at=clock.now)
                for exchange in exchanges
            ]
        )
        return exchanges

    return write


def rollup_totals(store: TrackingStore, span: int = HOUR, dimension: str = "route") -> tuple[int, float]:
    with transaction(store, read_only=True) as connection:
        n, total = connection.execute(text(TOTALS_QUERY), {"span": span, "dimension": dimension}).one()
    return int(n), float(total)


def test_the_dirty_hours_of_a_window_are_those_that_overlap_it(store: TrackingStore, make: Make) -> None:
    """The hour in which the window begins is one of them, and the one that begins with its end is not."""
    hours = [dirty_hours.start_of_hour(make().started_at) + timedelta(hours=number) for number in range(5)]
    with transaction(store) as connection:
        dirty_hours.mark_dirty(connection, hours)
        dirty_hours.write_pending(connection)

        assert dirty_hours.dirty_between(connection, hours[1] + timedelta(minutes=9), hours[3]) == hours[1:3]
        assert dirty_hours.dirty_between(connection, hours[4], hours[4] + timedelta(minutes=1)) == hours[4:]


def test_concurrent_rollups_and_writers_lose_no_counts(migrated_url: str, make: Make, clock: Any) -> None:
    """With four writers and three rollup threads on the same hours, every score ends up in the sums."""
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

    def roll_up(_: int) -> None:
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
    rollup_threads = [threading.Thread(target=guarded, args=(roll_up, number)) for number in range(3)]
    for thread in (*writers, *rollup_threads):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in rollup_threads:
        thread.join()

    store = TrackingStore(migrated_url, clock=clock)
    store.rollups.update()
    assert problems == []
    assert store.rollups.count_dirty_hours() == 0
    assert [rollup_totals(store, span) for span in (3_600, 86_400, 604_800)] == [(48, 24.0)] * 3
    store.close()


class Killed(BaseException):
    """Simulate the process being killed."""


@pytest.mark.slow
@pytest.mark.parametrize("statement_number", range(1, 40, 3))
def test_killed_rollup_is_completed_by_the_next_one(
    store: TrackingStore, other_store: TrackingStore, record_scores: Any, statement_number: int
) -> None:
    """If a rollup is killed at any statement, unfinished hours stay dirty, and readers always see correct sums."""
    record_scores(0, 30, 90)
    count = [0]

    def kill(*_: Any) -> None:
        count[0] += 1
        if count[0] == statement_number:
            raise Killed

    event.listen(engine_of(store), "before_cursor_execute", kill)
    with suppress(Killed):
        store.rollups.update(breakdowns=["model"])
    event.remove(engine_of(store), "before_cursor_execute", kill)

    assert [summary.n for summary in other_store.trends.summary()] == [3]
    other_store.rollups.update(breakdowns=["model"])
    assert other_store.trends.list_rolled_dimensions() == ("model",)
    assert (
        other_store.rollups.count_dirty_hours(),
        rollup_totals(other_store),
        rollup_totals(other_store, dimension="model"),
    ) == (
        0,
        (3, 1.5),
        (3, 1.5),
    )


def test_a_rollup_of_outdated_rows_is_discarded(
    store: TrackingStore, other_store: TrackingStore, record_scores: Any, clock: Any
) -> None:
    """Sums are not written if another process has since rolled up a change to the hour."""
    [exchange] = record_scores(0)

    def overtake(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM tally" in statement and not overtaken:
            overtaken.append(True)
            clock.advance(seconds=1)
            other_store.exchanges.record_scores(
                [RecordedScore(exchange_id=exchange.id, name="mine", value=0.9, recorded_at=clock.now)]
            )
            other_store.rollups.update()

    overtaken: list[bool] = []
    event.listen(engine_of(store), "before_cursor_execute", overtake)
    store.rollups.update()
    event.remove(engine_of(store), "before_cursor_execute", overtake)

    assert overtaken
    assert rollup_totals(store) == (1, 0.9)
    assert store.rollups.count_dirty_hours() == 0


def test_change_committed_during_a_rollup_is_rolled_up_later(
    store: TrackingStore, other_store: TrackingStore, record_scores: Any, clock: Any
) -> None:
    """The transaction's hour stays dirty."""
    record_scores(0)
    if engine_of(store).dialect.name == "sqlite":
        pytest.skip("SQLite allows one writer at a time")
    [exchange] = record_scores(1)
    with transaction(other_store) as connection:
        connection.execute(text("UPDATE score SET value = 1.0 WHERE exchange_id = :id"), {"id": exchange.id})
        dirty_hours.mark_dirty(connection, [exchange.started_at])
        dirty_hours.write_pending(connection)
        store.rollups.update()
        assert rollup_totals(store) == (2, 1.0)

    assert store.rollups.count_dirty_hours() == 1
    assert store.trends.summary()[0].mean == pytest.approx(0.75)
    store.rollups.update()
    assert rollup_totals(store) == (2, 1.5)


def test_changed_breakdowns_apply_to_all_hours(store: TrackingStore, record_scores: Any) -> None:
    """Removed breakdowns are deleted; trends are correct before, during and after the change."""
    record_scores(0, model="m1", attributes={"tier": "gold"})
    record_scores(200, model="m2", attributes={"tier": "free"}, value=0.7)
    window: dict[str, Any] = {"scorer": "mine", "since": None}

    found = []
    for breakdowns, limit in ((["model"], None), (["attributes.tier"], 1), (None, None), ([], None)):
        store.rollups.update(limit, breakdowns=breakdowns)
        found.append(
            (
                store.rollups.count_dirty_hours(),
                rollup_totals(store, dimension="model")[0],
                rollup_totals(store, dimension="attributes.tier")[0],
            )
        )
        labels = {mean.label: mean.mean for mean in store.trends.means(**window, by="attributes.tier")}
        assert labels == pytest.approx({"gold": 0.5, "free": 0.7})

    assert found == [(0, 2, 0), (1, 0, 1), (0, 0, 2), (0, 0, 0)]
    with pytest.raises(UsageError, match="unknown dimension 'user'"):
        store.rollups.update(breakdowns=["user"])


def test_changing_breakdowns_waits_until_the_current_hour_is_rolled_up(
    store: TrackingStore, other_store: TrackingStore, record_scores: Any
) -> None:
    """Otherwise, that hour would lack the new labels without being dirty."""
    if engine_of(store).dialect.name == "sqlite":
        pytest.skip("SQLite allows one writer at a time")
    record_scores(0, prompt_version="7")
    store.rollups.update(breakdowns=["model"])
    record_scores(60, prompt_version="8")
    others = threading.Thread(target=other_store.rollups.update, args=[0], kwargs={"breakdowns": ["prompt_version"]})

    def change(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO rollup ") and others.ident is None:
            others.start()
            others.join(0.5)  # the change waits for this transaction

    event.listen(engine_of(store), "before_cursor_execute", change)
    store.rollups.update()
    event.remove(engine_of(store), "before_cursor_execute", change)
    others.join()
    store.rollups.update()

    assert {mean.label: mean.n for mean in store.trends.means(scorer="mine", since=None, by="prompt_version")} == {
        "7": 1,
        "8": 1,
    }


def test_rare_breakdown_values_are_merged_into_other(store: TrackingStore, make: Make, clock: Any) -> None:
    """The 99 most frequent labels per hour and route are kept; the total includes all."""
    exchanges = [make(number / 100, model=f"m{number % 150}") for number in range(200)]
    store.exchanges.add(exchanges)
    store.exchanges.record_scores(
        [
            RecordedScore(exchange_id=exchange.id, name="mine", value=0.5, recorded_at=clock.now)
            for exchange in exchanges
        ]
    )

    store.rollups.update(breakdowns=["model"])

    found = {mean.label: mean.n for mean in store.trends.means(scorer="mine", since=None, by="model")}
    assert (len(found), sum(found.values())) == (100, 200)
    assert found["m3"] == 2
    assert found["other"] == 200 - 2 * 50 - 49


def test_rollup_processes_the_newest_hours_first(store: TrackingStore, record_scores: Any, make: Make) -> None:
    """The limit and ``before`` restrict which hours are processed."""
    record_scores(-3000, -60, 0, 59)
    eleven = make(0).started_at

    assert store.rollups.update(1) == 1
    assert _rolled_up_hours(store) == [eleven]
    assert store.rollups.update(1, before=eleven - timedelta(hours=1)) == 1
    assert _rolled_up_hours(store) == [eleven - timedelta(hours=50), eleven]
    assert (store.rollups.update(), store.rollups.update(), store.rollups.count_dirty_hours()) == (1, 0, 0)


def _rolled_up_hours(store: TrackingStore) -> list[datetime]:
    with transaction(store, read_only=True) as connection:
        query = rollup.select().where(rollup.c.span == HOUR, rollup.c.dimension == "")
        return sorted(row.start for row in connection.execute(query))


def test_deleted_exchanges_are_removed_from_rollups(
    store: TrackingStore, record_scores: Any, make: Make, clock: Any
) -> None:
    """Rows of hours without data are deleted too."""
    record_scores(-100, user="u1")
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 1.0, "uniform", proxy=0.5) for exchange in store.sampling.list_undecided(9)], {}
    )
    store.rollups.update()
    store.retention.forget(user="u1")
    store.retention.prune(before=clock.now)
    store.rollups.update()

    with transaction(store, read_only=True) as connection:
        tables = ("rollup", "rollup_count", "rollup_proxy", "rollup_dirty_hour")
        assert [connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() for table in tables] == [0] * 4


def test_deleting_an_orphaned_score_updates_the_rollups(store: TrackingStore, record_scores: Any, clock: Any) -> None:
    """Both deletion by age and deletion by exchange ID mark the hour as dirty."""
    for delete_score in (lambda _: store.retention.prune(before=clock.now), lambda one: _delete(store, one)):
        [exchange] = record_scores(-100)
        with transaction(store) as connection:
            connection.execute(text("DELETE FROM exchange"))
        store.rollups.update()
        assert store.trends.means(scorer="mine", since=None) != []
        delete_score(exchange)
        assert store.trends.means(scorer="mine", since=None) == []


def _delete(store: TrackingStore, one: Exchange) -> None:
    with transaction(store) as connection:
        delete_exchanges(connection, {one.id: one.started_at})


def test_each_transaction_marks_its_hours_dirty_once(store: TrackingStore, make: Make) -> None:
    """Each transaction adds one row per hour; a rolled-back transaction leaves none."""
    store.exchanges.add([make(number, id=f"{uuid4().hex}") for number in range(3)])
    ids = [exchange.id for exchange in store.answers.list_exchanges()]
    store.sampling.assign_tasks([SamplingDecision(exchange_id, 1.0, "uniform") for exchange_id in ids], {"a": "f1"})
    with suppress(ZeroDivisionError), transaction(store) as connection:
        dirty_hours.mark_dirty(connection, [make().started_at])
        raise ZeroDivisionError
    store.exchanges.add([make(5)])

    with transaction(store, read_only=True) as connection:
        assert connection.execute(text("SELECT count(*) FROM rollup_dirty_hour")).scalar() == 1
