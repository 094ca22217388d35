"""The lease of the process that changes the archive. Its row also stores the archive's id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import uuid4

from germane.errors import ArchiveError
from germane.storage.db.component import StoreContext
from germane.storage.db.leases import LeaseRenewal
from germane.storage.workers import WorkerStore, load_cursor, save_cursor

NAME: Final = "archive"
TTL: Final = timedelta(seconds=60)


@contextmanager
def hold_archive(context: StoreContext) -> Iterator[LeaseRenewal]:
    """Hold the lease for the duration of the context. Raise ArchiveError if another process holds it."""
    owner = uuid4().hex
    acquire = partial(WorkerStore(context).acquire_lease, NAME, owner)
    if not acquire(ttl=TTL):
        raise ArchiveError("another process is changing the archive: run the command again when it has finished")
    with context.database.write() as connection:
        save_cursor(connection, NAME, owner, load_cursor(connection, NAME) or uuid4().hex)
    renew, release = partial(acquire, ttl=TTL), partial(acquire, ttl=timedelta())
    with LeaseRenewal(renew, release=release, lease=TTL, name="germane-archive-lease") as renewal:
        yield renewal
