"""The heartbeat of a scoring process, which renews the leases of its tasks."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Final

from germane.monitor.loop.job import Job, JobStatus

THREAD_NAME: Final = "germane-monitor-heartbeat"
BEATS_PER_LEASE: Final = 4
MAX_INTERVAL: Final = 15.0
"""The longest interval between two heartbeats in seconds, however long a lease is.

Heartbeats also show which workers are alive, and make up for a clock that was set back.
"""
RETRY_INTERVAL: Final = 1.0
"""The longest interval after a failed heartbeat, in seconds."""


class Heartbeat:
    """Sends heartbeats from its own thread, so that a blocked event loop or a slow transaction does not delay them.

    Args:
        job: Sends one heartbeat.
        deregister: Runs after the last heartbeat, in the same thread: a heartbeat that was late cannot come after it.
        lease: How long one heartbeat keeps the tasks that the process holds.
    """

    def __init__(self, job: Job, *, deregister: Job, lease: timedelta) -> None:
        self._job = job
        self._deregister = deregister
        self._interval = min(lease.total_seconds() / BEATS_PER_LEASE, MAX_INTERVAL)
        self._stopping = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)

    def start(self) -> None:
        """Start the thread, which sends the first heartbeat immediately."""
        self._thread.start()

    def send_now(self) -> None:
        """Send the next heartbeat without waiting for the end of the interval."""
        self._due.set()

    def stop(self, timeout: float) -> bool:
        """Stop the heartbeats and deregister; return whether that finished within ``timeout`` seconds. Blocks."""
        self._stopping = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, timeout))
        return not self._thread.is_alive()

    def status(self) -> JobStatus:
        """Return the status of the heartbeat job. Thread-safe."""
        return self._job.status()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while not self._stopping:
                self._due.clear()
                runner.run(self._job.run())
                if not self._stopping:
                    failed = self._job.problem is not None
                    self._due.wait(min(self._interval, RETRY_INTERVAL) if failed else self._interval)
            runner.run(self._deregister.run())
