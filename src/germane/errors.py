"""What germane raises.

::

    GermaneError
    ├── SettingsError        a setting is wrong or unknown                       (also ValueError)
    ├── UsageError           a decorator or function was used in a way it cannot work   (also TypeError)
    ├── ModelError           weights are missing or not the ones they should be
    ├── StorageError
    │   ├── DatabaseUnreachable    no connection, or one that went away
    │   └── DatabaseNotMigrated    the tables are older or newer than this code
    └── ScoringError         a scorer, judge or embedder got no value; carries the reason
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane.score import Reason


class GermaneError(Exception):
    """The root of all of them."""


class SettingsError(GermaneError, ValueError):
    """A setting is wrong or unknown: the message names it, its value and the fix."""


class UsageError(GermaneError, TypeError):
    """A decorator or function was used in a way in which it cannot work."""


class ModelError(GermaneError):
    """The weights of an embedded model are missing, or are not the ones they should be."""


class StorageError(GermaneError):
    """The database refused what was asked of it."""


class DatabaseUnreachable(StorageError):
    """There is no connection to the database, or it went away."""


class DatabaseNotMigrated(StorageError):
    """The tables in the database are older or newer than this code expects."""


class ScoringError(GermaneError):
    """A scorer, judge or embedder got no value. It ends as a failed score with ``reason``, never as a number."""

    def __init__(
        self, reason: Reason, message: str, *, retry_after: float | None = None, rejected: bool = False
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after
        """Seconds that the server asked to be left alone."""
        self.rejected = rejected
        """Whether a server refuses key, model or quota, where the reason does not say so: somebody must act."""


def place_of(error: BaseException) -> str:
    """Name the type of an error and the line that raised it, and nothing of what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
