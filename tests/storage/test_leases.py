"""The law of leases, for every kind of leased rows: a row has at most one owner, and only its owner changes it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Table, and_, event, func, select, update
from tests.storage.conftest import NOON
from tests.storage.lease_users import LEASE, ROWS_PER_CLAIM, USERS, LeaseUser

from germane.errors import DatabaseUnreachable
from germane.storage import LeaseRenewal, TrackingStore
from germane.storage.db import leases
from germane.testing import Clock, engine_of, transaction

every_user = pytest.mark.parametrize("user", USERS, ids=str)
OWNERS = st.sampled_from(["a", "b", "c"])
SECONDS = st.integers(1, 120)
ROWS = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), OWNERS, SECONDS),
        st.tuples(st.just("renew"), OWNERS, SECONDS, ROWS),
        st.tuples(st.just("postpone"), OWNERS, SECONDS, ROWS),
        st.tuples(st.just("finish"), OWNERS, SECONDS, ROWS),
        st.tuples(st.just("release"), OWNERS, SECONDS),
        st.tuples(st.just("wait"), OWNERS, SECONDS),
    ),
    min_size=15,
    max_size=30,
)


def open_rows(store: TrackingStore, table: Table) -> int:
    """Return the number of rows that are not finished."""
    with transaction(store, read_only=True) as connection:
        return connection.execute(select(func.count()).where(table.c.due_at.is_not(None))).scalar_one()


@every_user
def test_only_the_owner_of_a_row_finishes_it(user: LeaseUser, store: TrackingStore, clock: Clock) -> None:
    """Nobody else claims it until its lease expires. Then it is claimed once more, and its former owner is too late."""
    user.add(store, 2)
    first = user.claim(store, "first")
    assert len(first) == 2
    clock.advance(seconds=LEASE.total_seconds() - 1)
    assert not user.claim(store, "second")
    clock.advance(seconds=1)
    second = user.claim(store, "second")
    assert len(second) == 2
    assert not user.claim(store, "third")

    assert user.finish(store, "first", first) == 0
    assert user.finish(store, "second", second) == 2
    assert user.finish(store, "second", second) == 0
    clock.advance(hours=1)
    assert not user.claim(store, "third")
    assert open_rows(store, user.table) == 0


@every_user
def test_an_owner_finishes_a_row_whose_lease_has_expired(user: LeaseUser, store: TrackingStore, clock: Clock) -> None:
    """As long as no other process has claimed the row, no work is wasted."""
    user.add(store, 2)
    claimed = user.claim(store, "owner")
    clock.advance(hours=1)

    assert user.finish(store, "owner", claimed) == 2


@every_user
def test_concurrent_processes_claim_each_row_once(user: LeaseUser, store: TrackingStore) -> None:
    """Three owners claim and finish rows at the same time; together they finish each row once."""
    user.add(store, 12)
    finished = Counter[str]()

    def work(owner: str) -> None:
        while open_rows(store, user.table):
            finished[owner] += user.finish(store, owner, user.claim(store, owner))

    threads = [threading.Thread(target=work, args=(f"owner-{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert finished.total() == 12


@every_user
@given(steps=STEPS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_leases_behave_like_a_model(user: LeaseUser, store: TrackingStore, steps: list[Any]) -> None:
    """Whatever owners do in whatever order, each row has the owner and the due time that the model expects."""
    table, now = user.table, NOON
    is_float = table.c.due_at.type.python_type is float

    def at(moment: datetime) -> Any:
        return moment.timestamp() if is_float else moment

    with transaction(store) as connection:
        count = connection.execute(select(func.count()).select_from(table)).scalar_one()
    if not count:
        user.add(store, 3)
    with transaction(store) as connection:
        connection.execute(update(table).values(lease_owner=None, due_at=at(NOON)))
        keys = connection.execute(select(*table.primary_key).order_by(*table.primary_key)).all()
        rows = [and_(*(column == value for column, value in zip(table.primary_key, key, strict=True))) for key in keys]
        model: list[tuple[str | None, datetime | None]] = [(None, NOON)] * len(rows)
        for action, owner, seconds, *number in steps:
            if action == "finish" and not table.c.due_at.nullable:
                continue  # finished rows are deleted
            later = now + timedelta(seconds=seconds)
            held = [index for index in number if model[index][0] == owner]
            if action == "claim":
                held = [index for index, (_, due_at) in enumerate(model) if due_at is not None and due_at <= now]
                found = connection.execute(leases.select_due(table, *table.primary_key), {"now": at(now), "limit": 9})
                assert {tuple(key) for key in found} == {tuple(keys[index]) for index in held}
                claim = leases.claim(table, owner=owner, until=at(later)).where(table.c.due_at <= at(now))
                assert connection.execute(claim).rowcount == len(held)
            elif action == "renew":
                assert leases.renew(connection, table, rows[number[0]], owner, at(later)) == len(held)
            elif action == "postpone":
                assert leases.postpone(connection, table, rows[number[0]], owner, at(later)) == len(held)
            elif action == "finish":
                assert leases.finish(connection, table, rows[number[0]], owner) == len(held)
            elif action == "release":
                held = [index for index, (holder, _) in enumerate(model) if holder == owner]
                released = leases.release(table, table.c.lease_owner == owner, at(now))
                assert connection.execute(released).rowcount == len(held)
            else:
                now = later
            after = {
                "claim": (owner, later),
                "renew": (owner, later),
                "postpone": (None, later),
                "release": (None, now),
                "finish": (None, None),
            }
            for index in held:
                model[index] = after[action]
            assert stored(connection, table) == [(owner, None if due is None else at(due)) for owner, due in model]


def stored(connection: Connection, table: Table) -> list[tuple[Any, ...]]:
    """Return the owners and due times of all rows."""
    query = select(table.c.lease_owner, table.c.due_at).order_by(*table.primary_key)
    return [tuple(row) for row in connection.execute(query)]


FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.storage.lease_users"])
CALLS = 4
"""Each process is killed after this many more statements and commits than the one before it."""


@pytest.mark.slow
@every_user
def test_killed_processes_lose_nothing(user: LeaseUser, store: TrackingStore, migrated_url: str) -> None:
    """Whatever a process was about to do when it was killed, others finish its rows once their leases have expired."""
    user.add(store, 8)
    before = user.effects(store)
    kills = 0
    while open_rows(store, user.table):
        process = FORKED.Process(target=work_until_killed, args=(migrated_url, user.name, kills))
        process.start()
        process.join()
        assert process.exitcode in {0, -signal.SIGKILL}
        kills += process.exitcode != 0

    assert kills >= 3
    assert user.effects(store) - before in {0, 8}
    assert not user.claim(store, "another")


def work_until_killed(url: str, name: str, kills: int) -> None:
    """Claim and finish rows, and kill this process right before one of its statements or commits."""
    (user,) = (one for one in USERS if one.name == name)
    left = kills * CALLS + 3

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    # The leases of the killed processes have expired.
    store = TrackingStore(url, clock=lambda: NOON + kills * LEASE)
    event.listen(engine_of(store), "before_cursor_execute", count)
    event.listen(engine_of(store), "commit", count)
    while claimed := user.claim(store, f"process-{kills}"):
        assert len(claimed) <= ROWS_PER_CLAIM
        user.finish(store, f"process-{kills}", claimed)
    store.close()


class Calls:
    """Records when a lease is renewed and released, and answers as told."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers, self.made = list(answers), list[str]()
        self.renewed, self.proceed = threading.Event(), threading.Event()
        self.proceed.set()

    def renew(self) -> bool:
        self.made.append("renew")
        self.renewed.set()
        assert self.proceed.wait(60)
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer

    def release(self) -> None:
        self.made.append("release")


