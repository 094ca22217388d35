"""The database tables, as SQLModel classes that work with SQLite and PostgreSQL.

They define the schema. Queries use :mod:`germane.storage.db.tables`, which is written from them and is faster to
import. There are no foreign keys, because exchanges are written on a hot path, and related rows may arrive before them.
"""

from __future__ import annotations

from germane.storage.db.models.alerting import (
    AlertEventRow,
    AlertRow,
    BaselineRow,
    DetectorInputRow,
    DetectorRow,
    SilenceRow,
)
from germane.storage.db.models.archive import ArchivedDayRow, ArchivedLowestRow
from germane.storage.db.models.base import Base
from germane.storage.db.models.counts import (
    RollupCountRow,
    RollupDimensionRow,
    RollupDirtyHourRow,
    RollupProxyRow,
    RollupRow,
    TallyRow,
    WatchedTraceRow,
)
from germane.storage.db.models.delivery import DeliveryRow
from germane.storage.db.models.exchanges import ExchangeRow, FeedbackRow, MarkerRow, ScoreRow, TaskRow
from germane.storage.db.models.history import HistoryRunRow, PartitionRow
from germane.storage.db.models.received import (
    ReceivedSpanRow,
    ReceivedTraceRow,
    UnreadableTraceRow,
)
from germane.storage.db.models.running import (
    BudgetRow,
    CalibrationRow,
    JobRow,
    LeaseRow,
    RateLimitRow,
    SavedViewRow,
    WorkerRow,
)

__all__ = [
    "AlertEventRow",
    "AlertRow",
    "ArchivedDayRow",
    "ArchivedLowestRow",
    "Base",
    "BaselineRow",
    "BudgetRow",
    "CalibrationRow",
    "DeliveryRow",
    "DetectorInputRow",
    "DetectorRow",
    "ExchangeRow",
    "FeedbackRow",
    "HistoryRunRow",
    "JobRow",
    "LeaseRow",
    "MarkerRow",
    "PartitionRow",
    "RateLimitRow",
    "ReceivedSpanRow",
    "ReceivedTraceRow",
    "RollupCountRow",
    "RollupDimensionRow",
    "RollupDirtyHourRow",
    "RollupProxyRow",
    "RollupRow",
    "SavedViewRow",
    "ScoreRow",
    "SilenceRow",
    "TallyRow",
    "TaskRow",
    "UnreadableTraceRow",
    "WatchedTraceRow",
    "WorkerRow",
    "metadata",
]

metadata = Base.metadata
