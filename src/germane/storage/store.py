"""The tracking database, for germane's own packages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from germane.calibration import Calibration
from germane.errors import StorageError
from germane.storage.alerting.alerts import AlertStore
from germane.storage.alerting.baselines import BaselineStore
from germane.storage.alerting.detectors import DetectorStore
from germane.storage.alerting.notifications import NotificationStore
from germane.storage.alerting.scoring_flow import ScoringProgress
from germane.storage.answers.label_draws import LabelDraws
from germane.storage.answers.store_anchors import AnchorStore
from germane.storage.answers.store_answers import AnswerStore
from germane.storage.answers.store_labels import LabelStore
from germane.storage.answers.store_questions import QuestionStore
from germane.storage.answers.store_sinks import SinkStore
from germane.storage.counts import dirty_hours, tally
from germane.storage.db import migrate
from germane.storage.db.component import StoreContext, utc_now
from germane.storage.db.engine import CommitListener, Database
from germane.storage.history.store_history import HistoryStore
from germane.storage.ingest.forwarding import ForwardingQueue
from germane.storage.ingest.received_spans import ReceivedSpanStore
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.storage.ingest.unreadable_traces import UnreadableTraceStore
from germane.storage.outbox import Outbox
from germane.storage.queue.backlog import BacklogReader
from germane.storage.queue.expired import OrphanedTasks
from germane.storage.queue.health import HealthReader
from germane.storage.queue.store_candidates import CandidatePool
from germane.storage.queue.store_sampling import SamplingStore
from germane.storage.queue.store_tasks import TaskQueue
from germane.storage.quota.store_quota import QuotaStore
from germane.storage.retention.integrity_check import IntegrityChecker
from germane.storage.retention.store_archive import ArchiveStore
from germane.storage.retention.store_retention import RetentionStore
from germane.storage.sink_items import write_pending
from germane.storage.transfer.store_transfer import TransferStore
from germane.storage.trends.rollup import RollupStore
from germane.storage.trends.store_trends import TrendStore
from germane.storage.views import SavedViewStore
from germane.storage.workers import WorkerStore

logger = logging.getLogger("germane.storage")


class TrackingStore:
    """Exchanges, scoring tasks, scores, counts and alerts in one database. Thread-safe.

    Each group of methods is a component. All times are timezone-aware. Windows are ``since <= started_at < until``. All
    methods may raise:

        DatabaseUnreachable: The connection failed, or the database is not working.
        DatabaseNotMigrated: The tables are missing, or older or newer than the code.
        StorageError: The database rejected a row.

    Args:
        url: SQLAlchemy URL of an SQLite or PostgreSQL database.
        clock: Returns the current time. With the default, leases and limits use the database server's clock.
        erase_after_scoring: Whether to erase an exchange's text when its last task is closed.
        archive: The ``archive.location`` setting. If it is given, exchanges are not deleted before they are archived.
        sinks: Names of the sinks to which scores and labels are written.
        on_commit: Called with event counts after each transaction that stored exchanges or closed tasks; must not
            raise.
        auto_migrate: Whether to create or upgrade the tables before the first transaction that writes.

    Raises:
        SettingsError: The URL is invalid or names an unsupported database.
    """

    def __init__(
        self,
        url: str = "sqlite:///germane.db",
        *,
        clock: Callable[[], datetime] = utc_now,
        erase_after_scoring: bool = False,
        archive: str | None = None,
        sinks: Sequence[str] = (),
        on_commit: CommitListener = lambda _: None,
        auto_migrate: bool = False,
    ) -> None:
        self._database = Database(
            url,
            before_commit=(dirty_hours.write_pending, tally.write_pending, self._queue_for_sinks),
            on_commit=on_commit,
            check_tables=migrate.check_tables,
            recreate=migrate.migrate,
            prepare=migrate.migrate if auto_migrate else None,
        )
        self.context = StoreContext(
            self._database, clock=clock, erase_after_scoring=erase_after_scoring, archive=archive
        )
        self._sinks = tuple(sinks)
        self.exchanges = ExchangeStore(self.context)
        self.received = ReceivedSpanStore(self.context)
        self.forwarding = ForwardingQueue(self.context)
        self.unreadable = UnreadableTraceStore(self.context)
        self.answers = AnswerStore(self.context)
        self.questions = QuestionStore(self.context)
        self.labels = LabelStore(self.context)
        self.draws = LabelDraws(self.context)
        self.anchors = AnchorStore(self.context)
        self.trends = TrendStore(self.context)
        self.rollups = RollupStore(self.context)
        self.sampling = SamplingStore(self.context)
        self.pool = CandidatePool(self.context)
        self.queue = TaskQueue(self.context)
        self.orphans = OrphanedTasks(self.context)
        self.backlog = BacklogReader(self.context)
        self.health = HealthReader(self.context)
        self.workers = WorkerStore(self.context)
        self.history = HistoryStore(self.context)
        self.quota = QuotaStore(self.context)
        self.alerts = AlertStore(self.context)
        self.progress = ScoringProgress(self.context)
        self.baselines = BaselineStore(self.context)
        self.detectors = DetectorStore(self.context)
        self.notifications = NotificationStore(self.context)
        self.outbox = Outbox(self.context)
        self.sinks = SinkStore(self.context)
        self.retention = RetentionStore(self.context)
        self.archive = ArchiveStore(self.context)
        self.integrity = IntegrityChecker(self.context)
        self.transfer = TransferStore(self.context)
        self.views = SavedViewStore(self.context)

    def __repr__(self) -> str:
        return f"TrackingStore({self.name!r})"

    @property
    def name(self) -> str:
        """The database URL without the password, for display."""
        return self._database.name

    @property
    def is_absent(self) -> bool:
        """Whether the database is an SQLite file that does not exist yet."""
        return self._database.is_absent

    @property
    def path(self) -> Path | None:
        """The SQLite file, which may not exist. None for other databases and for databases in memory."""
        return self._database.path

    @property
    def files(self) -> tuple[Path, ...]:
        """Existing files: the SQLite file, its write-ahead log and the log's index. Empty for other databases."""
        return self._database.files

    def _queue_for_sinks(self, connection: Connection) -> None:
        write_pending(connection, self._sinks, self.context.now)

    def migrate(self) -> None:
        """Create or upgrade the tables. Any number of processes may call this concurrently."""
        migrate.migrate(self._database)

    def check(self) -> None:
        """Check that the database is reachable and that its tables match this version of germane."""
        migrate.check(self._database)

    def revision(self) -> str | None:
        """Return the revision of the tables, such as ``0.1.0``, or None if there are no tables."""
        return migrate.revision(self._database)

    def now(self) -> datetime:
        """Return the current time from the clock that all processes on this database share."""
        return self.context.read_clock()

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all queries of this thread within a ``with`` block see the same state of the database.

        They run in one transaction, so that a page with many queries needs no transaction for each of them.
        """
        return self._database.snapshot()

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        self._database.close()


class CalibrationCache(Mapping[tuple[str, str], Calibration]):
    """Calibrations by (embedder, scorer), loaded on first use. Empty while the database cannot be read.

    Call :meth:`reload` to load newer calibrations.
    """

    def __init__(self, store: TrackingStore) -> None:
        self._store = store
        self._calibrations: dict[tuple[str, str], Calibration] | None = None
        self._has_warned = False

    def __getitem__(self, key: tuple[str, str]) -> Calibration:
        return self._load()[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def reload(self) -> None:
        """Reload the calibrations from the database. Blocks.

        Raises:
            StorageError: The database cannot be read. The cached calibrations are kept.
        """
        stored = self._store.labels.list_calibrations()
        self._calibrations = {(entry.embedder, entry.scorer): entry for entry in stored}

    def _load(self) -> Mapping[tuple[str, str], Calibration]:
        if self._calibrations is None:
            try:
                self.reload()
            except StorageError as error:
                if not self._has_warned:
                    self._has_warned = True
                    logger.warning("labels will not be calibrated until the database is readable: %s", error)
                return {}
        return self._calibrations or {}
