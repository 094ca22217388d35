"""The part of a store that knows which processes score, and what is nobody's work any more."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from germane.storage.cluster import workers
from germane.storage.cluster import workers as jobs
from germane.storage.cluster.workers import JobRuns, Presence, Worker
from germane.storage.db.component import Part
from germane.storage.queue import orphans
from germane.storage.queue.backlog import Pair

ABSENCE: Final = timedelta(hours=1)
"""A scorer that no process had for so long is taken for gone."""
BATCH: Final = 1000
"""Tasks that end in one transaction."""


class Roster(Part):
    """The processes that score. Moments are by the clock that all of them share."""

    def beat(
        self, presence: Presence, held: Collection[int], *, lease: timedelta, longest_wait: timedelta = ABSENCE
    ) -> int:
        """Tell that a process lives, and renew the leases of the tasks that it still has; return how many these are.

        Args:
            presence: The process; its id is the owner of the leases.
            held: Ids of tasks that it works on. Those that another owner took in the meantime stay that one's.
            lease: For how long they are its own from now on.
            longest_wait: Nothing is postponed for longer. A task of its scorers that waits for longer was dated by a
                clock that has been set back, and is brought back.
        """
        with self._database.write() as connection:
            return workers.beat(connection, presence, held, lease, longest_wait, self._moment(connection))

    def dismiss(self, owner: str) -> None:
        """Take a process that ends off the list of :meth:`workers`."""
        with self._database.write() as connection:
            workers.dismiss(connection, owner)

    def workers(self, *, within: timedelta | None = None) -> list[Worker]:
        """Return the processes that score, the one seen last first; those seen ``within`` this time where it is given.

        One that ended as it should is not among them; one that was killed is for a day.
        """
        with self._database.read() as connection:
            since = None if within is None else self._moment(connection) - within
            return workers.workers(connection, since)

    def jobs(self, process: str | None = None) -> list[JobRuns]:
        """Return what processes that score do again and again, with the last 50 runs, by process and name.

        Args:
            process: id of the only one whose jobs are wanted.
        """
        with self._database.read() as connection:
            return jobs.read(connection, process)

    def abandoned(self, *, after: timedelta = ABSENCE) -> list[Pair]:
        """Return scorers and fingerprints that have open tasks, and that no process has had within this time."""
        with self._database.read() as connection:
            return orphans.abandoned(connection, after, self._moment(connection))

    def expire(self, *, after: timedelta = ABSENCE, limit: int = BATCH) -> int:
        """Skip up to ``limit`` tasks of scorers that no process has had within this time; return how many.

        They end as ``expired``, those that wait in the pool of a budget too, if they have waited for that long. None
        does before some process has been there for that long: after a night in which all rested, the process that has
        the scorer may just not have started yet.
        """
        with self._database.write() as connection:
            return orphans.expire(connection, self._process, after, limit, self._moment(connection))
