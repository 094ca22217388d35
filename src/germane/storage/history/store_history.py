"""Runs that rescore history in partitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from sqlalchemy import and_, exists, func, or_, select, update

from germane.errors import StorageError
from germane.sanitize import clean_text
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import count_rows
from germane.storage.db.mappers import EXCHANGES
from germane.storage.db.tables import exchange, history_run, partition, scoring_task
from germane.storage.history import partitions, results
from germane.storage.history.partitions import (
    MAX_ERROR_LENGTH,
    RESCORE,
    HistoryItem,
    HistoryRun,
    HistorySelection,
    PartitionClaim,
    PartitionKey,
    ScoreCounts,
    in_partition,
    in_window,
    is_partition,
    matching_results,
)
from germane.storage.history.results import Result
from germane.storage.queue import erase_text
from germane.storage.queue.erase_text import OPEN_STATES
from germane.storage.queue.rescore import ScoringPair
from germane.storage.quota import budget_ledger


class HistoryStore(StoreComponent):
    """Runs that rescore history in partitions, each of which is done exactly once."""

    def create_run(self, selection: HistorySelection, *, partition_size: int) -> HistoryRun:
        """Plan a run: store it with its partitions, each with at most ``partition_size`` (2 or more) exchanges.

        Reading many exchanges takes long, so it happens before the transaction that writes, and other processes write
        meanwhile. Exchanges that are stored after they were read may be missing in the run.
        """
        run_id = uuid4().hex[:8]
        with self._database.read() as connection:
            planned = partitions.plan_partitions(connection, selection, partition_size)
        with self._database.write() as connection:
            now = self._context.now(connection)
            partitions.store_run(connection, run_id, selection, planned, partition_size, now)
        return self.get_run(run_id)

    def get_run(self, run_id: str) -> HistoryRun:
        """Return a run with its progress. Raise StorageError if it does not exist."""
        with self._database.read() as connection:
            run = partitions.load_run(connection, run_id)
        if run is None:
            raise StorageError(f"there is no run {run_id!r:.40} in {self._database.name}")
        return run

    def list_unfinished(self) -> list[HistoryRun]:
        """Return the runs that are not finished, newest first."""
        with self._database.read() as connection:
            query = select(history_run).where(history_run.c.finished_at.is_(None), history_run.c.kind == RESCORE)
            rows = connection.execute(query.order_by(history_run.c.created_at.desc())).mappings().all()
            return [partitions.build_run(connection, row) for row in rows]

    def count_pairs(self, selection: HistorySelection) -> dict[str, int]:
        """Return the number of answers that each scorer has to score."""
        window = (*in_window(selection), exchange.c.erased_at.is_(None))
        with self._database.read() as connection:
            if selection.everything:
                total = count_rows(connection, exchange, *window)
                return dict.fromkeys(sorted(selection.scorers), total) if total else {}
            table, matches = matching_results(selection)
            query = select(table.c.scorer, func.count(func.distinct(table.c.exchange_id)).label("answers"))
            query = query.join(exchange, exchange.c.id == table.c.exchange_id).where(*window, *matches)
            query = query.group_by(table.c.scorer).order_by(table.c.scorer)
            return {row.scorer: row.answers for row in connection.execute(query)}

    def list_open_partitions(self, run_id: str) -> dict[int, int]:
        """Return the number of exchanges in each partition that is not done, by partition number, in order."""
        query = select(partition.c.number, partition.c.exchanges)
        query = query.where(partition.c.run_id == run_id, partition.c.due_at.is_not(None)).order_by(partition.c.number)
        with self._database.read() as connection:
            return {row.number: row.exchanges for row in connection.execute(query)}

    def claim_partition(self, key: PartitionKey, owner: str, *, lease: timedelta) -> PartitionClaim | timedelta | None:
        """Claim a partition. Return the rest of another process's lease instead, or None if it is done."""
        with self._database.write() as connection:
            now = self._context.now(connection)
            claimed = partitions.claim(connection, key, owner, lease, now)
        return max(claimed - now, timedelta()) if isinstance(claimed, datetime) else claimed

    def renew_partition(self, claimed: PartitionClaim, *, lease: timedelta) -> bool:
        """Extend the lease on a partition. Return whether its owner still holds it."""
        with self._database.write() as connection:
            until = self._context.now(connection) + lease
            return leases.renew(connection, partition, is_partition(claimed.key), claimed.owner, until) == 1

    def release_partition(self, key: PartitionKey, *, owner_prefix: str) -> bool:
        """Release the partition of a dead owner, whose name has this prefix. Return whether such an owner held it."""
        with self._database.write() as connection:
            of_owner = and_(is_partition(key), partition.c.lease_owner.startswith(owner_prefix))
            released = leases.release(partition, of_owner, self._context.now(connection))
            return connection.execute(released).rowcount == 1

    def release_claim(self, claimed: PartitionClaim, *, error: str) -> None:
        """Let any process claim a partition after its owner has failed to score it."""
        with self._database.write() as connection:
            message = clean_text(error[:MAX_ERROR_LENGTH])
            now = self._context.now(connection)
            leases.postpone(connection, partition, is_partition(claimed.key), claimed.owner, now, error=message)

    def load_items(self, claimed: PartitionClaim) -> list[HistoryItem]:
        """Return the exchanges of a partition that are to be scored, in order, each with its scorers.

        Scores that an earlier attempt has written, and exchanges without text or without a sampling decision are left
        out. Pairs of exchange and scorer with an open task of the run's fingerprint are left to the workers.
        """
        selection, inside = claimed.selection, in_partition(claimed)
        limits: list[Collection[ScoringPair]] = [] if claimed.remaining is None else [claimed.remaining]
        with self._database.read() as connection:
            if not selection.everything:
                table, matches = matching_results(selection)
                results = select(table.c.exchange_id, table.c.scorer).join(
                    exchange, exchange.c.id == table.c.exchange_id
                )
                rows = connection.execute(results.where(*inside, *matches))
                limits.append({(row.exchange_id, row.scorer) for row in rows})
            open_tasks = select(scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)
            open_tasks = open_tasks.join(exchange, exchange.c.id == scoring_task.c.exchange_id)
            rows = connection.execute(open_tasks.where(*inside, scoring_task.c.state.in_(OPEN_STATES)))
            open_pairs = {
                (row.exchange_id, row.scorer) for row in rows if selection.scorers.get(row.scorer) == row.fingerprint
            }
            query = select(*EXCHANGES.selected).where(*inside, exchange.c.erased_at.is_(None))
            query = query.where(exchange.c.sampling_reason.is_not(None))
            query = query.where(or_(exchange.c.question.is_not(None), exchange.c.answer.is_not(None)))
            stored = connection.execute(query.order_by(exchange.c.started_at, exchange.c.id)).mappings().all()
        items, names = [], sorted(selection.scorers)
        for row in stored:
            selected = [name for name in names if all((row["id"], name) in limit for limit in limits)]
            if selected:
                waiting = tuple(name for name in selected if (row["id"], name) in open_pairs)
                scorers = tuple(name for name in selected if name not in waiting)
                items.append(HistoryItem(EXCHANGES.decode(row), scorers, waiting))
        return items

    def finish_partition(
        self,
        claimed: PartitionClaim,
        scores: Sequence[Result],
        *,
        remaining: Collection[ScoringPair] = (),
        budgeted: bool = False,
    ) -> ScoreCounts | None:
        """Write a partition's scores and mark it as done, in one transaction.

        Args:
            claimed: The partition.
            scores: Pairs of exchange id and score. Each score has the name of its scorer in the run.
            remaining: Pairs of exchange id and scorer that could not be scored. If there are any, the partition is not
                done, and the next claim is about them alone.
            budgeted: Whether a budget is in effect. If so, the exchanges count as selected.

        Returns:
            The numbers of written scores, or None if another process has claimed the partition in the meantime; nothing
            is written then.
        """
        if self._context.erase_after_scoring:
            scores = [(exchange_id, erase_text.without_text(score)) for exchange_id, score in scores]
        with self._database.write() as connection:
            selection, now = claimed.selection, self._context.now(connection)
            if not partitions.finish_partition(connection, claimed, remaining, now):
                return None
            counts = results.write_scores(
                connection, self._context.process, scores, selection.scorers, now, census=selection.everything
            )
            partitions.store_counts(connection, claimed, counts)
            if budgeted and scores:
                budget_ledger.count_selected(connection, len({exchange_id for exchange_id, _ in scores}), now)
        return counts

    def finish_run(self, run_id: str) -> bool:
        """Mark a run as finished if all of its partitions are done. Return whether they are."""
        with self._database.write() as connection:
            is_open = exists().where(partition.c.run_id == run_id, partition.c.due_at.is_not(None))
            finished = update(history_run).where(history_run.c.id == run_id, ~is_open)
            return connection.execute(finished.values(finished_at=self._context.now(connection))).rowcount > 0
