"""What a driver raises, in germane's words: what happened, to which database, how to mend it.

The driver's error is not chained: its text may quote a row of a user's, or the connection's parameters.
"""

from __future__ import annotations

from sqlalchemy import exc

from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, StorageError

_UNDEFINED = ("42P01", "42703")  # table, column
_CONTENT = ("22", "23", "54")  # data exception, integrity, program limits such as the size of an index row
_MIGRATE = "run 'germane db upgrade', or Store.migrate()"

_HINTS = (
    ("unable to open database file", "make sure that its directory exists and that this process may write there"),
    ("readonly database", "give this process the right to write to the file and its directory"),
    ("disk is full", "free some space"),
    ("database is locked", "another process has held it for too long: let that one end"),
    ("not a database", "the file is something else: choose another path"),
    ("disk I/O error", "check the disk, and that the file still lies where it was"),
    ("password authentication failed", "check user and password"),
    ("does not exist", "create it, or correct the name"),
    ("Connection refused", "start the server, or correct host and port"),
    ("too many clients", "raise max_connections, or put a pooler in front"),
)


class ContentRefused(StorageError):
    """The database works, and will never take this row."""


def translated(error: exc.DBAPIError | exc.TimeoutError, database: str) -> StorageError:
    """Return the error to raise instead; ``database`` is its URL without the password."""
    if not isinstance(error, exc.DBAPIError):
        return DatabaseUnreachable(f"{database} gave no connection in time: too many threads wait for one")
    said = _said(error)
    if _not_migrated(error, said):
        return DatabaseNotMigrated(f"{database} lacks germane's tables ({said}): {_MIGRATE}")
    if _is_content(error):
        return ContentRefused(f"{database} refused a row: {said}")
    return DatabaseUnreachable(f"{database} does not work: {said}{_hint(said)}")


def _said(error: exc.DBAPIError) -> str:
    """Return the first line of what the database said: further ones quote rows."""
    diagnosis = getattr(error.orig, "diag", None)
    primary = getattr(diagnosis, "message_primary", None)
    lines = str(primary or error.orig or type(error).__name__).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


def _sqlstate(error: exc.DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _not_migrated(error: exc.DBAPIError, said: str) -> bool:
    lacking = ("no such table", "no such column", "has no column named")
    return _sqlstate(error) in _UNDEFINED or (not _sqlstate(error) and any(words in said for words in lacking))


def _is_content(error: exc.DBAPIError) -> bool:
    if error.connection_invalidated:
        return False
    if _sqlstate(error):
        return _sqlstate(error).startswith(_CONTENT)
    return isinstance(error, (exc.IntegrityError, exc.DataError, exc.ProgrammingError))


def _hint(said: str) -> str:
    return next((f"; {hint}" for words, hint in _HINTS if words in said), "")
