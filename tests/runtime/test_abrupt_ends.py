"""Processes that end or are frozen without exit callbacks: job queues, pools, SIGTERM and serverless functions."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

Query = Callable[[str], list[Any]]
Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[..., tuple[str, str]]

ASK = """
import multiprocessing, os, signal, sys, threading, time
import germane

@germane.observe
def ask(question: str) -> str:
    return "By card."

def capture(**settings):
    germane.start(role="capture", **settings)

def fork(work):
    child = os.fork()
    if not child:
        work()
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
FORKS = """
def terminate_itself():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as job queues do in their children
    ask("terminated")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

def fork_again():
    ask("parent of a grandchild")
    assert fork(lambda: ask("grandchild")) == 3

capture()
print(fork(lambda: ask("exited")), fork(terminate_itself), fork(fork_again), fork(lambda: None), flush=True)
ask("parent")
os._exit(4)
"""


def test_processes_that_end_without_exit_callbacks_lose_nothing(program: Start, query: Query) -> None:
    """Forked children and the process itself may end by `os._exit` or SIGTERM. Exit codes and signals are kept."""
    process = program(ASK + FORKS)
    printed, logged = process.communicate(timeout=250)

    assert (printed, logged, process.returncode) == ("3 -15 3 3\n", "", 4)
    assert sorted(query("SELECT question FROM exchange")) == [
        "exited",
        "grandchild",
        "parent",
        "parent of a grandchild",
        "terminated",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_pool_that_is_terminated_loses_nothing(method: str, run: Run, query: Query) -> None:
    """The end of a pool's `with` block terminates the workers with SIGTERM."""
    code = f"""
capture()
if __name__ == "__main__":
    multiprocessing.set_start_method("{method}")
    with multiprocessing.Pool(4) as pool:
        print(len(pool.map(ask, [f"How do I pay {{number}}?" for number in range(160)])))
"""
    assert run(ASK + code) == ("160\n", "")
    assert query("SELECT count(*) FROM exchange") == [160]


@pytest.mark.slow
def test_sigterm_during_a_stop_loses_nothing(program: Start, query: Query) -> None:
    """The signal may arrive while a normal end is in progress."""
    code = """
capture()
for number in range(500):
    ask(f"How do I pay {number}?")
threading.Timer(0, os.kill, (os.getpid(), signal.SIGTERM)).start()
"""
    process = program(ASK + code)
    process.communicate(timeout=250)

    assert process.returncode in {0, -signal.SIGTERM}
    assert query("SELECT count(*) FROM exchange") == [500]


@pytest.mark.slow
def test_the_handler_of_the_application_is_kept(run: Run) -> None:
    """germane handles SIGTERM only if nobody else does, and never outside the main thread."""
    code = """
signal.signal(signal.SIGTERM, own := lambda *_: print("own handler"))
capture()
os.kill(os.getpid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
capture()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
thread = threading.Thread(target=capture)
thread.start()
thread.join()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
capture()
print(callable(signal.getsignal(signal.SIGTERM)))
"""
    assert run(ASK + code) == ("own handler\nTrue\nTrue\nTrue\n", "")


@pytest.mark.slow
def test_a_function_that_flushes_can_be_frozen(program: Start, query: Query) -> None:
    """After `germane.flush`, a process may be stopped and killed at any time."""
    code = """
capture()
for number in range(4):
    ask(f"How do I pay {number}?")
    print(germane.flush(60), flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
    process = program(ASK + code)
    assert process.stdout is not None
    for number in range(4):
        assert process.stdout.readline() == "True\n"
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert query("SELECT count(*) FROM exchange") == [number + 1]
        process.send_signal(signal.SIGCONT if number < 3 else signal.SIGKILL)


@pytest.mark.slow
def test_flush_says_whether_everything_is_written(run: Run) -> None:
    """It is false while the database is unreachable, and true if there is nothing to write, or germane is stopped."""
    code = """
print(germane.flush(0))
capture(database="postgresql://germane@127.0.0.1:1/none")
print(germane.flush(0))
ask("Why?")
print(germane.flush(0.2))
germane.stop(0)
print(germane.flush(0))
"""
    printed, logged = run(ASK + code)

    assert printed.split() == ["True", "True", "False", "True"]
    assert "lost 1 exchange" in logged
