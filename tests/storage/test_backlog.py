"""What waits is told by scorer, and counted no further than anybody needs to know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Reason
from germane.storage import Decision, Store
from germane.storage.queue.backlog import MANY

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"a": "f1", "b": "f2"}


@pytest.fixture
def busy(store: Store, make: Make, clock: Any) -> Store:
    """A store of which tasks of two scorers are ready, put off, running and abandoned, beside candidates of one."""
    store.add([make(number) for number in range(12)])
    ids = [one.id for one in store.unsampled(12)]
    store.assign([Decision(id_, 1.0, "drawn") for id_ in ids[:6]], SCORERS)
    store.claim("gone", {"b": "f2"}, limit=1, lease=LEASE)
    clock.advance(minutes=5)
    store.assign([Decision(id_, 1.0, "drawn") for id_ in ids[6:9]], SCORERS)
    tasks = [task for claim in store.claim("me", {"a": "f1"}, limit=5, lease=LEASE) for task in claim.tasks]
    until = clock.now + timedelta(minutes=9)
    store.postpone("me", tasks[:2], until=until, reason=Reason.JUDGE_TIMEOUT, error="no answer in 30 s")
    assert store.elect("sampler", "me", ttl=LEASE)
    store.assign([Decision(id_, None, "candidate") for id_ in ids[9:]], {"a": "f1"}, holder=("sampler", "me"))
    return store


def test_what_few_tasks_wait_for_is_counted_as_all_of_them_are(busy: Store) -> None:
    """The pulse says the same as counting every task does: what runs, and what is late, is counted once."""
    queue = busy.pulse().queue

    assert queue == busy.outstanding().tasks
    assert [(one.ready, one.postponed, one.running, one.candidates) for one in queue] == [(4, 2, 3, 3), (8, 0, 1, 0)]


def test_nothing_waits_where_nothing_was_assigned(store: Store) -> None:
    """A new database has no queue."""
    assert (store.pulse().queue, store.pulse().waiting, store.pulse().is_capped) == ((), 0, False)


def test_of_very_many_no_more_is_counted_than_anybody_needs_to_know(store: Store, fill: Callable[[str], None]) -> None:
    """The count stops, says so, and the oldest of those that are up first is still told."""
    fill("judge_timeout")
    pulse, (trouble,) = store.pulse(), store.troubles()

    assert [one.ready for one in pulse.queue] == [MANY]
    assert (pulse.waiting, pulse.retried, pulse.is_capped) == (MANY, MANY, True)
    assert pulse.oldest == pulse.queue[0].since
    assert (trouble.tasks, trouble.is_capped, trouble.error) == (MANY, True, "as it is")


@pytest.fixture
def fill(store: Store) -> Callable[[str], None]:
    """Writes more tasks of one scorer than are counted."""

    def write(reason: str) -> None:
        numbers = f"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= {MANY})"
        columns = "exchange_id, scorer, fingerprint, state, reason, error, attempts, first_pending_at, not_before"
        moment = "'2026-01-01 00:00:00+00'" if "postgresql" in store.name else "'2026-01-01 00:00:00'"
        values = f"CAST(n AS TEXT), 'a', 'f1', 'pending', '{reason}', 'as it is', 1, {moment}, {moment}"
        with store._database.write() as connection:
            connection.exec_driver_sql(f"INSERT INTO scoring_task ({columns}) {numbers} SELECT {values} FROM numbers")

    return write
