"""What a process is told of its own committed transactions, and what waits in the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage import Decision, Store
from germane.storage.db import tables
from germane.storage.db.commit_events import Ended, note

LEASE = timedelta(seconds=60)
SCORERS = {"a": "f1", "b": "f2"}
NOT_DRAWN = dict.fromkeys(SCORERS, Reason.NOT_DRAWN)
Make = Callable[..., Exchange]


@pytest.fixture
def told() -> Counter[Ended]:
    return Counter()


@pytest.fixture
def telling(migrated_url: str, clock: Any, told: Counter[Ended]) -> Iterator[Store]:
    """A store that tells of its transactions."""
    opened = Store(migrated_url, clock=clock, told=told.update)
    yield opened
    opened.close()


def test_what_is_told_is_what_the_tally_counts(telling: Store, make: Make, told: Counter[Ended]) -> None:
    """Each exchange stored or dropped, and each task's end with its reason, is told once."""
    telling.add([make(number, route=f"route-{number % 2}") for number in range(6)])
    telling.count_dropped({("shop", "route-0"): 3}, ["a", "b"], Reason.CAPTURE_LIMIT)
    exchanges = telling.unsampled(9)
    telling.assign([Decision(one.id, 1.0, "drawn") for one in exchanges[:4]], SCORERS)
    telling.assign([Decision(one.id, 1.0, "not_drawn", NOT_DRAWN) for one in exchanges[4:]], SCORERS)
    tasks = [task for claim in telling.claim("me", SCORERS, limit=4, lease=LEASE) for task in claim.tasks]
    ends: dict[str, Any] = {"a": {"value": 0.5}, "b": {"reason": Reason.UNPARSABLE}}
    scores = [Score(scorer=task.scorer, fingerprint=task.fingerprint, **ends[task.scorer]) for task in tasks]
    telling.complete("me", list(zip(tasks, scores, strict=True)))

    with telling._database.read() as connection:
        table = tables.tally.c
        query = select(table.route, table.scorer, table.outcome, table.reason, func.sum(table.count))
        query = query.where(table.outcome.in_(["scored", "skipped", "failed"]))
        rows = connection.execute(query.group_by(*list(query.selected_columns)[:4]))
        tally = {tuple(row[:4]): int(row[4]) for row in rows}
    assert {key: count for key, count in told.items() if key[1]} == tally
    assert {key: count for key, count in told.items() if not key[1]} == {
        ("route-0", "", "stored", ""): 3,
        ("route-1", "", "stored", ""): 3,
        ("route-0", "", "dropped", "capture_limit"): 3,
    }


def note_and_fail(store: Store) -> None:
    with store._database.write() as connection:
        note(connection, {("ask", "", "stored", ""): 1})
        raise ZeroDivisionError


def test_what_is_rolled_back_is_not_told(telling: Store, make: Make, told: Counter[Ended]) -> None:
    """A transaction that comes to nothing is told neither then nor with the next one on its connection."""
    telling.add([make()])
    told.clear()
    with pytest.raises(ZeroDivisionError):
        note_and_fail(telling)

    telling.declare("shop", ["ask"])
    assert not told


def test_what_is_begun_anew_takes_nothing_back(telling: Store, make: Make, told: Counter[Ended]) -> None:
    """Counts only grow: a task that was skipped and is scored after all has ended twice."""
    exchange = make()
    telling.add([exchange])
    telling.assign([Decision(exchange.id, 0.1, "not_drawn", NOT_DRAWN)], SCORERS)
    before = Counter(told)

    assert telling.consider([], [exchange.id], SCORERS) == 2
    assert told == before


def test_what_waits_is_read_with_how_long(store: Store, make: Make, clock: Any) -> None:
    """The oldest that is undecided or may be scored makes the lag; a candidate of the pool is not late."""
    assert (store.backlog(lately=LEASE).lag, bool(store.backlog(lately=LEASE).left)) == (timedelta(), False)
    decided, undecided = make(59), make(58)
    store.add([decided])
    store.assign([Decision(decided.id, 1.0, "candidate")], {"a": "f1"})
    clock.advance(minutes=5)
    with store._database.write() as connection:
        connection.execute(tables.scoring_task.update().values(not_before=None))
    assert store.backlog(lately=LEASE).lag == timedelta()
    with store._database.write() as connection:
        connection.execute(tables.scoring_task.update().values(not_before=clock()))
    assert store.backlog(lately=LEASE).lag == timedelta(minutes=5)
    store.add([undecided])

    found = store.backlog(lately=LEASE)
    assert found.lag == timedelta(minutes=7)
    assert found.left.undecided == 1
    assert [(one.scorer, one.ready) for one in found.left.tasks] == [("a", 1)]


def test_workers_count_that_told_of_themselves_lately(store: Store, clock: Any) -> None:
    """One that is gone for longer than the time given is no worker any more."""
    named = {"host": "h", "pid": 1, "service": "shop", "version": "0", "scorers": {}, "concurrency": 1, "in_flight": 0}
    with store._database.write() as connection:
        for number, seconds in enumerate((0, 59, 61)):
            seen = clock() - timedelta(seconds=seconds)
            row = {**named, "id": str(number), "started_at": seen, "seen_at": seen}
            connection.execute(insert(tables.worker).values(row))

    assert store.backlog(lately=LEASE).workers == 2
