"""An application that captures and never scores; its arguments are a name and seconds between two rounds.

It prints the id of an exchange once the database has it, and ends when whoever started it has gone.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

import germane
from germane import runtime

TOGETHER = 3
"""Exchanges that are written at once."""
FLUSH = 20.0
"""Seconds for a write: a busy database is not a dead one."""
handled: list[str | None] = []


@germane.observe
def ask(question: str) -> str:
    """Answer with the question's own number; every tenth answer is blank, and every eleventh call fails."""
    handled.append(germane.current_exchange().id)
    number = int(question.rpartition(" ")[2])
    if number % 11 == 0:
        raise LookupError(question)
    return "" if number % 10 == 0 else f"Parcel {question.removeprefix('Where is parcel ')} waits at the counter."


def main() -> None:
    """Capture until the parent is gone."""
    name, pause = sys.argv[1], float(sys.argv[2])
    parent = os.getppid()
    germane.start(role="capture")
    number = 0
    while os.getppid() == parent:
        for _ in range(TOGETHER):
            number += 1
            with suppress(LookupError):
                ask(f"Where is parcel {name}-{os.getpid()} {number}")
        _tell()
        time.sleep(pause)


def _tell() -> None:
    """Say what is committed, in one write that no kill can tear."""
    running = runtime.running()
    if running is not None and running.writer.flush(FLUSH):
        os.write(1, "".join(f"{id_}\n" for id_ in handled).encode())
    handled.clear()
