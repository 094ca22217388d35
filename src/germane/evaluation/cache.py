"""A score cache on disk: an interrupted run continues where it stopped, and a repeated run is free.

Scores with a value and skipped scores are cached. Failed scores are not cached, so the next run retries them. Each
score is committed immediately, so the file stays valid if the process is killed. Several processes can share a file.
The cache is a key-value store outside the tracking database, so it uses the standard library's ``sqlite3``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from germane.errors import UsageError
from germane.evaluation.serialize import dump_score, load_score
from germane.score import Score

VERSION = 1
"""Schema version of the file. Increase it when a change makes existing files unreadable."""
_APPLICATION_ID = 0x6765726D
"""The SQLite application ID that identifies a score cache: "germ" in ASCII."""
_CREATE_TABLE = """
CREATE TABLE score (
    scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, content TEXT NOT NULL, score TEXT NOT NULL,
    PRIMARY KEY (scorer, fingerprint, content)
) WITHOUT ROWID
"""
_SELECT = "SELECT score FROM score WHERE scorer = ? AND fingerprint = ? AND content = ?"
_INSERT = "INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?)"

log = logging.getLogger("germane.evaluation")


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Identifies a cached score by its scorer, the fingerprint of the scorer's configuration, and the scorer's
    input.
    """

    scorer: str
    fingerprint: str
    content: str
    """Hash of the exchange fields that the scorer may use."""


class ScoreCache:
    """A score cache in an SQLite file. Use it from one thread only, and close it or use it as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or create the file. Raise a usage error if it is not a score cache, or has another schema version."""
        self.path = Path(path)
        self._is_broken = False
        try:
            self._connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        except sqlite3.Error as error:
            raise self._error(f"cannot be opened: {error}") from None
        try:
            self._connection.execute("BEGIN IMMEDIATE")  # one process at a time; others wait
            # Before writing to the file, check that it belongs to germane.
            owner, version = self._read_pragma("application_id"), self._read_pragma("user_version")
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables and owner != _APPLICATION_ID:
                raise self._error("belongs to another program")
            if owner == _APPLICATION_ID and version != VERSION:
                raise self._error(
                    f"was written by another version of germane (schema {version} instead of {VERSION})",
                    "delete it, or use another file",
                )
            if owner != _APPLICATION_ID:
                self._connection.execute(_CREATE_TABLE)
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
            self._connection.execute("COMMIT")
            # The journal mode is stored in the file, so it does not matter which process sets it.
            with contextlib.suppress(sqlite3.OperationalError):
                self._connection.execute("PRAGMA journal_mode = WAL")
            # Commits survive a killed process without waiting for the disk.
            self._connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.OperationalError as error:
            self.close()
            raise self._error(f"cannot be used: {error}") from None
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._error(f"is not a score cache: {error}") from None
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._connection.close()

    def find_score(self, key: CacheKey) -> Score | None:
        """Return the cached score for a key, or None if there is none or it cannot be read."""
        try:
            row = self._connection.execute(_SELECT, (key.scorer, key.fingerprint, key.content)).fetchone()
            return None if row is None else load_score(row[0])
        except (sqlite3.Error, ValueError, TypeError, KeyError):
            return None

    def save_score(self, key: CacheKey, score: Score) -> None:
        """Store a score unless it failed. If the file cannot be written, log one warning and stop caching."""
        if score.state == "failed" or self._is_broken:
            return
        try:
            self._connection.execute(_INSERT, (key.scorer, key.fingerprint, key.content, dump_score(score)))
        except sqlite3.Error as error:
            # Stop caching: if another process holds the lock, each row would wait for it.
            self._is_broken = True
            log.warning("cannot write to the cache %s (%s); further scores will not be cached", self.path, error)

    def _read_pragma(self, name: str) -> int:
        value: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def _error(self, what: str, fix: str = "use another file") -> UsageError:
        return UsageError(f"the cache {self.path} {what}; {fix}")
