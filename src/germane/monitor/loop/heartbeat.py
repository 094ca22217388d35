"""The sign of life of a process that scores, by which it keeps the tasks that it works on."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Final

from germane.monitor.loop.job import Job, JobStatus

NAME: Final = "germane-monitor-heartbeat"
BEATS: Final = 4
"""Within the time of a lease."""
LONGEST: Final = 15.0
"""Seconds between two, however long a lease is: by them it is seen who lives, and that a clock was set back."""
AGAIN: Final = 1.0
"""Seconds until the next try while the database is away, at most."""


class Heartbeat:
    """Beats in a thread of its own: scorers that hold up the event loop, a slow commit and a slow claim do not stop it.

    Args:
        job: one beat.
        leave: what is done once there are no more beats. In the same thread: after a beat that was late, too.
        lease: for how long a beat keeps what the process holds.
    """

    def __init__(self, job: Job, *, leave: Job, lease: timedelta) -> None:
        self._job = job
        self._leave = leave
        self._every = min(lease.total_seconds() / BEATS, LONGEST)
        self._ended = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def start(self) -> None:
        """Begin, with a beat at once."""
        self._thread.start()

    def soon(self) -> None:
        """Beat now, not when it is time."""
        self._due.set()

    def stop(self, timeout: float) -> bool:
        """Beat no more, and leave; return whether that was done within ``timeout`` seconds. Blocks."""
        self._ended = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, timeout))
        return not self._thread.is_alive()

    def status(self) -> JobStatus:
        """Return how it is doing; may be called from any thread."""
        return self._job.status()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while not self._ended:
                self._due.clear()
                runner.run(self._job.run())
                if not self._ended:
                    self._due.wait(self._every if self._job.problem is None else min(self._every, AGAIN))
            runner.run(self._leave.run())
