"""An application that captures but never scores. Arguments: a name, and the number of seconds between two rounds.

It prints an exchange's id once the database has stored the exchange, and exits once its parent process has ended.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

import germane
from germane.process import current_runtime

EXCHANGES_PER_ROUND = 3
FLUSH_TIMEOUT = 20.0
"""Maximum number of seconds for a write. It is high, because a busy database is not unreachable."""
captured: list[str | None] = []


@germane.observe
def ask(question: str) -> str:
    """Answer with the question's number; every tenth answer is blank, and every eleventh call fails."""
    captured.append(germane.current_exchange().id)
    number = int(question.rpartition(" ")[2])
    if number % 11 == 0:
        raise LookupError(question)
    return "" if number % 10 == 0 else f"Parcel {question.removeprefix('Where is parcel ')} waits at the counter."


def main() -> None:
    """Capture until the parent process ends."""
    name, pause = sys.argv[1], float(sys.argv[2])
    parent = os.getppid()
    germane.start(role="capture")
    number = 0
    while os.getppid() == parent:
        for _ in range(EXCHANGES_PER_ROUND):
            number += 1
            with suppress(LookupError):
                ask(f"Where is parcel {name}-{os.getpid()} {number}")
        runtime = current_runtime()
        if runtime is not None and runtime.writer.flush(FLUSH_TIMEOUT):
            os.write(1, "".join(f"{id_}\n" for id_ in captured).encode())  # one write: a kill cannot split it
        captured.clear()
        time.sleep(pause)
