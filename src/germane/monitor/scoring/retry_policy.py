"""How long a task is retried before its failure is final."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.monitor.loop.backoff import Backoff

MIN_CLEANUP_SIZE: Final = 10_000
"""The number of remembered tasks above which old ones are dropped."""


@dataclass(slots=True)
class RetryState:
    """The failed attempts of one task."""

    since: datetime
    attempts: int = 0


class RetryPolicy:
    """Decides when a task with a transient failure is retried, until ``retry_timeout`` after its first failure.

    The time counts from the first failure and not from the question: an exchange that waited overnight for this
    process has as much time as any other. First failures are kept in memory, so a restart starts the time again. The
    number of attempts, which determines the delay, is stored with the task and survives a restart.
    """

    def __init__(self, retry_timeout: timedelta, *, backoff: Backoff, clock: Callable[[], datetime]) -> None:
        self._retry_timeout = retry_timeout
        self._backoff = backoff
        self._clock = clock
        self._states: dict[object, RetryState] = {}
        self._cleanup_size = MIN_CLEANUP_SIZE

    def next_retry_at(self, task_id: object, *, attempts: int = 0, retry_after: float | None = None) -> datetime | None:
        """Record a failed attempt and return when to retry; None if the task has failed for too long.

        Args:
            task_id: The task.
            attempts: The number of earlier failed attempts by any process.
            retry_after: The shortest delay, in seconds.
        """
        now = self._clock()
        state = self._states.setdefault(task_id, RetryState(now))
        if now - state.since >= self._retry_timeout:
            return None
        state.attempts = max(state.attempts, attempts) + 1
        if len(self._states) > self._cleanup_size:  # most of them were finished by other processes long ago
            oldest = now - 2 * self._retry_timeout
            self._states = {id_: state for id_, state in self._states.items() if state.since > oldest}
            self._cleanup_size = max(MIN_CLEANUP_SIZE, 2 * len(self._states))
        return now + self._backoff.delay(state.attempts, retry_after=retry_after)

    def forget_task(self, task_id: object) -> None:
        """Forget a task that is finished."""
        self._states.pop(task_id, None)
