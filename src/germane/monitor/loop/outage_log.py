"""Log lines about failing background jobs: one when an outage starts and one when it ends."""

from __future__ import annotations

import logging
import threading

logger = logging.getLogger("germane.monitor")


class OutageLog:
    """The log of all jobs of one monitor. An unreachable database is one outage, however many jobs it affects.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outages: dict[str, tuple[str, set[str]]] = {}
        """By outage: the job that reported it first, and the jobs that it affects now."""

    def record_failure(self, job: str, outage: str, message: str) -> None:
        """Record that an outage affects a job, and log ``message`` if the outage is new."""
        with self._lock:
            for other in self._outages.keys() - {outage}:
                self._remove_job(job, other)
            is_known = outage in self._outages
            self._outages.setdefault(outage, (job, set()))[1].add(job)
        if not is_known:
            logger.warning("background job %r fails: %s", job, message)

    def record_recovery(self, job: str) -> None:
        """Record that a job succeeded, and log the end of each outage that affected this job alone."""
        with self._lock:
            reporters = [self._remove_job(job, outage) for outage in list(self._outages)]
        for reporter in filter(None, reporters):
            logger.warning("background job %r works again", reporter)

    def _remove_job(self, job: str, outage: str) -> str | None:
        """Remove a job from an outage; if it was the last one, end the outage and return who reported it first."""
        reporter, affected = self._outages[outage]
        if job not in affected:
            return None
        affected.remove(job)
        if affected:
            return None
        del self._outages[outage]
        return reporter
