"""The queue of scoring tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
    update,
)

from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.score import Score, UnscoredReason
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import EXCHANGES, batched
from germane.storage.db.tables import exchange, scoring_task, worker
from germane.storage.queue import erase_text, rescore
from germane.storage.queue.rescore import RescoreResult, ScoringPair
from germane.storage.queue.tasks import Result, ScoringTask, TaskClaim, count_unpaid, lock_owned_tasks, write_results
from germane.storage.quota import budget_ledger
from germane.storage.workers import HEARTBEAT_TIMEOUT

MAX_CLAIMS: Final = 5
"""Number of claims without a result after which a task fails."""
MAX_CONCURRENT_OWNERS: Final = 32
"""Expected maximum number of owners that claim at once. With more, an owner may get only some of the ready tasks."""
_BETWEEN = literal_column("' '", Text)
_LATEST = ("reason", "error")


class TaskQueue(StoreComponent):
    """Scoring tasks, which are claimed under a lease and finished exactly once."""

    def claim_tasks(
        self, owner: str, scorers: Mapping[str, str], *, limit: int, lease: timedelta, preferred: Sequence[str] = ()
    ) -> list[TaskClaim]:
        """Claim all ready tasks of the given scorers for up to ``limit`` exchanges, oldest first.

        A task is ready if it is pending and due, or running under an expired lease. A task that has been claimed too
        often without ever finishing is marked as failed and not returned.

        Args:
            owner: Id of the claiming process.
            scorers: Fingerprints by scorer name. Other tasks are not claimed and do not slow down the query.
            limit: Maximum number of exchanges.
            lease: Duration of the claim unless ``workers.heartbeat`` renews it.
            preferred: Ids of the exchanges whose spans this process holds, oldest first. Their tasks are claimed first,
                even while they are reserved for this process.
        """
        if not scorers:
            return []
        with self._database.write() as connection:
            now = self._context.now(connection)
            rows = _lock_tasks(connection, scorers, preferred, limit, now)
            for ids in batched([row["id"] for row in rows]):
                connection.execute(_TAKE, {"ids": ids, "owner": owner, "lease_end": now + lease})
            claimed: dict[str, list[ScoringTask]] = {}
            failed: list[Result] = []
            for row in rows:
                values = {name: row[name] for name in ScoringTask.__slots__}
                task = ScoringTask(**values | {"claims": row["claims"] + 1})
                if row["claims"] >= MAX_CLAIMS:
                    failed.append((task, _crash(row, now)))
                else:
                    claimed.setdefault(task.exchange_id, []).append(task)
            if failed:
                held = lock_owned_tasks(connection, owner, [task for task, _ in failed])
                write_results(connection, self._context.process, failed, held, now)
            exchanges: list[Exchange] = []
            for batch in batched(list(claimed)):
                exchanges += map(EXCHANGES.decode, connection.execute(_EXCHANGES, {"ids": batch}).mappings())
        exchanges.sort(key=lambda each: (each.started_at, each.id))
        return [TaskClaim(each, tuple(sorted(claimed[each.id], key=attrgetter("id")))) for each in exchanges]

    def complete_tasks(
        self, owner: str, results: Sequence[tuple[ScoringTask, Score]]
    ) -> list[tuple[ScoringTask, Score]]:
        """Write the results of tasks, and return the results that were written.

        Tasks that are already completed, or that another owner has claimed in the meantime, are not changed.
        """
        erases = self._context.erase_after_scoring
        stored = [(task, erase_text.without_text(score)) for task, score in results] if erases else list(results)
        with self._database.write() as connection:
            held = lock_owned_tasks(connection, owner, [task for task, _ in stored])
            first: dict[int, Result] = {}
            for task, score in stored:
                if task.id in held:
                    first.setdefault(task.id, (task, score))
            written = list(first.values())
            write_results(connection, self._context.process, written, held, self._context.local_time())
            if erases:
                closed = [task.exchange_id for task, _ in written]
                erase_text.erase_closed_exchanges(connection, closed, self._context.now(connection))
            # Exchanges that the budget did not cover cost nothing, so they must not lower the cost per exchange.
            over_budget = [task for task, score in written if score.reason is UnscoredReason.BUDGET]
            if unpaid := count_unpaid(connection, over_budget):
                budget_ledger.count_selected(connection, -unpaid, self._context.now(connection))
        first_results = {task.id: (task, score) for task, score in reversed(results)}
        return [first_results[task.id] for task, _ in written]

    def postpone_tasks(
        self, owner: str, postponed: Sequence[ScoringTask], *, until: datetime, reason: UnscoredReason, error: str
    ) -> None:
        """Requeue tasks that this owner has claimed, to be retried at ``until``.

        ``until`` is a time of this process's clock.
        """
        columns = scoring_task.c
        values: dict[str, Any] = {"state": "pending", "reason": reason.value, "error": clean_text(error)}
        values |= {"claims": columns.claims - 1, "retries": columns.retries + 1}
        with self._database.write() as connection:
            # This process's clock may differ from the shared one.
            retry_at = self._context.now(connection) + (until - self._context.local_time())
            for ids in batched([task.id for task in postponed]):
                leases.postpone(connection, scoring_task, columns.id.in_(ids), owner, retry_at, **values)

    def release_tasks(self, owner: str) -> int:
        """Requeue all tasks that this owner has claimed, as if they had never been claimed. Return their number."""
        columns = scoring_task.c
        released = leases.release(scoring_task, columns.lease_owner == owner, columns.first_pending_at)
        with self._database.write() as connection:
            return connection.execute(released.values(state="pending", claims=columns.claims - 1)).rowcount

    def release_reserved_tasks(self, scorers: Mapping[str, str], *, stopping: str | None = None) -> None:
        """Let all workers claim the tasks that are reserved for dead workers, or for a worker that is stopping.

        Tasks of other scorers are not changed. ``stopping`` is the id of the worker that is stopping.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            is_alive = (worker.c.seen_at >= now - HEARTBEAT_TIMEOUT, worker.c.id != (stopping or ""))
            alive = select(worker.c.id).where(*is_alive)
            for scorer, fingerprint in scorers.items():
                reserved = (
                    select(scoring_task.c.id)
                    .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
                    .where(scoring_task.c.scorer == scorer, scoring_task.c.fingerprint == fingerprint)
                    .where(scoring_task.c.due_at > now, _is_new)
                    .where(exchange.c.span_holder.is_not(None), exchange.c.span_holder.not_in(alive))
                )
                for ids in batched(connection.execute(reserved).scalars().all()):
                    due = update(scoring_task).where(scoring_task.c.id.in_(ids), _is_new)
                    connection.execute(due.values(due_at=scoring_task.c.first_pending_at))

    def rescore(
        self, asked: Sequence[ScoringPair], scorers: Mapping[str, str], *, budgeted: bool = False
    ) -> RescoreResult:
        """Queue answers for rescoring. Pass at most a few thousand per call.

        A score with the same fingerprint is replaced only when scoring succeeds. Fingerprints are by scorer name;
        scores with others are kept in addition to the new score. With a budget, the answers count as selected.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            summary, ready = rescore.queue_rescoring(connection, self._context.process, asked, scorers, now)
            if budgeted and ready:
                budget_ledger.count_selected(connection, len(ready), now)
        return summary


def _crash(row: RowMapping, now: datetime) -> Score:
    """Return the result of a task that probably crashes the process that scores it."""
    explanation = f"scoring was attempted {row['claims']} times, but the process exited each time before finishing"
    if row["reason"]:
        explanation += f"; earlier error: {row['reason']}: {row['error'] or 'unknown error'}"
    return Score(
        scorer=row["scorer"],
        fingerprint=row["fingerprint"],
        reason=UnscoredReason.SCORER_ERROR,
        explanation=explanation,
        scored_at=now,
    )


def _lock_tasks(
    connection: Connection, scorers: Mapping[str, str], preferred: Sequence[str], limit: int, now: datetime
) -> list[RowMapping]:
    """Lock the tasks of up to ``limit`` exchanges: first the preferred ones, then those that have waited longest."""
    pairs = [f"{scorer} {fingerprint}" for scorer, fingerprint in sorted(scorers.items())]
    rows = _lock_preferred_tasks(connection, pairs, preferred, limit) if preferred else []
    remaining = limit - len({row["exchange_id"] for row in rows})
    if not remaining:
        return rows
    # Preferred tasks that are due are found again.
    locked = {row["id"] for row in rows}
    ready = _lock_ready_tasks(connection, pairs, scorers, remaining, now)
    return rows + [row for row in ready if row["id"] not in locked]


def _lock_preferred_tasks(
    connection: Connection, pairs: Sequence[str], exchange_ids: Sequence[str], limit: int
) -> list[RowMapping]:
    """Lock the never-claimed tasks of up to ``limit`` of these exchanges, whether or not the tasks are due."""
    rows: list[RowMapping] = []
    for ids in batched(exchange_ids):
        values = {"ids": ids, "pairs": pairs, "rows": limit * len(pairs)}
        rows += connection.execute(_PREFERRED, values).mappings()
    claimed = set(list(dict.fromkeys(row["exchange_id"] for row in rows))[:limit])
    return [row for row in rows if row["exchange_id"] in claimed]


def _lock_ready_tasks(
    connection: Connection, pairs: Sequence[str], scorers: Mapping[str, str], limit: int, now: datetime
) -> Sequence[RowMapping]:
    """Lock all ready tasks of the ``limit`` exchanges that have been waiting longest."""
    window = limit * len(scorers) * (1 if connection.dialect.name == "sqlite" else MAX_CONCURRENT_OWNERS)
    values: dict[str, Any] = {"now": now, "limit": limit, "window": window, "pairs": pairs}
    for number, (scorer, fingerprint) in enumerate(sorted(scorers.items())):
        values |= {f"scorer_{number}": scorer, f"fingerprint_{number}": fingerprint}
    return connection.execute(_ready_tasks(connection.dialect.name, len(scorers)), values).mappings().all()


_TAKE = (
    leases.claim(scoring_task, owner=bindparam("owner"), until=bindparam("lease_end"))
    .values(state="running", claims=scoring_task.c.claims + 1)
    .where(scoring_task.c.id.in_(bindparam("ids", expanding=True)))
)
_EXCHANGES = select(exchange).where(exchange.c.id.in_(bindparam("ids", expanding=True)))


def _is_ours(task: FromClause) -> ColumnElement[bool]:
    """Return the SQL condition that a task belongs to these scorers, in a form that prevents use of a scorer index."""
    return task.c.scorer.concat(_BETWEEN).concat(task.c.fingerprint).in_(bindparam("pairs", expanding=True))


_is_new = and_(
    scoring_task.c.state == "pending",
    scoring_task.c.due_at.is_not(None),
    scoring_task.c.claims == 0,
    scoring_task.c.retries == 0,
)
"""SQL condition that a task is not a candidate and that no process has claimed it yet."""
_PREFERRED = (
    select(*(scoring_task.c[name] for name in (*ScoringTask.__slots__, *_LATEST)))
    .where(scoring_task.c.exchange_id.in_(bindparam("ids", expanding=True)), _is_ours(scoring_task), _is_new)
    .order_by(scoring_task.c.exchange_id, scoring_task.c.id)
    .limit(bindparam("rows", type_=Integer))
    .with_for_update(skip_locked=True)
)


_ready = scoring_task.c.due_at <= bindparam("now")


def _heads(dialect: str, count: int) -> CTE:
    """Return a query for the exchanges to claim. On PostgreSQL, locking the first ready task claims its exchange."""
    columns, limit, window = scoring_task.c, bindparam("limit", type_=Integer), bindparam("window", type_=Integer)
    # Read each scorer's first ready tasks from its own part of the index. Both databases merge these parts by time and
    # stop at the limit, so they do not read tasks of other scorers.
    arms = []
    for number in range(count):
        arm = select(columns.id, columns.exchange_id, columns.due_at).where(
            columns.scorer == bindparam(f"scorer_{number}"),
            columns.fingerprint == bindparam(f"fingerprint_{number}"),
            _ready,
        )
        arms.append(select(arm.order_by(columns.due_at).limit(window).subquery(f"waiting_{number}")))
    waiting = union_all(*arms).order_by("due_at").limit(window).subquery("waiting")
    if dialect == "sqlite":  # no other process can write now
        waiting_exchanges = select(waiting.c.exchange_id).group_by(waiting.c.exchange_id)
        return waiting_exchanges.order_by(func.min(waiting.c.due_at)).limit(limit).cte("heads")
    # Use the order of the queue, so that the oldest task in the queue is always the first task of its exchange.
    sibling = scoring_task.alias("sibling")
    is_first = ~exists().where(
        sibling.c.exchange_id == columns.exchange_id,
        _is_ours(sibling),
        sibling.c.due_at <= bindparam("now"),
        or_(sibling.c.due_at < columns.due_at, and_(sibling.c.due_at == columns.due_at, sibling.c.id < columns.id)),
    )
    # Use limits at every step and a lateral join, because without statistics, PostgreSQL would read and join all rows.
    first = select(columns.exchange_id).where(columns.id == waiting.c.id, _ready, is_first)
    locked = first.with_for_update(of=scoring_task, skip_locked=True).lateral("locked")
    heads = select(locked.c.exchange_id).select_from(waiting.join(locked, true()))
    return heads.order_by(waiting.c.due_at).limit(limit).cte("heads")


@cache
def _ready_tasks(dialect: str, count: int) -> Select[Any]:
    """Return a query that locks all ready tasks of the exchanges to claim."""
    heads = _heads(dialect, count)
    tasks = select(*(scoring_task.c[name] for name in (*ScoringTask.__slots__, *_LATEST)))
    tasks = tasks.where(scoring_task.c.exchange_id == heads.c.exchange_id, _is_ours(scoring_task), _ready)
    if dialect == "sqlite":
        return tasks
    # Use a lateral join, so that each exchange is looked up in the index. Without statistics, PostgreSQL expects so
    # many tasks per exchange that it would read the whole table.
    found = tasks.with_for_update(skip_locked=True).lateral("found")
    return select(found).select_from(heads.join(found, true()))
