"""Being told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit code after SIGINT."""


class Ending:
    """Whether this process was told to stop. The second time it ends at once, whatever it does."""

    def __init__(self) -> None:
        self.code = 0
        """What to exit with when the stop is a clean one."""
        self._told = threading.Event()

    @property
    def told(self) -> bool:
        """Whether a signal has come."""
        return self._told.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal, for so many seconds at most; return whether one has come."""
        return self._told.wait(seconds)

    def tell(self, number: int, _frame: FrameType | None = None) -> None:
        """Take note of a signal."""
        self.code = INTERRUPTED if number == signal.SIGINT else 0
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        self._told.set()


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def listening() -> Iterator[Ending]:
    """Listen for SIGTERM and SIGINT, on the main thread."""
    ending = Ending()
    before = [(number, signal.signal(number, ending.tell)) for number in _SIGNALS]
    try:
        yield ending
    finally:
        for number, handler in before:
            signal.signal(number, handler)
