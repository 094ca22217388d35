"""The tracking database: public read-only access, and full access for germane's own packages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from germane.calibration import Calibration
from germane.errors import StorageError
from germane.storage.alerting.alerts import AlertReader, AlertStore
from germane.storage.alerting.baselines import BaselineStore
from germane.storage.alerting.detectors import DetectorStore
from germane.storage.alerting.notifications import NotificationStore
from germane.storage.answers.store_answers import AnswerReader, AnswerStore
from germane.storage.answers.store_labels import LabelReader, LabelStore
from germane.storage.counts import dirty_hours, tally
from germane.storage.db import migrate
from germane.storage.db.component import StoreContext, utc_now
from germane.storage.db.engine import CommitListener, Database
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.storage.queue.store_sampling import SamplingStore
from germane.storage.queue.store_tasks import TaskQueue
from germane.storage.quota.store_quota import QuotaStore
from germane.storage.retention.integrity_check import IntegrityChecker
from germane.storage.retention.store_retention import RetentionStore
from germane.storage.transfer.store_transfer import TransferStore
from germane.storage.trends.rollup import RollupStore
from germane.storage.trends.store_trends import TrendReader, TrendStore
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
        on_commit: Called with event counts after each transaction that stored exchanges or closed tasks; must not
            raise.

    Raises:
        SettingsError: The URL is invalid or names an unsupported database.
    """

    def __init__(
        self,
        url: str = "sqlite:///germane.db",
        *,
        clock: Callable[[], datetime] = utc_now,
        erase_after_scoring: bool = False,
        on_commit: CommitListener = lambda _: None,
    ) -> None:
        self._database = Database(
            url,
            before_commit=(dirty_hours.write_pending, tally.write_pending),
            on_commit=on_commit,
            check_tables=migrate.check_tables,
            recreate=migrate.migrate,
        )
        self.context = context = StoreContext(self._database, clock=clock, erase_after_scoring=erase_after_scoring)
        self.exchanges = ExchangeStore(context)
        self.answers = AnswerStore(context)
        self.labels = LabelStore(context)
        self.trends = TrendStore(context)
        self.rollups = RollupStore(context)
        self.sampling = SamplingStore(context)
        self.queue = TaskQueue(context)
        self.workers = WorkerStore(context)
        self.quota = QuotaStore(context)
        self.alerts = AlertStore(context)
        self.baselines = BaselineStore(context)
        self.detectors = DetectorStore(context)
        self.notifications = NotificationStore(context)
        self.retention = RetentionStore(context)
        self.integrity = IntegrityChecker(context)
        self.transfer = TransferStore(context)

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

    def migrate(self) -> None:
        """Create or upgrade the tables. Any number of processes may call this concurrently."""
        migrate.migrate(self._database)

    def check(self) -> None:
        """Check that the database is reachable and that its tables match this version of germane."""
        migrate.check(self._database)

    def revision(self) -> str | None:
        """Return the revision of the tables, such as ``0006``, or None if there are no tables."""
        return migrate.revision(self._database)

    def now(self) -> datetime:
        """Return the current time from the clock that all processes on this database share."""
        return self.context.read_clock()

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


class Store:
    """Read-only access to a tracking database. Thread-safe.

    Example::

        with germane.Store("sqlite:///germane.db") as store:
            for scored in store.answers.worst(limit=3):
                print(scored.score.value, scored.exchange.question)

    Methods raise :class:`~germane.errors.DatabaseUnreachable` if the database is not working, and
    :class:`~germane.errors.DatabaseNotMigrated` if its tables are missing, or older or newer than this version of
    germane expects.

    Args:
        url: SQLAlchemy URL of an SQLite or PostgreSQL database.

    Raises:
        SettingsError: The URL is invalid or names an unsupported database.
    """

    answers: AnswerReader
    """Exchanges and their scores."""
    trends: TrendReader
    """Means and coverage over time and by group, comparisons and markers."""
    alerts: AlertReader
    """Open and past alerts."""
    labels: LabelReader
    """Human labels and calibrations."""

    def __init__(self, url: str = "sqlite:///germane.db") -> None:
        self._database = Database(url)
        context = StoreContext(self._database)
        self.answers = AnswerReader(context)
        self.trends = TrendReader(context)
        self.alerts = AlertReader(context)
        self.labels = LabelReader(context)

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The database URL without the password, for display."""
        return self._database.name

    def check(self) -> None:
        """Check that the database is reachable and that its tables match this version of germane."""
        migrate.check(self._database)

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        self._database.close()
