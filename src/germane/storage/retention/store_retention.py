"""What keeps a database from growing for ever, and forgets whom it must forget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection

from germane.errors import UsageError
from germane.storage.db.component import Part
from germane.storage.queue import erase_text, feedback_requeue
from germane.storage.queue.tasks import Result
from germane.storage.retention import expire, orphans, size
from germane.storage.retention import forget as forgetting
from germane.storage.retention.expire import Batch, Place, Removed
from germane.storage.retention.forget import Person

YOUNGEST: Final = timedelta(hours=1)
"""What began later is never erased or deleted for the sake of size."""
_MEASURED: Final = {"sqlite": 1, "postgresql": 5}
"""Transactions between two looks at the size: on PostgreSQL a look reads some thousand pages."""
Some = Callable[[Connection, str, datetime, Place | None, datetime], Batch]
Sweep = Callable[[Connection, datetime], Removed]
_OLD: Final[tuple[Sweep, ...]] = (
    orphans.delete_feedback,
    orphans.delete_scores,
    orphans.delete_counts,
    orphans.delete_days,
    orphans.delete_marks,
    orphans.delete_alerts,
    orphans.delete_notifications,
    orphans.delete_silences,
)


def _never() -> bool:
    return False


@dataclass(slots=True)
class _Walk:
    """From the oldest exchange to the youngest, a few in each transaction."""

    some: Some
    before: datetime
    after: Place | None = None
    ended: bool = False


class Upkeep(Part):
    """The part of a store that takes away. Each step is a short transaction, and what is left undone is found again."""

    def prune(
        self,
        *,
        texts_before: datetime | None = None,
        before: datetime | None = None,
        max_size: int | None = None,
        dry_run: bool = False,
        stopping: Callable[[], bool] = _never,
    ) -> Removed:
        """Erase old text, delete old exchanges with all that is said of them, and old counts; return how much went.

        What waits to be scored of it is skipped as ``expired``; what is being scored now stays until the next time.

        Args:
            texts_before: Exchanges that began before then lose question, answer, contexts, history and error, what
                their scores tell beside numbers, and the comments of labels. A moment to come stands for now.
            before: Exchanges that began before then go, and counts and marks from before.
            max_size: Bytes, see :meth:`size`. Above, text goes earlier, the oldest first, then exchanges; what is
                younger than an hour stays.
            dry_run: Change nothing; say what would go for its age.
            stopping: Asked between transactions; once it returns True the rest is left for the next time.

        Raises:
            UsageError: a moment has no time zone.
        """
        now = self.now()
        before, texts_before = _past(before, now), _past(texts_before, now)
        if dry_run:
            return self._foresee(texts_before, before)
        gone = Removed()
        if before is not None:
            gone += self._walk(_Walk(expire.delete_some, before), stopping)
            gone += self._sweep_old(before, stopping)
        if texts_before is not None:
            gone += self._walk(_Walk(expire.erase_some, texts_before), stopping)
            gone += self._sweep(orphans.erase_comments, texts_before, stopping)
        if self._erases:
            gone += self._walk(_Walk(expire.erase_scored_some, self.now()), stopping)
        if max_size is not None:
            gone += self._fit(max_size, stopping)
        self._walk(_Walk(feedback_requeue.give_up_some, self.now() - feedback_requeue.PATIENCE), stopping)
        return gone + self._sweep(orphans.delete_workers, self.now(), stopping)

    def forget(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        attribute: tuple[str, str] | None = None,
        dry_run: bool = False,
    ) -> Removed:
        """Delete the exchanges of one user, session or attribute with all that is said of them; return how much went.

        What is being scored goes as well. Of a user, the labels that they gave go too. Counts stay, and name nobody.

        Args:
            user: As the exchanges have it.
            session: The same.
            attribute: Name and value; numbers and flags as JSON writes them, such as ``true``.
            dry_run: Change nothing; say what would go.

        Raises:
            UsageError: none of the three is given, or more than one is.
        """
        person = Person(user=user, session=session, attribute=attribute)
        exchanges = forgetting.count_some if dry_run else partial(forgetting.forget_some, process=self._process)
        labels = forgetting.count_labels if dry_run else forgetting.forget_labels
        transaction = self._database.read if dry_run else self._database.write
        gone = _each(transaction, lambda connection, after: exchanges(connection, person=person, after=after))
        if user is not None:
            gone += _each(transaction, lambda connection, after: labels(connection, user, after))
        return gone

    def size(self, limit: int | None = None) -> int:
        """Return the bytes that the rows take with their indexes; free room in the files does not count.

        On PostgreSQL only files larger than ``limit`` are looked into for that, by a sample of their pages.
        """
        with self._database.read() as connection:
            return size.size_of(connection, limit)

    def vacuum(self) -> None:
        """Pack the rows, so that also the files do not hold any more what was erased, as far as they are ours.

        SQLite's file shrinks and its log is emptied, for which writers wait; PostgreSQL's free room is known.
        """
        with self._database.autocommit() as connection:
            size.vacuum(connection)

    def _kept(self, results: Sequence[Result]) -> list[Result]:
        """Return what is written of scores: where text goes as soon as it is scored, none of it."""
        return [(task, erase_text.without_text(found)) for task, found in results] if self._erases else list(results)

    def _foresee(self, texts_before: datetime | None, before: datetime | None) -> Removed:
        with self._database.read() as connection:
            found = expire.count_old(connection, texts_before, before)
            return found if before is None else found + Removed(counts=orphans.count_minutes(connection, before))

    def _sweep_old(self, before: datetime, stopping: Callable[[], bool]) -> Removed:
        gone = Removed()
        for sweep in _OLD:
            gone += self._sweep(sweep, before, stopping)
        return gone

    def _fit(self, max_size: int, stopping: Callable[[], bool]) -> Removed:
        gone, last = Removed(), self.now() - YOUNGEST
        for some in (expire.erase_some, expire.delete_some):
            walk = _Walk(some, last)
            while not walk.ended and not stopping() and self.size(max_size) > max_size:
                gone += self._walk(walk, stopping, _MEASURED[self._database.dialect])
        return gone

    def _walk(self, walk: _Walk, stopping: Callable[[], bool], most: int | None = None) -> Removed:
        gone, steps = Removed(), 0
        while not walk.ended and not stopping() and steps != most:
            with self._database.write() as connection:
                batch = walk.some(connection, self._process, walk.before, walk.after, self._moment(connection))
            gone, steps, walk.after = gone + batch.removed, steps + 1, batch.last
            walk.ended = batch.last is None
        return gone

    def _sweep(self, sweep: Sweep, before: datetime, stopping: Callable[[], bool]) -> Removed:
        gone = Removed()
        while not stopping():
            with self._database.write() as connection:
                some = sweep(connection, before)
            gone += some
            if not some:
                break
        return gone

    def now(self) -> datetime:
        """Return the moment by the database's clock, by which all processes go."""
        with self._database.read() as connection:
            return self._moment(connection)


def _past(moment: datetime | None, now: datetime) -> datetime | None:
    """Return the moment in UTC, or now if it is still to come: what was spent today is no old count."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise UsageError(f"{moment} has no time zone")
    return min(moment.astimezone(UTC), now)


def _each(
    transaction: Callable[[], AbstractContextManager[Connection]], some: Callable[[Connection, Place | None], Batch]
) -> Removed:
    """Do all of it, a transaction for each batch."""
    gone, after = Removed(), None
    while True:
        with transaction() as connection:
            batch = some(connection, after)
        gone, after = gone + batch.removed, batch.last
        if after is None:
            return gone
