"""The base class of the store's components, and the context that they share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from sqlalchemy import Connection, func, select

from germane.errors import ContentRefused
from germane.storage.db.engine import Database

CLOCK_INTERVAL: Final = 1.0
"""Maximum time in seconds for which the time is derived from the server's clock instead of being requested again."""


def utc_now() -> datetime:
    """Return the current time in UTC, as a timezone-aware datetime."""
    return datetime.now(UTC)


class StoreContext:
    """The database, the clock and the options that all components of a store share.

    The arguments are those of :class:`~germane.storage.store.TrackingStore`.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], datetime] = utc_now,
        erase_after_scoring: bool = False,
        archive: str | None = None,
    ) -> None:
        self.database = database
        self.archive = archive
        self.erase_after_scoring = erase_after_scoring
        self.registered_workers: set[str] = set()
        """Workers that this process has registered, including any that have deregistered since."""
        self._clock = clock
        self._server_clock = (-CLOCK_INTERVAL, datetime.now(UTC))
        """When the server's clock was last read, in seconds on the monotonic clock, and the time in UTC."""
        self._process = (0, "")

    @property
    def process(self) -> str:
        """The id of this process's rows in the tally. A forked child gets its own id."""
        if self._process[0] != os.getpid():
            self._process = (os.getpid(), uuid4().hex[:16])
        return self._process[1]

    def local_time(self) -> datetime:
        """Return the current time from this process's clock."""
        return self._clock()

    def now(self, connection: Connection) -> datetime:
        """Return the current time from the explicit clock if there is one, otherwise from the database's clock.

        All processes that use the database share its clock. The transactions of a batch share one query for it.
        """
        if self._clock is not utc_now:
            return self._clock()
        if connection.dialect.name == "sqlite":
            return utc_now()
        read_at, server_time = self._server_clock
        if time.monotonic() - read_at >= CLOCK_INTERVAL:
            server_time = connection.execute(select(func.clock_timestamp())).scalar_one().astimezone(UTC)
            read_at = time.monotonic()
            self._server_clock = (read_at, server_time)
        return server_time + timedelta(seconds=time.monotonic() - read_at)

    def read_clock(self) -> datetime:
        """Return the current time, as :meth:`now` does, using a separate transaction."""
        with self.database.read() as connection:
            return self.now(connection)


class StoreComponent:
    """A group of a store's methods. Each method runs in one transaction unless documented otherwise."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._database = context.database

    @contextmanager
    def _write_values(self) -> Iterator[Connection]:
        """Open a transaction that writes values of callers. Raise ContentRefused if no column accepts a type."""
        with self._database.write() as connection:
            try:
                yield connection
            except (AttributeError, TypeError, ValueError) as error:
                problem = f"a row contains a value of an unsupported type ({type(error).__name__})"
                raise ContentRefused(problem) from error
