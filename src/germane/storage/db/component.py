"""What all parts of the store stand on: its database, the time, and whose counts these are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Connection

from germane.storage.db.engine import Database
from germane.storage.db.errors import ContentRefused
from germane.storage.queue import erase_text
from germane.storage.quota import rate_limits


def utc_now() -> datetime:
    """Return the time in UTC, with its zone."""
    return datetime.now(UTC)


class Part:
    """A group of the store's methods.

    Args:
        clock: Tells the time; without one of its own it goes by the database's.
        erases: Whether text goes as soon as nothing of its exchange is left to be scored.
    """

    def __init__(self, database: Database, *, clock: Callable[[], datetime], erases: bool) -> None:
        self._database = database
        self._clock = clock
        self._erases = erases
        self._counter = (0, "")

    def _moment(self, connection: Connection) -> datetime:
        """Return the time by the clock that all processes on this database share, or by the one that was given."""
        return self._given_time() or rate_limits.moment(connection)

    def _given_time(self) -> datetime | None:
        """Return what the clock shows that this store was given; None without one."""
        return None if self._clock is utc_now else self._clock()

    @property
    def _process(self) -> str:
        """Whose rows of the tally this process adds to."""
        if self._counter[0] != os.getpid():
            self._counter = (os.getpid(), uuid4().hex[:16])
        return self._counter[1]

    def _erase_closed(self, connection: Connection, exchange_ids: Iterable[str]) -> None:
        """Erase, where that is asked for, the text of exchanges of which nothing is left to be scored."""
        if self._erases:
            erase_text.erase_closed(connection, list(exchange_ids), self._moment(connection))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Open a transaction for rows that others made; what no column takes is the same to whoever asked."""
        try:
            with self._database.write() as connection:
                yield connection
        except (AttributeError, TypeError, ValueError) as error:
            raise ContentRefused(f"a row holds what no column takes ({type(error).__name__})") from error
