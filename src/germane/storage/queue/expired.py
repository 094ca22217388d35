"""Expiry of tasks. An expired task becomes skipped, or done if it already has a score.

A task expires when its exchange's text is erased, or when no process runs its scorer because the scorer was removed,
changed or renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, Update, bindparam, case, func, select, update

from germane.score import UnscoredReason
from germane.storage.counts.tally import TallyChanges
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.backlog import CANDIDATE, OPEN, ScorerKey, list_scorers_with_tasks
from germane.storage.queue.candidates import remove_from_pool
from germane.storage.workers import ORPHANED_AFTER, Worker, load_workers

EXPIRE_BATCH: Final = 1000
"""Default maximum number of tasks that expire in one transaction."""
EXPLANATION: Final = "no process has run this scorer with this fingerprint for an hour or more"
_HAS_SCORE = func.coalesce(scoring_task.c.scored_as, "") != ""


def expire_tasks_statement(explanation: str | None) -> Update:
    """Return the statement that expires tasks. A task that is queued for rescoring becomes done and keeps its score."""
    return update(scoring_task).values(
        state=case((_HAS_SCORE, "done"), else_=UnscoredReason.EXPIRED.state),
        reason=case((_HAS_SCORE, None), else_=UnscoredReason.EXPIRED.value),
        error=explanation,
        scored_as=case((_HAS_SCORE, scoring_task.c.scored_as)),
        **leases.FINISHED,
    )


def count_expired(
    tally_changes: TallyChanges, at: datetime, names: tuple[str, str, str], scored_as: str | None
) -> None:
    """Add an expired task to the tally changes; ``names`` are service, route and scorer."""
    if scored_as:
        tally_changes.add(at, names, "scored")
    else:
        tally_changes.add(at, names, UnscoredReason.EXPIRED.state, UnscoredReason.EXPIRED.value)


class OrphanedTasks(StoreComponent):
    """Finds and expires the tasks of orphaned scorers: scorers that no process runs."""

    def list_orphaned_scorers(self, *, after: timedelta = ORPHANED_AFTER) -> list[ScorerKey]:
        """Return the (scorer, fingerprint) pairs with open tasks that no process has run for at least ``after``."""
        with self._database.read() as connection:
            seen = load_workers(connection, since=self._context.now(connection) - after)
            return _without_worker(connection, seen)

    def expire_orphaned_tasks(self, *, after: timedelta = ORPHANED_AFTER, limit: int = EXPIRE_BATCH) -> int:
        """Skip up to ``limit`` tasks of orphaned scorers with the reason ``expired``. Return their number.

        A task that is queued for rescoring becomes done instead, and keeps its score. A scorer is orphaned if no
        process has run it for at least ``after``. Candidates also expire once they have waited that long. Nothing
        expires until some process has been running for that long: after a shutdown of all processes, the process with
        the scorer may not have started yet.
        """
        close = expire_tasks_statement(EXPLANATION)
        ended: list[Row[Any]] = []
        tally_changes = TallyChanges()
        with self._database.write() as connection:
            now = self._context.now(connection)
            seen = load_workers(connection, since=now - after)
            if not any(worker.started_at <= now - after for worker in seen):
                return 0
            for scorer, fingerprint in _without_worker(connection, seen):
                values = {"scorer": scorer, "fingerprint": fingerprint, "before": now - after, "now": now}
                for query in (_DUE, _CANDIDATES):
                    ended += connection.execute(query, {**values, "limit": limit - len(ended)}).all()
            for rows in batched(ended):
                connection.execute(close.where(scoring_task.c.id.in_([row.id for row in rows])))
            for row in ended:
                names = (row.service, row.route, row.scorer)
                tally_changes.add(row.started_at, names, "pending", by=-1)
                count_expired(tally_changes, row.started_at, names, row.scored_as)
            # No process can score these exchanges, so they must not be selected in place of others.
            remove_from_pool(connection, sorted({row.of for row in ended}))
            tally_changes.apply(connection, self._context.process)
        return len(ended)


def _without_worker(connection: Connection, workers: Sequence[Worker]) -> list[ScorerKey]:
    """Return the (scorer, fingerprint) pairs with open tasks that none of the workers runs."""
    run = {pair for worker in workers for pair in worker.scorers.items()}
    return sorted(set(list_scorers_with_tasks(connection)) - run)


def _select_expired(condition: Any, order: ColumnElement[Any], *more: Any, locked: Sequence[Table]) -> Select[Any]:
    of_task = (scoring_task.c.id, scoring_task.c.scorer, scoring_task.c.scored_as)
    columns = (*of_task, exchange.c.service, exchange.c.route, exchange.c.started_at)
    query = select(*columns, exchange.c.id.label("of")).join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    query = query.where(
        condition,
        scoring_task.c.scorer == bindparam("scorer"),
        scoring_task.c.fingerprint == bindparam("fingerprint"),
        scoring_task.c.first_pending_at <= bindparam("before"),
        *more,
    )
    return query.order_by(order).limit(bindparam("limit")).with_for_update(of=locked, skip_locked=True)


_DUE: Final = _select_expired(
    OPEN, scoring_task.c.due_at, scoring_task.c.due_at <= bindparam("now"), locked=[scoring_task]
)
"""Tasks that are pending and due, or running under an expired lease. The owner of a valid lease may still write
results."""
_CANDIDATES: Final = _select_expired(CANDIDATE, scoring_task.c.first_pending_at, locked=[scoring_task, exchange])
