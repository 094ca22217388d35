"""Creation of SQLite files with owner-only permissions, and detection of deleted, replaced or corrupted files.

A process that has an SQLite file open does not notice when the file is deleted or replaced. It continues to write to a
file that no other process can read, and SQLite reports success.
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
"""File mode of new database files. SQLite creates the write-ahead log and its index with the same mode."""
LOG_LOST: Final = "lost its write-ahead log, which was deleted or replaced"
_CHECK_TIMEOUT: Final = 1.0
"""Maximum time in seconds that the content check waits for a lock."""


@dataclass(slots=True)
class OpenFiles:
    """Ids of the files that a connection has open."""

    database: FileId | None
    log: FileId | None


class SqliteFile:
    """A database file and its write-ahead log. Thread-safe.

    germane never opens an existing file itself, because closing it would release SQLite's locks in this process. The
    path is absolute.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.log_path = f"{path}-wal"
        self._checked_mtime = -1
        self._latest: FileId | None = None

    def create(self) -> None:
        """Create an empty file that only its owner can access, unless the file exists. SQLite reports any error."""
        with suppress(OSError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))

    def identify(self, connection: Any) -> OpenFiles:
        """Return the ids of the files that a new connection has open."""
        with suppress(sqlite3.Error):  # the first use of the connection reports the error
            connection.execute("PRAGMA schema_version")  # opens the log
        self._latest = _file_id(self.path)
        return OpenFiles(self._latest, _file_id(self.log_path))

    @property
    def is_replaced(self) -> bool:
        """Whether the path now refers to a different file than when the latest connection was opened."""
        return self._latest is not None and _file_id(self.path) != self._latest

    def find_loss(self, opened: OpenFiles) -> str | None:
        """Describe what happened to a connection's files, such as "was deleted". Return None if they are intact.

        This takes about two microseconds. The content is checked only after another connection, a checkpoint or another
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
        """Describe damage to the file header, read through a new connection, because existing ones have cached it."""
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