def renewal_of(calls: Calls, lease: float = 0.01) -> LeaseRenewal:
    return LeaseRenewal(calls.renew, release=calls.release, lease=timedelta(seconds=lease), name="test-lease")


def wait_for_calls(calls: Calls, number: int) -> None:
    """Wait until the lease was renewed a number of times."""
    while len(calls.made) < number:
        assert calls.renewed.wait(60)
        calls.renewed.clear()


def test_a_lease_is_renewed_until_the_block_ends() -> None:
    """It is then released, and never renewed again. Errors of the database do not end the renewals."""
    calls = Calls(True, DatabaseUnreachable("gone"), True)
    with renewal_of(calls) as renewal:
        wait_for_calls(calls, 4)

    assert not renewal.is_lost
    assert calls.made == ["renew"] * (len(calls.made) - 1) + ["release"]


def test_a_lost_lease_is_neither_renewed_nor_released() -> None:
    """Another process holds it."""
    calls = Calls(True, False)
    with renewal_of(calls) as renewal:
        while not renewal.is_lost:
            time.sleep(0.001)

    assert calls.made == ["renew", "renew"]


def test_stopping_does_not_wait_for_a_hanging_renewal() -> None:
    """The renewal still precedes the release, so that no lease remains."""
    calls = Calls()
    calls.proceed.clear()
    renewal = renewal_of(calls)
    renewal.start()
    wait_for_calls(calls, 1)

    assert not renewal.stop(0.01)
    calls.proceed.set()
    assert renewal.stop(60)
    assert calls.made == ["renew", "release"]


def test_a_renewal_that_never_started_is_stopped_at_once() -> None:
    """A process without a scorer never starts its heartbeat."""
    assert renewal_of(Calls()).stop(10)


def test_a_lease_can_be_renewed_early() -> None:
    """After the clock was set back, the renewal does not wait for the end of the interval."""
    calls = Calls()
    with renewal_of(calls, lease=3600) as renewal:
        renewal.renew_now()
        wait_for_calls(calls, 1)
