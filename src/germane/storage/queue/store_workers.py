"""The worker processes and their leases."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from germane.storage.cluster import leases, workers
from germane.storage.cluster.workers import JobRuns, Worker, WorkerHeartbeat
from germane.storage.db.component import StoreComponent
from germane.storage.queue.store_tasks import ORPHANED_AFTER


class WorkerStore(StoreComponent):
    """Heartbeats of worker processes, and leases that one process at a time holds."""

    def heartbeat(
        self,
        presence: WorkerHeartbeat,
        held: Collection[int],
        *,
        lease: timedelta,
        longest_wait: timedelta = ORPHANED_AFTER,
    ) -> int:
        """Register a worker process and renew the leases of its tasks; return the number of renewed leases.

        Args:
            presence: The process. Its id is the owner of the leases.
            held: Ids of the tasks in progress. Tasks that another owner has claimed since are left alone.
            lease: New duration of the leases.
            longest_wait: Maximum delay of a retry. A task of this worker's scorers that is postponed for longer was
                dated by a clock that has been set back; it becomes due.
        """
        with self._database.write() as connection:
            return workers.record_heartbeat(
                connection, presence, held, lease, longest_wait, self._context.now(connection)
            )

    def deregister_worker(self, owner: str) -> None:
        """Remove a process that ends from :meth:`list_workers`."""
        with self._database.write() as connection:
            workers.deregister(connection, owner)

    def list_workers(self, *, within: timedelta | None = None) -> list[Worker]:
        """Return the worker processes, latest heartbeat first.

        A process that was killed stays listed for a day.

        Args:
            within: Only processes with a heartbeat within this time.
        """
        with self._database.read() as connection:
            since = None if within is None else self._context.now(connection) - within
            return workers.load_workers(connection, since)

    def list_job_runs(self, process: str | None = None) -> list[JobRuns]:
        """Return the last 50 runs of each periodic job, by process and name.

        Args:
            process: Only jobs of the process with this id.
        """
        with self._database.read() as connection:
            return workers.load_jobs(connection, process)

    def acquire_lease(self, name: str, owner: str, *, ttl: timedelta) -> bool:
        """Acquire or renew the lease ``name``; return False while another owner holds it."""
        with self._database.write() as connection:
            return leases.acquire_lease(connection, name, owner, ttl, self._context.now(connection))
