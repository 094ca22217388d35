"""The file of an SQLite database: creates it for its owner only, and detects that it was deleted or changed.

A process that has an SQLite file open does not notice that the file was deleted or replaced: it continues to write into
a file that nobody can read, and SQLite reports success.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

FileId = tuple[int, int]
"""Device and inode."""

PRIVATE: Final = 0o600
"""Mode of new database files. SQLite gives the write-ahead log and its index the mode of the database file."""
LOG_LOST: Final = "lost its write-ahead log, which was deleted or replaced"
_CHECK_TIMEOUT: Final = 1.0
"""Maximum time that the content check waits for a lock, in seconds."""


@dataclass(slots=True)
class OpenFiles:
    """The files that a connection has open."""

    database: FileId | None
    log: FileId | None


class SqliteFile:
    """A database's file and its write-ahead log. Thread-safe.

    germane never opens the file itself: closing it would release the locks that SQLite holds in this process.

    Args:
        path: Absolute path of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.log_path = f"{path}-wal"
        self._checked_mtime = -1
        self._latest: FileId | None = None

    def create(self) -> None:
        """Create an empty file for its owner only, unless the file exists. SQLite reports any error."""
        with suppress(OSError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))

    def identify(self, connection: Any) -> OpenFiles:
        """Return the files that a new connection has open."""
        with suppress(sqlite3.Error):  # the first use of the connection reports it
            connection.execute("PRAGMA schema_version")  # opens the log
        self._latest = _file_id(self.path)
        return OpenFiles(self._latest, _file_id(self.log_path))

    @property
    def is_replaced(self) -> bool:
        """Whether the path now leads to a different file than when the latest connection was opened."""
        return self._latest is not None and _file_id(self.path) != self._latest

    def find_loss(self, opened: OpenFiles) -> str | None:
        """Return what happened to a connection's files, such as "was deleted"; None if they are intact.

        This takes about two microseconds. The content is only checked after another connection, a checkpoint or another
        program has written to the file.
        """
        try:
            status = os.stat(self.path)  # noqa: PTH116 - pathlib takes twice as long
        except FileNotFoundError:
            return "was deleted"
        except OSError as error:
            return f"cannot be accessed: {error.strerror}"
        if (status.st_dev, status.st_ino) != opened.database:
            return "was replaced by another file"
        log = _file_id(self.log_path)
        if opened.log is None:  # the database was not in WAL mode yet
            opened.log = log
        elif log != opened.log:
            return LOG_LOST
        if status.st_mtime_ns != self._checked_mtime:
            if (damage := self._find_damage()) is not None:
                return damage
            self._checked_mtime = status.st_mtime_ns
        return None

    def _find_damage(self) -> str | None:
        """Read the header through a new connection, because existing connections have cached it."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_CHECK_TIMEOUT)) as connection:
                (version,) = connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.DatabaseError as error:
            is_locked = "locked" in str(error)
            return None if is_locked else f"was overwritten or damaged: {error}; restore a backup"
        return None if version else "was emptied"


def _file_id(path: str) -> FileId | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - pathlib takes twice as long
    except OSError:
        return None
    return status.st_dev, status.st_ino
