"""The exceptions that germane raises.

::

    GermaneError
    ├── SettingsError        a setting is invalid or unknown                              (also ValueError)
    │   └── UnknownScorer          no scorer has this name
    ├── UsageError           a decorator or function was called in an unsupported way     (also TypeError)
    ├── ModelError           the weights of a local model are missing or invalid
    ├── StorageError
    │   ├── DatabaseUnreachable    the connection failed or was lost
    │   ├── DatabaseNotMigrated    the schema is older or newer than this version expects
    │   │   └── DatabaseAbsent     the SQLite file does not exist yet
    │   ├── ContentRefused         a row contains a value that no column accepts
    │   └── ArchiveError           days of the Parquet archive are missing, damaged or unreachable
    └── ScoringError         a scorer, judge or embedder returned no value; has a reason
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.score import UnscoredReason


class GermaneError(Exception):
    """The base class of all exceptions that germane raises."""


class SettingsError(GermaneError, ValueError):
    """A setting is invalid or unknown. The message names the setting, its value and the fix."""


class UnknownScorer(SettingsError):
    """No scorer has this name. The message suggests a similar one, or lists all of them."""


class UsageError(GermaneError, TypeError):
    """A decorator or function was called in an unsupported way."""


class ModelError(GermaneError):
    """The weights of a local model are missing or invalid."""


class StorageError(GermaneError):
    """The database rejected an operation."""


class DatabaseUnreachable(StorageError):
    """The connection to the database failed or was lost."""


class DatabaseNotMigrated(StorageError):
    """The database schema is older or newer than this version expects."""


class DatabaseAbsent(DatabaseNotMigrated):
    """The SQLite file does not exist yet."""


class ContentRefused(StorageError):
    """Raised when the database works, but will never accept this row."""


class ArchiveError(StorageError):
    """Days of the Parquet archive are missing, damaged or unreachable. The message names them."""


class ScoringError(GermaneError):
    """A scorer, judge or embedder returned no value. The result is a failed score with ``reason``."""

    def __init__(
        self,
        reason: UnscoredReason,
        message: str,
        *,
        retry_after: float | None = None,
        rejected: bool = False,
        fix: str | None = None,
        http_status: int | None = None,
        is_unanswered: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after
        """The server's ``Retry-After``, in seconds."""
        self.rejected = rejected
        """Whether the server rejected the key, the model or the request quota, regardless of ``reason``."""
        self.fix = fix
        """What the operator should do, if the cause is more specific than ``reason``."""
        self.http_status = http_status
        """The status with which the server refused the request; None if it did not reply or the reply is unusable."""
        self.is_unanswered = is_unanswered
        """Whether there was no connection to a model server."""


def error_location(error: BaseException) -> str:
    """Return an error's type and location, such as ``ValueError at app.py:12``. Messages may contain user text."""
    frames = traceback.extract_tb(error.__traceback__)
    location = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{location}"
