"""Tests of shutdown signals."""

from __future__ import annotations

import os
import signal
import threading

from germane.cli.core.signals import handle_shutdown_signals


def test_a_signal_to_another_thread_ends_the_wait() -> None:
    """The system chooses the thread, but the main thread wakes up in any case."""
    with handle_shutdown_signals() as ending:
        other = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM))
        other.start()

        assert ending.wait(60)
        assert (ending.received, ending.exit_code) == (True, 0)
        other.join()


def test_unrelated_signals_do_not_end_the_wait() -> None:
    """Imported modules may handle them."""
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    try:
        with handle_shutdown_signals() as ending:
            os.kill(os.getpid(), signal.SIGUSR1)

            assert not ending.wait(0.01)
            assert heard.is_set()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_previous_signal_handlers_are_restored() -> None:
    """The handlers are restored after a signal, too."""
    before = signal.getsignal(signal.SIGINT)
    with handle_shutdown_signals() as ending:
        os.kill(os.getpid(), signal.SIGINT)
        assert ending.wait(60)
        assert ending.exit_code == 130

    assert signal.getsignal(signal.SIGINT) is before
