"""The database tables, as SQLModel classes that work with SQLite and PostgreSQL.

There are no foreign keys, because exchanges are written on a hot path, and related rows may arrive before them.
"""

from __future__ import annotations

from germane.storage.db.tables.alerting import (
    AlertEventRow,
    AlertRow,
    BaselineRow,
    DetectorInputRow,
    DetectorRow,
    NotificationRow,
    SilenceRow,
)
from germane.storage.db.tables.base import Base, UtcDateTime
from germane.storage.db.tables.counts import (
    RollupCountRow,
    RollupDimensionRow,
    RollupDirtyHourRow,
    RollupProxyRow,
    RollupRow,
    TallyRow,
)
from germane.storage.db.tables.exchanges import ExchangeRow, FeedbackRow, MarkerRow, ScoreRow, TaskRow
from germane.storage.db.tables.running import BudgetRow, CalibrationRow, JobRow, LeaseRow, RateLimitRow, WorkerRow

__all__ = [
    "AlertEventRow",
    "AlertRow",
    "Base",
    "BaselineRow",
    "BudgetRow",
    "CalibrationRow",
    "DetectorInputRow",
    "DetectorRow",
    "ExchangeRow",
    "FeedbackRow",
    "JobRow",
    "LeaseRow",
    "MarkerRow",
    "NotificationRow",
    "RateLimitRow",
    "RollupCountRow",
    "RollupDimensionRow",
    "RollupDirtyHourRow",
    "RollupProxyRow",
    "RollupRow",
    "ScoreRow",
    "SilenceRow",
    "TallyRow",
    "TaskRow",
    "UtcDateTime",
    "WorkerRow",
    "alert",
    "alert_event",
    "baseline",
    "budget",
    "calibration",
    "detector",
    "detector_input",
    "exchange",
    "feedback",
    "job",
    "lease",
    "marker",
    "metadata",
    "notification",
    "rate_limit",
    "rollup",
    "rollup_count",
    "rollup_dimension",
    "rollup_dirty_hour",
    "rollup_proxy",
    "score",
    "scoring_task",
    "silence",
    "tally",
    "worker",
]

metadata = Base.metadata
exchange = metadata.tables["exchange"]
scoring_task = metadata.tables["scoring_task"]
score = metadata.tables["score"]
tally = metadata.tables["tally"]
lease = metadata.tables["lease"]
feedback = metadata.tables["feedback"]
calibration = metadata.tables["calibration"]
rate_limit = metadata.tables["rate_limit"]
worker = metadata.tables["worker"]
job = metadata.tables["job"]
budget = metadata.tables["budget"]
rollup = metadata.tables["rollup"]
rollup_count = metadata.tables["rollup_count"]
rollup_proxy = metadata.tables["rollup_proxy"]
rollup_dimension = metadata.tables["rollup_dimension"]
rollup_dirty_hour = metadata.tables["rollup_dirty_hour"]
marker = metadata.tables["marker"]
detector_input = metadata.tables["detector_input"]
baseline = metadata.tables["baseline"]
detector = metadata.tables["detector"]
alert = metadata.tables["alert"]
alert_event = metadata.tables["alert_event"]
notification = metadata.tables["notification"]
silence = metadata.tables["silence"]
