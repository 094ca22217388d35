"""The result writer. It saves scores in group commits, and then attaches them to their spans."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, StorageError
from germane.exchange import Exchange
from germane.monitor.loop.job import describe_error
from germane.score import Score, UnscoredReason
from germane.storage import ScoringTask, TrackingStore

UNAVAILABLE_ERRORS: Final = (DatabaseUnreachable, DatabaseNotMigrated)
REJECTED_ERRORS: Final = (StorageError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors that the database, or code that calls it, raises if a score cannot be stored."""
BATCH_INTERVAL: Final = 0.05
"""Seconds to wait for more results after the first, because a transaction takes as long as writing ten results."""
FAILURES_BEFORE_WARNING: Final = 5
"""The number of a scorer's consecutive failures after which a warning is logged."""
CIRCUIT_BREAKER_REASONS: Final = frozenset(
    {UnscoredReason.JUDGE_REJECTED, *(reason for reason in UnscoredReason if reason.is_transient)}
)
"""Failures that are reported by the circuit breaker instead."""

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRetry:
    """A task to retry later."""

    task: ScoringTask
    until: datetime
    reason: UnscoredReason
    error: str


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The results of one round of scoring an exchange."""

    exchange: Exchange
    scores: Sequence[tuple[ScoringTask, Score]]
    retries: Sequence[ScheduledRetry]


class ResultWriter:
    """Saves results in group commits.

    Results that arrive within 50 ms, or during a transaction, share the next transaction.
    """

    def __init__(
        self,
        store: TrackingStore,
        *,
        owner: str,
        thread_pool: DaemonThreadPool,
        attach: Callable[[Exchange, Sequence[Score]], object],
    ) -> None:
        self._store = store
        self._owner = owner
        self._thread_pool = thread_pool
        self._attach = attach
        self._unsaved: list[ExchangeResult] = []
        self._unattached: deque[tuple[Exchange, list[Score]]] = deque()
        self._wake_up = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of exchanges whose results have not been saved yet."""
        return len(self._unsaved)

    def unsaved_tasks(self) -> list[ScoringTask]:
        """Return the tasks whose results have not been saved yet. Thread-safe."""
        unsaved = tuple(self._unsaved)
        scored = [task for result in unsaved for task, _ in result.scores]
        return scored + [retry.task for result in unsaved for retry in result.retries]

    def add_result(self, result: ExchangeResult) -> None:
        """Add a result to the next transaction."""
        self._unsaved.append(result)
        self.wake()

    def wake(self) -> None:
        """Make :meth:`wait_for_results` return."""
        self._wake_up.set()

    async def wait_for_results(self) -> None:
        """Wait until there may be results to save, and then wait another 50 ms for more results."""
        await self._wake_up.wait()
        await asyncio.sleep(BATCH_INTERVAL)
        self._wake_up.clear()

    async def save(self) -> None:
        """Save all results, and then attach the scores of the tasks that this process completed.

        A task that another process has claimed in the meantime is left to that process. If the database is unreachable,
        all results are kept for the next call.

        Raises:
            StorageError: The database is unreachable.
        """
        if self._unsaved:
            batch = tuple(self._unsaved)
            completed = await self._thread_pool.run(self._commit, batch)
            del self._unsaved[: len(batch)]
            scores: dict[str, list[Score]] = {}
            for task, score in completed:
                scores.setdefault(task.exchange_id, []).append(score)
            exchanges = [result.exchange for result in batch]
            self._unattached.extend((exchange, scores[exchange.id]) for exchange in exchanges if exchange.id in scores)

        def attach_all() -> None:
            while self._unattached:
                self._attach(*self._unattached.popleft())

        if self._unattached:
            await self._thread_pool.run(attach_all)

    def _commit(self, batch: Sequence[ExchangeResult]) -> list[tuple[ScoringTask, Score]]:
        try:
            return self._write(batch)
        except UNAVAILABLE_ERRORS:
            raise
        except REJECTED_ERRORS as error:
            if len(batch) > 1:  # write them one by one, so that the invalid result does not block the others
                return [completed for result in batch for completed in self._commit([result])]
            failures = [
                (
                    task,
                    Score(
                        scorer=score.scorer,
                        fingerprint=score.fingerprint,
                        reason=UnscoredReason.SCORER_ERROR,
                        explanation=f"the score cannot be stored: {describe_error(error)}",
                        scored_at=score.scored_at,
                    ),
                )
                for task, score in batch[0].scores
            ]
            return self._store.queue.complete_tasks(self._owner, failures)

    def _write(self, batch: Sequence[ExchangeResult]) -> list[tuple[ScoringTask, Score]]:
        # Write retries first. If they failed after the completions, repeating the completions would return no scores to
        # attach.
        groups: dict[tuple[UnscoredReason, int], list[ScheduledRetry]] = {}
        for result in batch:
            for retry in result.retries:  # one statement per reason and second
                groups.setdefault((retry.reason, int(retry.until.timestamp())), []).append(retry)
        for group in groups.values():
            latest = max(group, key=lambda retry: retry.until)
            self._store.queue.postpone_tasks(
                self._owner,
                [retry.task for retry in group],
                until=latest.until,
                reason=latest.reason,
                error=latest.error,
            )
        scores = [pair for result in batch for pair in result.scores]
        return self._store.queue.complete_tasks(self._owner, scores) if scores else []


class FailureLog:
    """Logs warnings for scorers that fail repeatedly, based on the saved scores."""

    def __init__(self) -> None:
        self._failures_in_a_row: dict[str, int] = {}
        """The number of consecutive failures by scorer."""

    def record_score(self, score: Score) -> None:
        """Count a failure or record a recovery. Explanations are not logged, because they may quote user text."""
        failures = self._failures_in_a_row.get(score.scorer, 0)
        if score.state == "scored":
            if failures >= FAILURES_BEFORE_WARNING:
                logger.warning("%s has recovered after %d consecutive failures", score.scorer, failures)
            self._failures_in_a_row.pop(score.scorer, None)
        elif score.state == "failed" and score.reason not in CIRCUIT_BREAKER_REASONS:
            self._failures_in_a_row[score.scorer] = failures + 1
            if failures + 1 == FAILURES_BEFORE_WARNING:
                logger.warning("%s is failing repeatedly: %s", score.scorer, score.reason)
