"""Being told to stop."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit code after SIGINT."""


class Ending:
    """Whether this process was told to stop. The second time it ends at once, whatever it does.

    A signal may reach any thread, and Python handles it on the main one once that runs again: waiting for a lock it
    would not. So the main thread waits for a byte that is written wherever the signal arrives.

    Args:
        heard: Whence the numbers of signals can be read.
    """

    def __init__(self, heard: socket.socket) -> None:
        self.code = 0
        """What to exit with when the stop is a clean one."""
        self.told = False
        """Whether a signal has come."""
        self._heard = heard

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal, for so many seconds at most; return whether one has come."""
        while not self.told and select.select([self._heard], [], [], seconds)[0]:
            number = self._heard.recv(1)[0]
            if number in _SIGNALS:  # modules of the user's may handle others
                self.tell(number)
        return self.told

    def tell(self, number: int, _frame: FrameType | None = None) -> None:
        """Take note of a signal."""
        self.code = INTERRUPTED if number == signal.SIGINT else 0
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        self.told = True


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def listening() -> Iterator[Ending]:
    """Listen for SIGTERM and SIGINT, on the main thread."""
    heard, said = socket.socketpair()
    with heard, said:
        said.settimeout(0)
        ending = Ending(heard)
        earlier = signal.set_wakeup_fd(said.fileno(), warn_on_full_buffer=False)
        before = [(number, signal.signal(number, ending.tell)) for number in _SIGNALS]
        try:
            yield ending
        finally:
            for number, handler in before:
                signal.signal(number, handler)
            signal.set_wakeup_fd(earlier)
