"""Runs evaluations in child processes, controlled by lines on stdin; prints one number per line.

``killed URL``: A child kills itself with SIGKILL right before its n-th statement or commit, for n = 1, 2, ... until an
evaluation completes. This repeats until no scores are waiting. Prints the number of killed children. ``concurrent
URL``: Two children evaluate concurrently until no scores are waiting. Prints the number of children that completed. One
process forks all children, because starting Python for each of them takes seconds.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from tests.alerting.drop.conftest import HOLDER, Simulation

from germane.testing import engine_of

BATCH = 130
"""Batch size. The waiting scores take more than two evaluations, so the drop fires in one and resolves in another."""


class Fuse:
    """Kills its process at the n-th call."""

    def __init__(self, at: int) -> None:
        self._left = at

    def burn(self, *_: Any) -> None:
        """Count down."""
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def evaluate_once(url: str, seed: int, die_at: int) -> None:
    """Evaluate once and commit."""
    simulation = Simulation(url, seed=seed, holder=HOLDER)
    simulation.now = simulation.latest()
    fuse, engine = Fuse(die_at), engine_of(simulation.store)
    event.listen(engine, "before_cursor_execute", fuse.burn)
    event.listen(engine, "commit", fuse.burn)
    simulation.evaluate(simulation.new_watcher(batch=BATCH))
    simulation.store.close()


def forked(work: Callable[..., None], *given: Any) -> int:
    """Run a function in a child process; return its id."""
    child = os.fork()
    if not child:
        failed = True
        try:
            work(*given)
            failed = False
        finally:
            if failed:
                traceback.print_exc()
            os._exit(failed)
    return child


def completed(child: int) -> bool:
    """Wait for a process; return whether it completed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def killed(url: str) -> int:
    """Kill a process at every statement; return the number of killed processes."""
    died = number = 0
    while waits(url):
        die_at = 1
        while not completed(forked(evaluate_once, url, number, die_at)):
            died, die_at = died + 1, die_at + 1
            assert die_at < 100, "no evaluation completes"
        number += 1
    return died


def waits(url: str) -> bool:
    """Return whether scores are waiting."""
    simulation = Simulation(url, holder=HOLDER)
    waiting = bool(simulation.store.detectors.list_new_scores(1))
    simulation.store.close()
    return waiting


def concurrent(url: str) -> int:
    """Evaluate in two processes; return the number that completed."""
    children = [forked(evaluate_all, url, seed) for seed in (1, 2)]
    return sum(map(completed, children))


def evaluate_all(url: str, seed: int) -> None:
    """Evaluate until no scores are waiting, concurrently with another process."""
    simulation = Simulation(url, seed=seed, holder=None)
    simulation.now = simulation.latest()
    watcher = simulation.new_watcher(batch=BATCH // 3)
    while simulation.store.detectors.list_new_scores(1):
        simulation.try_evaluate(watcher)
    simulation.store.close()


if __name__ == "__main__":
    for line in sys.stdin:
        what, where = line.split()
        sys.stdout.write(f"{(killed if what == 'killed' else concurrent)(where)}\n")
        sys.stdout.flush()
