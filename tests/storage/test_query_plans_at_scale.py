"""Where very many tasks wait, the queries of the queue read no more of them than they take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.storage.test_query_plans import LEASE, Make, recorded

from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore

MANY = 20_000
FILL = f"""
INSERT INTO exchange (id, trace_id, span_id, service, route, contexts, history, attributes, status, started_at,
    duration, sampling_key, traced, sampling_reason)
SELECT 'old-' || number, '', '', 'shop', 'ask', '[]', '[]', '{{}}', 'ok', '2026-01-01Z', 0, 1, true, 'drawn'
FROM generate_series(1, {MANY}) AS number;
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, claims, first_pending_at, not_before)
SELECT 'old-' || number, scorer, 'f1', 'pending', 0, '2026-01-01Z', '2026-01-01Z'
FROM generate_series(1, {MANY}) AS number, (VALUES ('a'), ('b')) AS scorers (scorer)
"""


def test_a_new_database_is_fast_before_it_has_statistics(
    postgresql: Any, migrated_database: str, make: Make, clock: Any
) -> None:
    """Deciding, claiming and completing do not read all tasks, although PostgreSQL knows nothing of them yet."""
    store = TrackingStore(postgresql.url(migrated_database), clock=clock)
    with store._database.write() as connection:
        connection.exec_driver_sql(FILL)

    def work() -> None:
        store.exchanges.add([make(number) for number in range(500)])
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "sampled") for one in store.sampling.list_undecided(500)],
            {"a": "f1", "b": "f1"},
        )
        claims = store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=64, lease=LEASE)
        tasks = [task for claim in claims for task in claim.tasks]
        assert len(tasks) == 128
        store.queue.complete_tasks(
            "me", [(task, Score(scorer=task.scorer, fingerprint="f1", value=0.5)) for task in tasks]
        )

    scans = []
    for statement, parameters in recorded(store, work).values():
        with store._database.read() as connection:
            plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
        scans += [(statement, step) for step in plan if "Seq Scan on scoring_task" in step]
    store.close()

    assert scans == []


FOREIGN = f"""
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {MANY})
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, claims, first_pending_at, not_before)
SELECT 'foreign-' || number, 'foreign', 'f1', 'pending', 0, '2025-01-01 00:00:00', '2025-01-01 00:00:00' FROM numbers
"""


BEHIND = f"""
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {MANY})
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, claims, first_pending_at, not_before)
SELECT 'behind-' || number, scorer, 'f1', 'pending', 0, '2026-03-01 11:59:00.000000', '2026-03-01 11:59:00.000000'
FROM numbers, (SELECT 'a' AS scorer UNION ALL SELECT 'b') AS two
"""


def test_a_claim_costs_the_same_however_much_waits(sqlite_store: TrackingStore, make: Make, clock: Any) -> None:
    """Tasks of other scorers in front of the queue, and its own length: SQLite takes about the same steps."""
    taken = []
    for more in ("SELECT 1", FOREIGN, BEHIND):
        exchanges = [make(number / 2) for number in range(64)]
        sqlite_store.exchanges.add(exchanges)
        sqlite_store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"a": "f1", "b": "f1"}
        )
        with sqlite_store._database.write() as connection:
            connection.exec_driver_sql(more)
        taken.append(
            steps(
                sqlite_store,
                lambda: sqlite_store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=64, lease=LEASE),
            )
        )

    assert max(taken) < 2 * min(taken)


def steps(store: TrackingStore, work: Callable[[], list[Any]]) -> int:
    """Return how many hundreds of steps SQLite takes to do the work, which finds something."""
    counted = []
    with store._database.read() as connection:
        driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: counted.append(1), 100)
    assert work()
    driver.set_progress_handler(None, 100)
    return len(counted)


def test_postgresql_reads_no_more_tasks_than_it_claims(
    postgresql: Any, migrated_database: str, make: Make, clock: Any
) -> None:
    """However many are another scorer's or wait behind; neither before it has statistics nor with them."""
    store = TrackingStore(postgresql.url(migrated_database), clock=clock)
    with store._database.write() as connection:
        connection.exec_driver_sql(FOREIGN)
        connection.exec_driver_sql(BEHIND.replace("2026-03-01 11:59:00.000000", "2026-03-01 11:59Z"))
    for statistics in ("SELECT 1", "ANALYZE"):
        exchanges = [make(number / 2) for number in range(64)]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges], {"a": "f1", "b": "f1"}
        )
        with store._database.write() as connection:
            connection.exec_driver_sql(statistics)
        claiming = recorded(
            store, lambda: tasks_taken(store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=4, lease=LEASE), 8)
        )
        (heads,) = [statement for statement in claiming.values() if "heads" in statement[0]]
        with store._database.read() as connection:
            (plan,) = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {heads[0]}", heads[1]).scalar_one()
        assert rows_read(plan["Plan"]) < 100
    store.close()


def tasks_taken(claims: list[Any], count: int) -> None:
    """Make sure that a claim found something."""
    assert sum(len(claim.tasks) for claim in claims) == count


def rows_read(plan: dict[str, Any]) -> float:
    """Return how many tasks the scans of a plan looked at."""
    removed = sum(plan.get(name, 0) for name in plan if name.startswith("Rows Removed"))
    own = (plan["Actual Rows"] + removed) * plan["Actual Loops"] if plan.get("Relation Name") == "scoring_task" else 0
    return own + sum(map(rows_read, plan.get("Plans", [])))


def test_reading_a_window_by_index_is_held_for_cheap_on_postgresql(
    postgresql: Any, migrated_database: str, make: Make
) -> None:
    """As it is: else all of the tally is read for one day. Only while windows are read, and with floats throughout."""
    store = TrackingStore(postgresql.url(migrated_database))
    window = {"since": make(0).started_at, "until": make(9).started_at}
    read = recorded(store, lambda: store.trends.over_time(scorer="a", bucket=timedelta(minutes=5), **window))
    prices = []
    for snapshot in (True, False):
        with store._database.read(snapshot=snapshot) as connection:
            prices.append(connection.exec_driver_sql("SHOW random_page_cost").scalar_one())
    store.close()

    assert prices == ["1.1", "4"]
    assert "FROM score" in " ".join(read)
    assert not any("NUMERIC" in statement for statement, _ in read.values())
