"""Translation of driver errors into germane's errors, which name the failure, the database and the fix.

The driver's error is not chained, because its text may quote user data or connection parameters.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import exc

from germane.errors import ContentRefused, DatabaseNotMigrated, DatabaseUnreachable, StorageError

_UNDEFINED_STATES: Final = ("42P01", "42703")  # table, column
_CONFLICT_STATES: Final = ("40001", "40P01")  # serialization failure, deadlock
_PERMISSION_STATES: Final = ("42501", "25006", "3F000")  # privilege, read-only transaction, no schema to create in
_CONTENT_STATES: Final = (
    "22",
    "23",
    "54",
)  # data, integrity, program limits (size of an index row)
_UNDEFINED_MESSAGES: Final = ("no such table", "no such column", "has no column named")
_HINTS: Final = (
    ("unable to open database file", "make sure that its directory exists and that this process can write to it"),
    ("readonly database", "give this process write access to the file and its directory"),
    ("disk is full", "free some disk space"),
    ("database is locked", "another process has held the lock for too long: stop that process"),
    ("not a database", "the file is not an SQLite database: choose another path"),
    ("disk I/O error", "check the disk, and make sure that the file still exists"),
    ("password authentication failed", "check the user name and the password"),
    ("does not exist", "create it, or correct the name"),
    ("Connection refused", "start the server, or correct the host and the port"),
    ("too many clients", "raise max_connections, or use a connection pooler"),
)


class PermissionDenied(DatabaseUnreachable):
    """Raised when the role, or a read-only server, may not do what a statement asks for."""

    def __init__(self, database: str, message: str) -> None:
        grants = "grant this role SELECT, INSERT, UPDATE and DELETE on germane's tables, and USAGE on their sequences"
        super().__init__(f"{database} failed: {message}; {grants}, or connect to a server that is not read-only")
        self.message = message
        """The server's message, without the name of the database."""


class TransactionConflict(DatabaseUnreachable):
    """Raised when a transaction failed because another one changed the same rows. Repeat it."""


def translate_error(error: exc.DBAPIError | exc.TimeoutError, database: str) -> StorageError:
    """Return the error to raise instead of a driver error; ``database`` is the URL without the password."""
    if not isinstance(error, exc.DBAPIError):
        return DatabaseUnreachable(f"{database} has no free connection: too many threads are waiting for one")
    # Use only the first line, because later lines quote rows.
    diagnosis = getattr(getattr(error.orig, "diag", None), "message_primary", None)
    lines = str(diagnosis or error.orig or type(error).__name__).strip().splitlines()
    message = lines[0] if lines else type(error.orig).__name__
    state = getattr(error.orig, "sqlstate", None) or ""
    if state in _UNDEFINED_STATES or (not state and any(text in message for text in _UNDEFINED_MESSAGES)):
        return DatabaseNotMigrated(
            f"{database} lacks germane's tables ({message}): run 'germane db upgrade', or Store.migrate()"
        )
    if state in _CONFLICT_STATES:
        return TransactionConflict(f"{database} failed: {message}")
    if state in _PERMISSION_STATES:
        return PermissionDenied(database, message)
    is_content = isinstance(error, (exc.IntegrityError, exc.DataError, exc.ProgrammingError))
    if state:
        is_content = state.startswith(_CONTENT_STATES)
    # Without a statement, the connection failed, for example because of an option in the URL.
    if is_content and error.statement is not None and not error.connection_invalidated:
        return ContentRefused(f"{database} rejected a row: {message}")
    hint = next((f"; {hint}" for text, hint in _HINTS if text in message), "")
    return DatabaseUnreachable(f"{database} failed: {message}{hint}")
