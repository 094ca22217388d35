"""Keeps forks and SQLite apart.

SQLite notes in the memory of the process which locks its connections hold. A child that is forked with a connection
open believes these notes: it may wait for ever for a lock that nobody holds, or write to a log that its parent deletes
(https://www.sqlite.org/howtocorrupt.html, "Carrying an open database across a fork"). So a fork waits until no
transaction is under way, and no connection is open while it happens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Lets any number of threads through, or none."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._shut = 0

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Be inside; waits while the gate is shut."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self, timeout: float) -> bool:
        """Let nobody in; True once nobody is inside, False when that took longer than ``timeout`` seconds.

        Each call wants a call of :meth:`open`, whatever it returned.
        """
        with self._changed:
            self._shut += 1
            return self._changed.wait_for(lambda: not self._inside, timeout)

    def open(self) -> None:
        """Let everybody in again, unless somebody else keeps it shut."""
        with self._changed:
            self._shut -= 1
            self._changed.notify_all()
