"""Scores kept in a file, so that a run that was ended goes on where it was, and a second one costs nothing.

Values and skipped scores are kept; what failed is asked again. Each score is committed by itself, as soon as it is
there: whatever ends the process, the file is whole. Several processes may share one. It is a file that is looked up by
key, not a part of the database: nothing joins, queries or migrates it, so it is the standard library's SQLite.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from pathlib import Path
from typing import Self

from germane.errors import UsageError
from germane.evaluation.scoring import Work
from germane.evaluation.serialize import dumped, loaded
from germane.score import Score

log = logging.getLogger("germane.evaluation")

VERSION = 1
"""Of the file's shape: raised when older files can no longer be read."""
_GERMANE = 0x6765726D
"""Marks the file as ours: "germ"."""
_TABLE = """
CREATE TABLE score (
    scorer TEXT NOT NULL, fingerprint TEXT NOT NULL, content TEXT NOT NULL, score TEXT NOT NULL,
    PRIMARY KEY (scorer, fingerprint, content)
) WITHOUT ROWID
"""
_FIND = "SELECT score FROM score WHERE scorer = ? AND fingerprint = ? AND content = ?"
_KEEP = "INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?)"


class Cache:
    """An SQLite file of scores. For one thread; close it, or use it in a ``with``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or make the file.

        Raises:
            UsageError: it cannot be opened, is something else, or was written by another version.
        """
        self.path = Path(path)
        self._is_broken = False
        try:
            self._connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(f"cannot be opened: {error}") from None
        try:
            self._prepare()
        except sqlite3.OperationalError as error:
            self.close()
            raise self._refusal(f"cannot be used: {error}") from None
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._refusal(f"is no cache of germane's: {error}") from None
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Closing twice is no error."""
        self._connection.close()

    def find(self, work: Work) -> Score | None:
        """Return the score of the same work; None where there is none that can be read."""
        try:
            row = self._connection.execute(_FIND, (work.scorer, work.fingerprint, work.content)).fetchone()
            return None if row is None else loaded(row[0])
        except (sqlite3.Error, ValueError, TypeError, KeyError):
            return None

    def keep(self, work: Work, score: Score) -> None:
        """Keep a score that is not a failure. A file that can no longer be written is told of once."""
        if score.state == "failed" or self._is_broken:
            return
        try:
            self._connection.execute(_KEEP, (work.scorer, work.fingerprint, work.content, dumped(score)))
        except sqlite3.Error as error:
            # Not tried again: a file that another process holds would cost each row the time of the lock.
            self._is_broken = True
            log.warning("the cache %s cannot be written (%s): scores from here on are not kept", self.path, error)

    def _prepare(self) -> None:
        """Make the table, once: of processes that start together one does, while the others wait."""
        self._connection.execute("BEGIN IMMEDIATE")
        if not self._is_prepared():
            self._connection.execute(_TABLE)
            self._connection.execute(f"PRAGMA application_id = {_GERMANE}")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
        self._connection.execute("COMMIT")
        with contextlib.suppress(sqlite3.OperationalError):  # another is at it: the mode is the file's, not ours alone
            self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")  # survives a killed process; no wait for the disk

    def _is_prepared(self) -> bool:
        """Return whether the table is there; a file that is not ours is refused before anything is written into it."""
        owner, version = self._pragma("application_id"), self._pragma("user_version")
        holds = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if holds and owner != _GERMANE:
            raise self._refusal("is a database of something else")
        if owner == _GERMANE and version != VERSION:
            shape = f"its shape is {version}, not {VERSION}"
            raise self._refusal(
                f"was written by another version of germane ({shape})", "delete it, or name another file"
            )
        return owner == _GERMANE

    def _pragma(self, name: str) -> int:
        value: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def _refusal(self, what: str, fix: str = "name another file") -> UsageError:
        return UsageError(f"the cache {self.path} {what}; {fix}")
