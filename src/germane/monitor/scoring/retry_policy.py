"""How long a task is tried again before its failure is final."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.monitor.loop.backoff import Backoff

FEW: Final = 10_000
"""Troubles that are remembered before old ones are looked for."""


@dataclass(slots=True)
class Trouble:
    """Tries of one task that brought nothing."""

    since: datetime
    tries: int = 0


class Patience:
    """Says when a task that met a passing trouble is tried again.

    The time counts from the first trouble, not from the question: an exchange that waited overnight for this process
    to start again has as much of it as any other. It is kept in memory; a restart begins anew. The number of tries, by
    which the waits grow, is the task's own and goes on.
    """

    def __init__(self, retry_for: timedelta, *, backoff: Backoff, clock: Callable[[], datetime]) -> None:
        self._retry_for = retry_for
        self._backoff = backoff
        self._clock = clock
        self._troubles: dict[object, Trouble] = {}
        self._many = FEW

    def next_try(self, task_id: object, *, tries: int = 0, at_least: float | None = None) -> datetime | None:
        """Return when to try again, or None when the trouble has lasted too long.

        Args:
            tries: earlier ones, made in vain by whatever process.
            at_least: seconds to wait at least.
        """
        now = self._clock()
        trouble = self._troubles.setdefault(task_id, Trouble(now))
        if now - trouble.since >= self._retry_for:
            return None
        trouble.tries = max(trouble.tries, tries) + 1
        self._forget_old(now)
        return now + self._backoff.wait(trouble.tries, at_least=at_least)

    def forget(self, task_id: object) -> None:
        """Drop what is known of a task that is done."""
        self._troubles.pop(task_id, None)

    def _forget_old(self, now: datetime) -> None:
        """Drop tasks that somebody else has long finished."""
        if len(self._troubles) <= self._many:
            return
        oldest = now - 2 * self._retry_for
        self._troubles = {id_: trouble for id_, trouble in self._troubles.items() if trouble.since > oldest}
        self._many = max(FEW, 2 * len(self._troubles))
