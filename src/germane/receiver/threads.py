"""A background thread that works until it is stopped."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class BackgroundThread(ABC):
    """A thread that calls :meth:`run`, which returns soon after ``stopping`` is set."""

    def __init__(self, name: str) -> None:
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Finish the current work, and stop. Return False if that takes longer than ``timeout`` seconds."""
        self.stopping.set()
        if self._thread.ident is not None:  # a thread that never started cannot be joined
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @abstractmethod
    def run(self) -> None:
        """Work until ``stopping`` is set. Runs in the thread."""
