"""What the background says of its jobs in the log: once when a trouble begins, and once when it is over."""

from __future__ import annotations

import logging
import threading

logger = logging.getLogger("germane.monitor")


class Voice:
    """Speaks for all jobs of one background: a database that is away is one trouble, however many jobs meet it.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._troubles: dict[str, tuple[str, set[str]]] = {}
        """By kind the job that met it first, and those that fail for it."""

    def fails(self, job: str, kind: str, told: str) -> None:
        """Note that a job fails for a kind of trouble; say what is ``told`` unless the trouble is known."""
        with self._lock:
            for other in self._troubles.keys() - {kind}:
                self._take_out(job, other)
            known = kind in self._troubles
            self._troubles.setdefault(kind, (job, set()))[1].add(job)
        if not known:
            logger.warning("background job %r fails: %s", job, told)

    def works(self, job: str) -> None:
        """Note that a job goes well; say so when it was the last one that a trouble kept."""
        with self._lock:
            over = [first for kind in list(self._troubles) if (first := self._take_out(job, kind)) is not None]
        for first in over:
            logger.warning("background job %r works again", first)

    def _take_out(self, job: str, kind: str) -> str | None:
        """Take a job out of a trouble; return who met it first when that was the last one in it."""
        first, failing = self._troubles[kind]
        if job not in failing:
            return None
        failing.remove(job)
        if failing:
            return None
        del self._troubles[kind]
        return first
