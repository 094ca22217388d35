"""What becomes of exchanges that were scored: saved together, then attached one by one."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.daemon_pool import Threads
from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, StorageError
from germane.exchange import Exchange
from germane.monitor.loop.job import describe
from germane.score import Reason, Score
from germane.storage import Store, Task

AWAY: Final = (DatabaseUnreachable, DatabaseNotMigrated)
REFUSED: Final = (StorageError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What a database, or the way there, says of a score that no column takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed:
    """A task that is tried again."""

    task: Task
    until: datetime
    reason: Reason
    error: str


@dataclass(frozen=True, slots=True)
class Finished:
    """All that one round of scoring brought for one exchange."""

    exchange: Exchange
    scores: Sequence[tuple[Task, Score]]
    postponed: Sequence[Postponed]


class Results:
    """Group commit: what is finished while one commit runs goes into the next, all of it in one."""

    def __init__(
        self, store: Store, *, owner: str, threads: Threads, attach: Callable[[Exchange, Sequence[Score]], object]
    ) -> None:
        self._store = store
        self._owner = owner
        self._threads = threads
        self._attach = attach
        self._waiting: list[Finished] = []
        self._saved: deque[tuple[Exchange, list[Score]]] = deque()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Return how many exchanges are not saved yet."""
        return len(self._waiting)

    def held(self) -> set[int]:
        """Return the ids of tasks whose results are not saved yet; may be called from any thread."""
        waiting = tuple(self._waiting)
        scored = {task.id for finished in waiting for task, _ in finished.scores}
        return scored | {postponed.task.id for finished in waiting for postponed in finished.postponed}

    def add(self, finished: Finished) -> None:
        """Take what is to be saved next."""
        self._waiting.append(finished)
        self.wake()

    def wake(self) -> None:
        """Look whether there is something to save."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there may be something to save."""
        await self._changed.wait()
        self._changed.clear()

    async def save(self) -> None:
        """Commit what waits, then attach the scores that this process really completed.

        A task that was lost to another process has its score from there. When the database refuses, all stays and is
        committed next time.
        """
        if self._waiting:
            batch = tuple(self._waiting)
            completed = await self._threads.run(self._commit, batch)
            del self._waiting[: len(batch)]
            self._saved.extend(_by_exchange(batch, completed))
        if self._saved:
            await self._threads.run(self._attach_all)

    def _commit(self, batch: Sequence[Finished]) -> list[tuple[Task, Score]]:
        try:
            return self._write(batch)
        except AWAY:
            raise
        except REFUSED as error:
            if len(batch) > 1:  # one of them: each for itself, so that it holds up no other
                return [result for finished in batch for result in self._commit([finished])]
            failures = [(task, _unwritable(score, error)) for task, score in batch[0].scores]
            return self._store.complete(self._owner, failures)

    def _write(self, batch: Sequence[Finished]) -> list[tuple[Task, Score]]:
        # Completing comes last: were it repeated after a failure in between, nothing would be left to attach.
        for group in _alike(postponed for finished in batch for postponed in finished.postponed):
            latest = max(group, key=lambda postponed: postponed.until)
            self._store.postpone(
                self._owner,
                [postponed.task for postponed in group],
                until=latest.until,
                reason=latest.reason,
                error=latest.error,
            )
        results = [result for finished in batch for result in finished.scores]
        return self._store.complete(self._owner, results) if results else []

    def _attach_all(self) -> None:
        while self._saved:
            self._attach(*self._saved.popleft())


def _unwritable(score: Score, error: Exception) -> Score:
    """Return the failure that stands for a score of a scorer's own making that cannot be kept."""
    return Score(
        scorer=score.scorer,
        fingerprint=score.fingerprint,
        reason=Reason.SCORER_ERROR,
        explanation=f"the score cannot be kept: {describe(error)}",
        scored_at=score.scored_at,
    )


def _alike(postponed: Iterable[Postponed]) -> Iterable[list[Postponed]]:
    """Group what was postponed for the same reason to the same second: each group is one write."""
    groups: dict[tuple[Reason, int], list[Postponed]] = {}
    for each in postponed:
        groups.setdefault((each.reason, int(each.until.timestamp())), []).append(each)
    return groups.values()


def _by_exchange(
    batch: Iterable[Finished], completed: Iterable[tuple[Task, Score]]
) -> Iterable[tuple[Exchange, list[Score]]]:
    scores: dict[str, list[Score]] = {}
    for task, score in completed:
        scores.setdefault(task.exchange_id, []).append(score)
    return [(finished.exchange, scores[id_]) for finished in batch if (id_ := finished.exchange.id) in scores]


logger = logging.getLogger("germane.monitor")

ENOUGH: Final = 5
"""Failures in a row that are no accident any more."""
PAUSED: Final = frozenset({Reason.JUDGE_REJECTED, *(reason for reason in Reason if reason.transient)})
"""Failures for which a scorer pauses, which says so itself."""


class Failing:
    """Learns from all scores that were saved which scorers fail again and again."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        """By scorer."""

    def note(self, score: Score) -> None:
        """Learn from a score. Of a failure its reason is told, and not its words: they may quote what was asked."""
        if score.state == "scored":
            self._over(score.scorer)
        elif score.state == "failed" and score.reason not in PAUSED:
            count = self._in_a_row[score.scorer] = self._in_a_row.get(score.scorer, 0) + 1
            if count == ENOUGH:
                logger.warning("%s fails again and again: %s", score.scorer, score.reason)

    def _over(self, scorer: str) -> None:
        count = self._in_a_row.pop(scorer, 0)
        if count >= ENOUGH:
            logger.warning("%s scores again, after %d failures in a row", scorer, count)
