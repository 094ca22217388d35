"""A worker is told to stop by signals."""

from __future__ import annotations

import os
import signal
import threading

from germane.cli.core.signals import listening


def test_a_signal_that_another_thread_gets_ends_the_wait() -> None:
    """The system chooses the thread; whoever waits on the main one is woken all the same."""
    with listening() as ending:
        other = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM))
        other.start()

        assert ending.wait(60)
        assert (ending.told, ending.code) == (True, 0)
        other.join()


def test_a_signal_of_somebody_elses_ends_no_wait() -> None:
    """A module that is imported may handle others."""
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    try:
        with listening() as ending:
            os.kill(os.getpid(), signal.SIGUSR1)

            assert not ending.wait(0.01)
            assert heard.is_set()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_handlers_are_those_of_before_afterwards() -> None:
    """Also when a signal has come."""
    before = signal.getsignal(signal.SIGINT)
    with listening() as ending:
        os.kill(os.getpid(), signal.SIGINT)
        assert ending.wait(60)
        assert ending.code == 130

    assert signal.getsignal(signal.SIGINT) is before
