"""Looks at a database in processes of their own that are killed at each statement in turn: URL [SEED].

A child ends itself with SIGKILL right before its n-th statement or commit, for n = 1, 2, ... until a look gets through;
then comes the next look, until nothing waits any more. Says how many died. With a seed nobody is killed: it looks
until nothing waits, as another process may do at the same time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from sqlalchemy import event
from tests.monitor.watching.conftest import HOLDER, World

BATCH = 80


class Fuse:
    """Kills its process at the n-th chance."""

    def __init__(self, at: int) -> None:
        self._left = at

    def burn(self, *_: Any) -> None:
        """Come nearer to it."""
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def look(url: str, seed: int, die_at: int | None) -> None:
    """Look once, and write what follows."""
    world = World(url, seed=seed, holder=HOLDER)
    world.now = world.latest()
    if die_at is not None:
        fuse = Fuse(die_at)
        engine = world.store._database.engine
        event.listen(engine, "before_cursor_execute", fuse.burn)
        event.listen(engine, "commit", fuse.burn)
    world.look(world.watch(batch=BATCH))
    world.store.close()


def forked(*given: Any) -> bool:
    """Look in a process of its own; return whether it got through."""
    child = os.fork()
    if not child:
        look(*given)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def each(url: str) -> int:
    """Have a process die at each place; return how many did."""
    died = number = 0
    while waits(url):
        die_at = 1
        while not forked(url, number, die_at):
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


def beside(url: str, seed: int) -> None:
    """Look until nothing waits, beside another process that does the same."""
    world = World(url, seed=seed, holder=None)
    world.now = world.latest()
    watch = world.watch(batch=BATCH // 3)
    while world.store.arrivals(1):
        world.tries_to_look(watch)
    world.store.close()


if __name__ == "__main__":
    if sys.argv[2:]:
        beside(sys.argv[1], int(sys.argv[2]))
    else:
        sys.stdout.write(f"{each(sys.argv[1])}\n")
