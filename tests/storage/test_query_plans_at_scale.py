"""Queue queries with a large backlog: they read no more tasks than they claim."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.storage.test_query_plans import LEASE, Make, record_statements

from germane.score import Score
from germane.storage import SamplingDecision, TrackingStore
from germane.testing import transaction

BACKLOG_SIZE = 20_000
FILL_QUEUE = f"""
INSERT INTO exchange (id, trace_id, span_id, service, route, contexts, history, attributes, status, started_at,
    duration, sampling_key, traced, sampling_reason)
SELECT 'old-' || number, '', '', 'shop', 'ask', '[]', '[]', '{{}}', 'ok', '2026-01-01Z', 0, 1, true, 'drawn'
FROM generate_series(1, {BACKLOG_SIZE}) AS number;
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, claims, first_pending_at, due_at)
SELECT 'old-' || number, scorer, 'f1', 'pending', 0, '2026-01-01Z', '2026-01-01Z'
FROM generate_series(1, {BACKLOG_SIZE}) AS number, (VALUES ('a'), ('b')) AS scorers (scorer)
"""


def test_queue_queries_use_indexes_before_statistics_exist(
    postgresql: Any, migrated_database: str, make: Make, clock: Any
) -> None:
    """Assigning, claiming and completing do not scan all tasks on a PostgreSQL database without statistics."""
    store = TrackingStore(postgresql.url(migrated_database), clock=clock)
    with transaction(store) as connection:
        connection.exec_driver_sql(FILL_QUEUE)

    def work() -> None:
        store.exchanges.add([make(number) for number in range(500)])
        store.sampling.assign_tasks(
            [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in store.sampling.list_undecided(500)],
            {"a": "f1", "b": "f1"},
        )
        claims = store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=64, lease=LEASE)
        tasks = [task for claim in claims for task in claim.tasks]
        assert len(tasks) == 128
        store.queue.complete_tasks(
            "me", [(task, Score(scorer=task.scorer, fingerprint="f1", value=0.5)) for task in tasks]
        )

    scans = []
    for statement, parameters in record_statements(store, work).values():
        with transaction(store, read_only=True) as connection:
            plan = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
        scans += [(statement, step) for step in plan if "Seq Scan on scoring_task" in step]
    store.close()

    assert scans == []


FILL_OTHER_SCORER = f"""
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {BACKLOG_SIZE})
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, claims, first_pending_at, due_at)
SELECT 'foreign-' || number, 'foreign', 'f1', 'pending', 0, '2025-01-01 00:00:00', '2025-01-01 00:00:00' FROM numbers
"""


FILL_LATER_TASKS = f"""
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {BACKLOG_SIZE})
INSERT INTO scoring_task (exchange_id, scorer, fingerprint, state, claims, first_pending_at, due_at)
SELECT 'behind-' || number, scorer, 'f1', 'pending', 0, '2026-03-01 11:59:00.000000', '2026-03-01 11:59:00.000000'
FROM numbers, (SELECT 'a' AS scorer UNION ALL SELECT 'b') AS two
"""


def test_claim_cost_is_independent_of_the_backlog(sqlite_store: TrackingStore, make: Make, clock: Any) -> None:
    """Tasks of other scorers and later tasks at most double the number of SQLite steps."""
    step_counts = []
    for fill in ("SELECT 1", FILL_OTHER_SCORER, FILL_LATER_TASKS):
        exchanges = [make(number / 2) for number in range(64)]
        sqlite_store.exchanges.add(exchanges)
        sqlite_store.sampling.assign_tasks(
            [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges], {"a": "f1", "b": "f1"}
        )
        with transaction(sqlite_store) as connection:
            connection.exec_driver_sql(fill)
        step_counts.append(
            count_sqlite_steps(
                sqlite_store,
                lambda: sqlite_store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=64, lease=LEASE),
            )
        )

    assert max(step_counts) < 2 * min(step_counts)


def count_sqlite_steps(store: TrackingStore, work: Callable[[], list[Any]]) -> int:
    """Return the number of SQLite virtual machine steps, in hundreds, for work that returns rows."""
    ticks = []
    with transaction(store, read_only=True) as connection:
        driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: ticks.append(1), 100)
    assert work()
    driver.set_progress_handler(None, 100)
    return len(ticks)


def test_claiming_tasks_on_postgresql_reads_only_a_few_rows(
    postgresql: Any, migrated_database: str, make: Make, clock: Any
) -> None:
    """The number of rows read is small for any backlog, before and after ANALYZE."""
    store = TrackingStore(postgresql.url(migrated_database), clock=clock)
    with transaction(store) as connection:
        connection.exec_driver_sql(FILL_OTHER_SCORER)
        connection.exec_driver_sql(FILL_LATER_TASKS.replace("2026-03-01 11:59:00.000000", "2026-03-01 11:59Z"))
    for statistics in ("SELECT 1", "ANALYZE"):
        exchanges = [make(number / 2) for number in range(64)]
        store.exchanges.add(exchanges)
        store.sampling.assign_tasks(
            [SamplingDecision(exchange.id, 1.0, "sampled") for exchange in exchanges], {"a": "f1", "b": "f1"}
        )
        with transaction(store) as connection:
            connection.exec_driver_sql(statistics)
        claiming = record_statements(
            store,
            lambda: assert_task_count(store.queue.claim_tasks("me", {"a": "f1", "b": "f1"}, limit=4, lease=LEASE), 8),
        )
        (heads,) = [statement for statement in claiming.values() if "heads" in statement[0]]
        with transaction(store, read_only=True) as connection:
            (plan,) = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {heads[0]}", heads[1]).scalar_one()
        assert count_rows_read(plan["Plan"]) < 100
    store.close()


def assert_task_count(claims: list[Any], count: int) -> None:
    """Check the number of claimed tasks."""
    assert sum(len(claim.tasks) for claim in claims) == count


def count_rows_read(plan: dict[str, Any]) -> float:
    """Return the number of tasks that the scans of a plan read."""
    removed = sum(plan.get(name, 0) for name in plan if name.startswith("Rows Removed"))
    own = (plan["Actual Rows"] + removed) * plan["Actual Loops"] if plan.get("Relation Name") == "scoring_task" else 0
    return own + sum(map(count_rows_read, plan.get("Plans", [])))


def test_snapshot_reads_on_postgresql_lower_the_random_page_cost(
    postgresql: Any, migrated_database: str, make: Make
) -> None:
    """With the default cost, a one-day window would scan the whole tally. Sums use floats, not NUMERIC."""
    store = TrackingStore(postgresql.url(migrated_database))
    window = {"since": make(0).started_at, "until": make(9).started_at}
    read = record_statements(store, lambda: store.trends.over_time(scorer="a", bucket=timedelta(minutes=5), **window))
    prices = []
    for snapshot in (True, False):
        with transaction(store, read_only=True, snapshot=snapshot) as connection:
            prices.append(connection.exec_driver_sql("SHOW random_page_cost").scalar_one())
    store.close()

    assert prices == ["1.1", "4"]
    assert "FROM score" in " ".join(read)
    assert not any("NUMERIC" in statement for statement, _ in read.values())
