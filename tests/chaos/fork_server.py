"""A fork server, which starts processes by forking a process that has imported everything.

This module is also the server's script. Imports take seconds of CPU time, which is too long for a cluster with a kill
per second.
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

PRELOADED_MODULES = (
    "germane.cli.app",
    "germane.cli.commands.worker",
    "germane.cli.worker",
    "openai",
    "psycopg",
    "apscheduler",
    "sqlmodel",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "opentelemetry.sdk.trace",
    "apscheduler.schedulers.asyncio",
    "alembic.command",
    "capture_app",
)
MIN_LEASE_TTL = 2.0
"""The TTL of leader leases in seconds. With a kill per second, a leader must be replaced quickly."""


class ForkServer:
    """Starts processes, and kills the remaining processes when it is closed or its own process ends."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # only a process with a single thread can be forked
        self._server = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.communicate()

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], files: Path) -> int:
        """Start ``germane`` or a script with arguments; return the process id.

        Standard output is appended to ``files`` with the suffix ``.out``, and standard error to ``files`` with the
        suffix ``.log``.
        """
        return int(self._request(arguments=list(arguments), environment=dict(environment), files=str(files)))

    def exit_code(self, pid: int) -> int | None:
        """Return the exit code of a process, negative for a signal; None while it is running."""
        code: int | None = self._request(pid=pid)
        return code

    def kill(self, pid: int) -> None:
        """Send SIGKILL to a process, and wait until it has ended."""
        os.kill(pid, signal.SIGKILL)
        while self.exit_code(pid) is None:
            time.sleep(0.001)

    def _request(self, **request: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


def _serve() -> None:
    """Answer requests until standard input is closed, then kill the remaining processes."""
    exit_codes: dict[int, int | None] = {}
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "arguments" in request:
            pid = os.fork()
            if not pid:
                _run(**request)
            exit_codes[pid], reply = None, pid
        else:
            pid = request["pid"]
            if exit_codes[pid] is None:
                ended, status = os.waitpid(pid, os.WNOHANG)
                exit_codes[pid] = os.waitstatus_to_exitcode(status) if ended else None
            reply = exit_codes[pid]
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
    for pid in [pid for pid, code in exit_codes.items() if code is None]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _run(arguments: list[str], environment: dict[str, str], files: str) -> None:
    """Become the requested process. Never returns."""
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
    for module in PRELOADED_MODULES:
        import_module(module)
    supervisor = import_module("germane.monitor.supervisor")  # imported here for all forked processes
    supervisor.MIN_LEASE_TTL = MIN_LEASE_TTL  # type: ignore[attr-defined]
    _serve()
