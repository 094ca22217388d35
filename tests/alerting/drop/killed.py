"""Looks at databases in processes of their own, as the lines that it reads say; it answers each with a number.

``killed URL``: a child ends itself with SIGKILL right before its n-th statement or commit, for n = 1, 2, ... until a
look gets through; then comes the next look, until nothing waits any more. It says how many died. ``beside URL``: two
children look at the same time until nothing waits, and nobody is killed; it says how many got through. One process
forks them all, since starting Python anew for each takes seconds.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from tests.alerting.drop.conftest import HOLDER, World

BATCH = 130
"""What waits takes two looks and a little more: one in which the drop fires, one in which it is over."""


class Fuse:
    """Kills its process at the n-th chance."""

    def __init__(self, at: int) -> None:
        self._left = at

    def burn(self, *_: Any) -> None:
        """Come nearer to it."""
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def look(url: str, seed: int, die_at: int) -> None:
    """Look once, and write what follows."""
    world = World(url, seed=seed, holder=HOLDER)
    world.now = world.latest()
    fuse, engine = Fuse(die_at), world.store._database.engine
    event.listen(engine, "before_cursor_execute", fuse.burn)
    event.listen(engine, "commit", fuse.burn)
    world.look(world.watch(batch=BATCH))
    world.store.close()


def forked(work: Callable[..., None], *given: Any) -> int:
    """Work in a process of its own; return its id."""
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


def got_through(child: int) -> bool:
    """Wait for a process; return whether it got through."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def killed(url: str) -> int:
    """Have a process die at each place; return how many did."""
    died = number = 0
    while waits(url):
        die_at = 1
        while not got_through(forked(look, url, number, die_at)):
            died, die_at = died + 1, die_at + 1
            assert die_at < 100, "it never gets through"
        number += 1
    return died


def waits(url: str) -> bool:
    """Whether anything is to be seen."""
    world = World(url, holder=HOLDER)
    waiting = bool(world.store.arrivals(1))
    world.store.close()
    return waiting


def beside(url: str) -> int:
    """Have two processes look; return how many got through."""
    children = [forked(look_on, url, seed) for seed in (1, 2)]
    return sum(map(got_through, children))


def look_on(url: str, seed: int) -> None:
    """Look until nothing waits, beside another process that does the same."""
    world = World(url, seed=seed, holder=None)
    world.now = world.latest()
    watch = world.watch(batch=BATCH // 3)
    while world.store.arrivals(1):
        world.tries_to_look(watch)
    world.store.close()


if __name__ == "__main__":
    for line in sys.stdin:
        what, where = line.split()
        sys.stdout.write(f"{(killed if what == 'killed' else beside)(where)}\n")
        sys.stdout.flush()
