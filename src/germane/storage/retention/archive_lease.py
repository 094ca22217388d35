"""The lease of the process that changes the archive. Its row also stores the archive's id."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final
from uuid import uuid4

from germane.errors import ArchiveError, StorageError
from germane.storage.db.component import StoreContext
from germane.storage.workers import WorkerStore, load_cursor, save_cursor

NAME: Final = "archive"
TTL: Final = timedelta(seconds=60)
RENEWALS_PER_TTL: Final = 3


class ArchiveLease:
    """A lease that a thread renews.

    Attributes:
        archive_id: Random id of the database's archive.
        is_lost: Whether another process has acquired the lease, because this one was suspended.
    """

    def __init__(self, workers: WorkerStore, owner: str, archive_id: str) -> None:
        self.archive_id = archive_id
        self.is_lost = False
        self._workers = workers
        self._owner = owner
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="germane-archive-lease", daemon=True)

    def start(self) -> None:
        """Start to renew the lease."""
        self._thread.start()

    def release(self) -> None:
        """Stop renewing the lease, and let other processes acquire it."""
        self._done.set()
        self._thread.join()
        if not self.is_lost:
            with suppress(StorageError):  # the lease expires
                self._workers.acquire_lease(NAME, self._owner, ttl=timedelta())

    def _renew(self) -> None:
        while not self.is_lost and not self._done.wait(TTL.total_seconds() / RENEWALS_PER_TTL):
            with suppress(StorageError):  # the next renewal may succeed
                self.is_lost = not self._workers.acquire_lease(NAME, self._owner, ttl=TTL)


@contextmanager
def hold_archive(context: StoreContext) -> Iterator[ArchiveLease]:
    """Hold the lease for the duration of the context.

    Raises:
        ArchiveError: Another process holds it.
    """
    workers, owner = WorkerStore(context), uuid4().hex
    if not workers.acquire_lease(NAME, owner, ttl=TTL):
        raise ArchiveError("another process is changing the archive: run the command again when it has finished")
    with context.database.write() as connection:
        archive_id = load_cursor(connection, NAME) or uuid4().hex
        save_cursor(connection, NAME, owner, archive_id)
    lease = ArchiveLease(workers, owner, archive_id)
    lease.start()
    try:
        yield lease
    finally:
        lease.release()
