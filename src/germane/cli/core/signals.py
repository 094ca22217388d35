"""Graceful shutdown on SIGTERM and SIGINT."""

from __future__ import annotations

import gc
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from germane.cli.core.output import EXIT_INTERRUPTED

SHUTDOWN_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
WORKER_SHUTDOWN_TIMEOUT: Final = 30.0
"""Default maximum duration of a worker's graceful shutdown, in seconds, as the default grace period in Kubernetes."""
GC_THRESHOLDS: Final = (5_000, 10, 10)
"""With Python's default of 700 for the first one, garbage collection would take a fifth of the time of a page with many
rows. With the high threshold of short commands, a server would take more memory."""


class ShutdownSignal:
    """Records whether this process has received SIGTERM or SIGINT. A second signal terminates it immediately.

    A signal may reach any thread, but Python runs handlers on the main thread only, and not while that thread waits for
    a lock. Therefore, the main thread instead waits for the byte that Python writes to the wakeup socket.
    """

    def __init__(self, wakeup: socket.socket) -> None:
        self.exit_code = 0
        """Exit code after a clean shutdown: 0, or 130 after SIGINT."""
        self.received = False
        self._wakeup = wakeup

    def wait(self, seconds: float | None = None) -> bool:
        """Wait up to ``seconds`` for a signal, or indefinitely if it is None. Return whether one was received."""
        while not self.received and select.select([self._wakeup], [], [], seconds)[0]:
            number = self._wakeup.recv(1)[0]
            if number in SHUTDOWN_SIGNALS:  # imported modules may handle other signals
                self.handle(number)
        return self.received

    def handle(self, number: int, _frame: FrameType | None = None) -> None:
        """Record a signal, and restore the default handlers for a second one."""
        self.exit_code = EXIT_INTERRUPTED if number == signal.SIGINT else 0
        for shutdown_signal in SHUTDOWN_SIGNALS:
            signal.signal(shutdown_signal, signal.SIG_DFL)
        self.received = True


@contextmanager
def handle_shutdown_signals() -> Iterator[ShutdownSignal]:
    """Handle SIGTERM and SIGINT within the block. Must be called on the main thread.

    Only commands that run until they are stopped handle signals, so the block also sets how often they collect garbage.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    wakeup, sender = socket.socketpair()
    with wakeup, sender:
        sender.settimeout(0)
        shutdown = ShutdownSignal(wakeup)
        previous_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        previous = [(number, signal.signal(number, shutdown.handle)) for number in SHUTDOWN_SIGNALS]
        try:
            yield shutdown
        finally:
            for number, handler in previous:
                signal.signal(number, handler)
            signal.set_wakeup_fd(previous_fd)
