"""The one door to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from germane.annotation import Feedback, Recorded
from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage.alerting.alerts import Watching
from germane.storage.alerting.baselines import Learning
from germane.storage.alerting.notifications import Outbox
from germane.storage.answers import calibrations
from germane.storage.answers.store_answers import Reviewing
from germane.storage.answers.store_reports import Reports
from germane.storage.cluster import leases
from germane.storage.counts import tally
from germane.storage.db import mappers, migrate, tables
from germane.storage.db.commit_events import Ended, Told, note
from germane.storage.db.component import utc_now
from germane.storage.db.engine import Database
from germane.storage.db.errors import ContentRefused
from germane.storage.queue import assign as sampling
from germane.storage.queue import external_scores, feedback, feedback_requeue, tasks
from germane.storage.queue import tasks as claims
from germane.storage.queue.assign import Decision
from germane.storage.queue.feedback import Labelled
from germane.storage.queue.store_sampling import Picking
from germane.storage.queue.store_workers import Roster
from germane.storage.queue.tasks import Claim, Task
from germane.storage.quota import budget_ledger
from germane.storage.quota.store_quota import QuotaStore
from germane.storage.retention.integrity_check import Inspecting
from germane.storage.retention.store_retention import Upkeep
from germane.storage.transfer import export, import_
from germane.storage.transfer.export import Selection
from germane.storage.transfer.import_ import Restored
from germane.storage.transfer.record import Dropped, Record
from germane.storage.trends.rollup import Rolling
from germane.storage.trends.store_comparisons import Comparing


class Store(
    Reports, Reviewing, Comparing, Upkeep, QuotaStore, Picking, Roster, Watching, Learning, Outbox, Rolling, Inspecting
):
    """Exchanges, scoring tasks, scores and counts in one database. Safe to share between threads.

    Every method but those that take away is one transaction, and all raise:

        DatabaseUnreachable: there is no connection, or the database does not work.
        DatabaseNotMigrated: the tables are missing, older or newer.
        StorageError: a row is of a kind that the database refuses.

    Moments have a zone. A window is since <= started_at < until.

    Args:
        url: SQLAlchemy's URL of a database on SQLite or PostgreSQL.
        clock: Tells the time; without one leases and limits go by the database's.
        erase_after_scoring: Erase the text of an exchange with what closes the last of its tasks.
        told: Called after each transaction that stored exchanges or ended tasks, with how many; must not raise.

    Raises:
        SettingsError: the URL is of no database that germane can use.
    """

    def __init__(
        self,
        url: str = "sqlite:///germane.db",
        *,
        clock: Callable[[], datetime] = utc_now,
        erase_after_scoring: bool = False,
        told: Told = lambda _: None,
    ) -> None:
        super().__init__(Database(url, told=told), clock=clock, erases=erase_after_scoring)
        self._stamp = mappers.stamp_for(self._database.dialect)

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    @property
    def name(self) -> str:
        """The database's URL without its password: for people."""
        return self._database.name

    @property
    def is_absent(self) -> bool:
        """Whether it is an SQLite file that nobody has made yet."""
        return self._database.is_absent

    def migrate(self) -> None:
        """Make the tables, or bring them up to date. Any number of processes may do so at once."""
        migrate.migrate(self._database)

    def check(self) -> None:
        """Return when the database is there and its tables are the ones this code expects."""
        migrate.check(self._database)

    def revision(self) -> str | None:
        """Return the revision of the tables, such as ``0006``; None where there are none."""
        return migrate.revision(self._database)

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self._database.close()

    def add(self, exchanges: Sequence[Exchange]) -> None:
        """Write exchanges; one whose id is there already is ignored, so that a batch may be tried again."""
        try:
            values = [mappers.exchange_values(exchange, self._stamp) for exchange in exchanges]
        except (AttributeError, TypeError, ValueError) as error:
            raise ContentRefused(f"an exchange holds what no column takes ({type(error).__name__})") from error
        if values:
            with self._database.write() as connection:
                mappers.insert(connection, tables.exchange, mappers.EXCHANGE, values)
                note(connection, Counter((exchange.route, "", "stored", "") for exchange in exchanges))

    def add_feedback(self, given: Sequence[Feedback]) -> None:
        """Write people's labels, also of exchanges that are not here yet; one that is here already is ignored."""
        with self._writing() as connection:
            feedback.add(connection, given)

    def record(self, given: Sequence[Recorded]) -> list[Recorded]:
        """Write scores made elsewhere, each in place of an earlier one; return those whose exchange is not here."""
        with self._writing() as connection:
            return external_scores.record(connection, self._process, given)

    def add_calibrations(self, found: Sequence[Calibration]) -> None:
        """Write floors of cosines; the newest of each embedder and scorer counts."""
        with self._writing() as connection:
            calibrations.add(connection, found)

    def count_dropped(
        self,
        counts: Mapping[tuple[str, str], int],
        scorers: Iterable[str],
        reason: Reason = Reason.QUEUE_FULL,
        *,
        at: datetime | None = None,
    ) -> None:
        """Count exchanges that never became rows, by (service, route), in the minute of ``at`` (by default now)."""
        with self._database.write() as connection:
            tally.count_dropped(connection, self._process, counts, scorers, reason, at or self._clock())
            dropped: Counter[Ended] = Counter()
            for (_, route), count in counts.items():
                dropped[(route, "", "dropped", reason.value)] += count
            note(connection, dropped)

    def declare(self, service: str, routes: Iterable[str]) -> None:
        """Make routes known that have not had an exchange yet; :meth:`coverage` without ``since`` lists them."""
        with self._database.write() as connection:
            tally.declare(connection, service, routes)

    def unsampled(self, limit: int) -> list[Exchange]:
        """Return up to ``limit`` exchanges that nobody has decided on, oldest first."""
        with self._database.read() as connection:
            return sampling.unsampled(connection, limit)

    def assign(
        self, decisions: Sequence[Decision], scorers: Mapping[str, str], *, holder: tuple[str, str] | None = None
    ) -> bool:
        """Write what the sampler decided; what is there stays as it is.

        Args:
            decisions: By exchange.
            scorers: Fingerprints by name.
            holder: Under a budget the office and who must hold it; what a rule asks for is then counted as picked.

        Returns:
            False, and nothing is written, when another process holds the office by now.
        """
        with self._database.write() as connection:
            if holder is not None and not leases.holds(connection, *holder):
                return False
            asked_for = sampling.assign(connection, self._process, decisions, scorers, self._moment(connection))
            self._erase_closed(connection, (decision.exchange_id for decision in decisions))
            if holder is not None and asked_for:
                budget_ledger.count_picked(connection, asked_for, self._moment(connection))
        return True

    def unconsidered_feedback(self, limit: int) -> list[Labelled]:
        """Return up to ``limit`` labels that the sampler has not considered, oldest first.

        A label waits until its exchange is here and decided on.
        """
        with self._database.read() as connection:
            return feedback_requeue.unconsidered(connection, limit)

    def consider(
        self,
        feedback_ids: Sequence[str],
        scored: Sequence[str],
        scorers: Mapping[str, str],
        *,
        holder: tuple[str, str] | None = None,
    ) -> int | None:
        """Note that feedback is considered, and have its exchanges ``scored`` that the draw or the budget left out.

        Two transactions: where the second does not come about, the feedback is not considered yet.

        Args:
            feedback_ids: What was looked at.
            scored: Exchanges that are scored whatever the draw said. What is erased stays as it is; so
                does what the draw has decided on, where text goes as soon as nothing is left to be scored.
            scorers: Fingerprints by name: tasks of others stay as they are.
            holder: Under a budget the office and who must hold it; what became ready is then counted as picked.

        Returns:
            How many tasks became ready; None, and nothing is considered, when another process holds the office.
        """
        with self._database.write() as connection:
            if holder is not None and not leases.holds(connection, *holder):
                return None
            feedback_requeue.ask_for(connection, scored, drawn=not self._erases)
        with self._database.write() as connection:
            if holder is not None and not leases.holds(connection, *holder):
                return None
            now = self._moment(connection)
            ready = feedback_requeue.reopen(connection, self._process, scored, scorers, now)
            feedback_requeue.note(connection, feedback_ids, now)
            if holder is not None and ready:
                budget_ledger.count_picked(connection, len(ready), now)
            return ready.total()

    def claim(self, owner: str, scorers: Mapping[str, str], *, limit: int, lease: timedelta) -> list[Claim]:
        """Take all ready tasks that ``scorers`` have of up to ``limit`` exchanges, oldest first, for the lease's time.

        Ready is what is pending and due, and what is running under a lease that has ended. What was begun too often and
        never came to an end fails here, and is nobody's any more.

        Args:
            owner: Whose they are then.
            scorers: Fingerprints by name. Tasks of others stay where they are, and cost nothing.
            limit: Exchanges.
            lease: For how long they are this owner's, unless :meth:`beat` renews it.
        """
        with self._database.write() as connection:
            return claims.claim(connection, self._process, owner, scorers, limit, lease, self._moment(connection))

    def complete(self, owner: str, results: Sequence[tuple[Task, Score]]) -> list[tuple[Task, Score]]:
        """Write results, and return those that were written.

        A task that was completed before, or that another owner has claimed since, is left alone.
        """
        with self._database.write() as connection:
            written = tasks.complete(connection, self._process, owner, self._kept(results), self._clock())
            self._erase_closed(connection, (task.exchange_id for task, _ in written))
            # What was picked and not paid for took nothing, and must not make a pick look cheaper than it is.
            unpaid = {task.exchange_id for task, found in written if found.reason is Reason.BUDGET}
            if unpaid:
                budget_ledger.count_picked(connection, -len(unpaid), self._moment(connection))
        given = {task.id: (task, found) for task, found in reversed(results)}
        return [given[task.id] for task, _ in written]

    def postpone(self, owner: str, tasks_: Sequence[Task], *, until: datetime, reason: Reason, error: str) -> None:
        """Hand tasks of this owner back, not to be claimed before ``until``, with what stood in the way."""
        with self._database.write() as connection:
            # ``until`` is by the clock of this process, which another's may be ahead of or behind.
            moment = self._moment(connection) + (until - self._clock())
            tasks.postpone(connection, owner, tasks_, moment, reason, error)

    def release(self, owner: str) -> int:
        """Hand back all that this owner holds, as if it had never been claimed; return how many tasks."""
        with self._database.write() as connection:
            return tasks.release(connection, owner)

    def elect(self, name: str, owner: str, *, ttl: timedelta) -> bool:
        """Take or renew the lease ``name``; False while another owner has it."""
        with self._database.write() as connection:
            return leases.elect(connection, name, owner, ttl, self._moment(connection))

    def records(self, chosen: Selection, *, after: Record | None = None, limit: int = 500) -> list[Record]:
        """Return all that is known of the next exchanges by moment and id, after the last one of the page before."""
        with self._database.read() as connection:
            return export.page(connection, chosen, None if after is None else after.exchange, limit)

    def dropped(self, chosen: Selection) -> list[Dropped]:
        """Return the counts of exchanges that never became rows."""
        with self._database.read() as connection:
            return export.dropped(connection, chosen)

    def restore(self, records: Sequence[Record]) -> Restored:
        """Write records as they left another database, once: what is here already stays as it is."""
        with self._writing() as connection:
            return import_.restore(connection, self._process, records)

    def restore_dropped(self, counts: Sequence[Dropped]) -> None:
        """Write counts of exchanges that never became rows, once."""
        with self._writing() as connection:
            import_.restore_dropped(connection, counts)
