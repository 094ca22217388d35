"""Leases, by which at most one process at a time works on a row.

A leased table has two columns:

- ``due_at``: the time from which a process may claim the row; for a claimed row, the end of the lease. Null if the row
  is finished.
- ``lease_owner``: the process that has claimed the row. Null if none has.

An expired lease stays valid until another process claims the row. Every change of a claimed row depends on its owner,
so that a process that has lost a row can neither renew nor finish it. Times come from the clock that the processes
share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Self

from sqlalchemy import ColumnElement, Connection, Select, Table, Update, bindparam, func, select, tuple_, update

from germane.errors import StorageError

Rows = ColumnElement[bool]
"""A condition that selects rows of a leased table."""
FINISHED: Final = {"lease_owner": None, "due_at": None}
"""Values of a row that no process will claim again."""
RENEWALS_PER_LEASE: Final = 4
MAX_RENEWAL_INTERVAL: Final = 15.0
"""The longest interval between two renewals in seconds, even if the lease is longer."""
RETRY_INTERVAL: Final = 1.0
"""The longest delay after a failed renewal in seconds."""


def select_due(table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return a query for the rows that have been due longest, with the parameters ``now`` and ``limit``.

    The rows are locked until the transaction ends. Rows that another transaction has locked are skipped.
    """
    query = select(*columns).where(table.c.due_at <= bindparam("now")).order_by(table.c.due_at, *table.primary_key)
    return query.limit(bindparam("limit")).with_for_update(skip_locked=True)


def claim(table: Table, *, owner: Any, until: Any) -> Update:
    """Return an update that claims rows until a time. The caller restricts it to due rows, which it has locked."""
    return update(table).values(lease_owner=owner, due_at=until)


def release(table: Table, of_owner: Rows, due_at: Any) -> Update:
    """Return an update that lets any process claim all rows of an owner."""
    return update(table).where(of_owner, table.c.due_at.is_not(None)).values(lease_owner=None, due_at=due_at)


def lock_held(query: Select[Any], table: Table, owner: Any, *, skip_locked: bool = False) -> Select[Any]:
    """Restrict a query to rows that the owner holds, and lock them until the transaction ends."""
    # Without coalesce(), the databases might use the index on owners, which is slower than the index on keys. Processes
    # that lock rows in the same order do not wait for each other.
    held = query.where(func.coalesce(table.c.lease_owner, "") == owner).order_by(*table.primary_key)
    return held.with_for_update(of=table, skip_locked=skip_locked)


def renew(
    connection: Connection, table: Table, rows: Rows, owner: str, until: Any, *, skip_locked: bool = False
) -> int:
    """Extend the owner's leases on rows, and return their number."""
    return _change_held(connection, table, rows, owner, {"due_at": until}, skip_locked=skip_locked)


def postpone(connection: Connection, table: Table, rows: Rows, owner: str, due_at: Any, **values: Any) -> int:
    """Let any process claim the owner's rows from a time on, and return their number."""
    return _change_held(connection, table, rows, owner, {"lease_owner": None, "due_at": due_at, **values})


def finish(connection: Connection, table: Table, rows: Rows, owner: str, **values: Any) -> int:
    """Finish the owner's rows, and return their number."""
    return _change_held(connection, table, rows, owner, {**FINISHED, **values})


def _change_held(
    connection: Connection, table: Table, rows: Rows, owner: str, values: dict[str, Any], *, skip_locked: bool = False
) -> int:
    key = tuple_(*table.primary_key) if len(table.primary_key) > 1 else next(iter(table.primary_key))
    held = lock_held(select(*table.primary_key).where(rows), table, owner, skip_locked=skip_locked)
    return connection.execute(update(table).where(key.in_(held)).values(values)).rowcount


class LeaseRenewal:
    """Renews a lease in a thread of its own, so that neither an event loop nor a slow transaction delays it.

    Args:
        renew: Renews the lease, and returns False if another process has taken it. After a StorageError, it is called
            again soon.
        lease: Duration of the lease.
        name: Name of the thread.
        release: Gives the lease back. It is called in the thread after the last renewal, unless the lease is lost.
    """

    def __init__(
        self,
        renew: Callable[[], bool],
        *,
        lease: timedelta,
        name: str,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        self.is_lost = False
        """Whether another process has taken the lease."""
        self._renew = renew
        self._release = release
        self._interval = min(lease.total_seconds() / RENEWALS_PER_LEASE, MAX_RENEWAL_INTERVAL)
        self._stopping = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def renew_now(self) -> None:
        """Renew the lease without waiting for the end of the interval."""
        self._due.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop renewing the lease. Return whether the thread has ended within ``timeout`` seconds. Blocks."""
        self._stopping = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        """Start the thread."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop renewing the lease."""
        self.stop()

    def _run(self) -> None:
        delay = self._interval
        while not self.is_lost:
            self._due.wait(delay)
            self._due.clear()
            if self._stopping:
                with suppress(StorageError):  # the lease expires
                    self._release()
                return
            delay = min(self._interval, RETRY_INTERVAL)
            with suppress(StorageError):
                self.is_lost = not self._renew()
                delay = self._interval
