"""Processes that begin at once: forked from one that has imported everything. As a script, it is that one.

Importing takes seconds of processor time, and a fleet of which somebody is killed every second has none to spare.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NEEDED = (
    "germane.cli.main", "germane.cli.commands.worker", "germane.cli.worker", "openai", "psycopg", "apscheduler", "sqlmodel",
    "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite.pysqlite", "opentelemetry.sdk.trace",
    "apscheduler.schedulers.asyncio", "alembic.command", "capturing",
)  # fmt: skip
TERM = 2.0
"""Seconds for which a process that was killed may still be thought to sample: killed every second, somebody must."""


class Nursery:
    """Starts processes, and ends all that are left when it is closed, or when whoever opened it has gone."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with one thread is forked
        self._parent = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._parent.communicate()

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], files: Path) -> int:
        """Start ``germane`` with arguments, or a script and its arguments; return the process's id.

        What it prints is added to ``files`` with the suffix ``.out``, what it logs to that with ``.log``.
        """
        return int(self._asked(arguments=list(arguments), environment=dict(environment), files=str(files)))

    def ended(self, pid: int) -> int | None:
        """Return a process's exit code, below 0 for a signal's; None while it lives."""
        code: int | None = self._asked(pid=pid)
        return code

    def kill(self, pid: int) -> None:
        """Kill a process without warning, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        while self.ended(pid) is None:
            time.sleep(0.001)

    def _asked(self, **question: Any) -> Any:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(question) + "\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())


def _serve() -> None:
    """Answer questions until there are no more, then end whoever is left."""
    codes: dict[int, int | None] = {}
    while question := sys.stdin.readline():
        asked = json.loads(question)
        if "arguments" in asked:
            pid = os.fork()
            if not pid:
                _run(**asked)
            codes[pid], answer = None, pid
        else:
            answer = codes[asked["pid"]] = _code(asked["pid"], codes[asked["pid"]])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in [pid for pid, code in codes.items() if code is None]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _code(pid: int, known: int | None) -> int | None:
    if known is not None:
        return known
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _run(arguments: list[str], environment: dict[str, str], files: str) -> None:
    """Become the process that was asked for; never returns."""
    for target, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, f"{files}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, f"{files}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        os.dup2(os.open(path, flags, 0o644), target)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(Path(files).parent)
    sys.argv = arguments
    name = "germane.cli" if arguments[0] == "germane" else arguments[0]
    import_module(name).main()
    sys.exit()


if __name__ == "__main__":
    for needed in NEEDED:
        import_module(needed)
    import_module("germane.monitor.supervisor").SHORTEST_TERM = TERM  # type: ignore[attr-defined]  # for all forked
    _serve()
