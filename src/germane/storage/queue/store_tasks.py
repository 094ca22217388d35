"""The queue of scoring tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from germane.sanitize import clean_text
from germane.score import Score, UnscoredReason
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.tables import scoring_task
from germane.storage.queue import erase_text, rescore, tasks
from germane.storage.queue.rescore import RescoreResult, ScoringPair
from germane.storage.queue.tasks import ScoringTask, TaskClaim
from germane.storage.quota import budget_ledger
from germane.storage.workers import HEARTBEAT_TIMEOUT


class TaskQueue(StoreComponent):
    """Scoring tasks, which are claimed under a lease and finished exactly once."""

    def claim_tasks(
        self,
        owner: str,
        scorers: Mapping[str, str],
        *,
        limit: int,
        lease: timedelta,
        preferred: Sequence[str] = (),
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
        with self._database.write() as connection:
            now = self._context.now(connection)
            return tasks.claim_tasks(connection, self._context.process, owner, scorers, limit, lease, now, preferred)

    def complete_tasks(
        self, owner: str, results: Sequence[tuple[ScoringTask, Score]]
    ) -> list[tuple[ScoringTask, Score]]:
        """Write the results of tasks, and return the results that were written.

        Tasks that are already completed, or that another owner has claimed in the meantime, are not changed.
        """
        erases = self._context.erase_after_scoring
        stored = [(task, erase_text.without_text(score)) for task, score in results] if erases else list(results)
        with self._database.write() as connection:
            written = tasks.complete_tasks(connection, self._context.process, owner, stored, self._context.local_time())
            if erases:
                closed = [task.exchange_id for task, _ in written]
                erase_text.erase_closed_exchanges(connection, closed, self._context.now(connection))
            # Exchanges that the budget did not cover cost nothing, so they must not lower the cost per exchange.
            over_budget = [task for task, score in written if score.reason is UnscoredReason.BUDGET]
            if unpaid := tasks.count_unpaid(connection, over_budget):
                budget_ledger.count_selected(connection, -unpaid, self._context.now(connection))
        first_results = {task.id: (task, score) for task, score in reversed(results)}
        return [first_results[task.id] for task, _ in written]

    def postpone_tasks(
        self, owner: str, postponed: Sequence[ScoringTask], *, until: datetime, reason: UnscoredReason, error: str
    ) -> None:
        """Requeue tasks that this owner has claimed, to be retried at ``until``.

        Args:
            owner: Id of the process that claimed the tasks.
            postponed: The tasks.
            until: Time of the retry according to this process's clock.
            reason: Reason for the failure.
            error: The error message.
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

        Args:
            scorers: Fingerprints by scorer name. Other tasks are not changed.
            stopping: Id of the worker that is stopping, if any.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            tasks.release_reserved_tasks(
                connection, scorers, now, alive_since=now - HEARTBEAT_TIMEOUT, stopping=stopping
            )

    def rescore(
        self, asked: Sequence[ScoringPair], scorers: Mapping[str, str], *, budgeted: bool = False
    ) -> RescoreResult:
        """Queue answers for rescoring. Pass at most a few thousand per call.

        A score with the same fingerprint is replaced only when scoring succeeds.

        Args:
            asked: (Exchange id, scorer name) pairs.
            scorers: Current fingerprints by scorer name. Scores with a different fingerprint are kept in addition to
                the new score.
            budgeted: Whether a budget is in effect. If so, the answers count as selected.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            summary, ready = rescore.queue_rescoring(connection, self._context.process, asked, scorers, now)
            if budgeted and ready:
                budget_ledger.count_selected(connection, len(ready), now)
        return summary
