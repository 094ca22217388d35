"""The tables, as SQLModel classes: portable between SQLite and PostgreSQL.

There are no foreign keys on purpose: an exchange is written on a hot path, and scores outlive the text they are of.
"""

from __future__ import annotations

from germane.storage.db.tables.alerting import (
    AlertEventRow,
    AlertRow,
    ArrivalRow,
    BaselineRow,
    DetectorRow,
    NotificationRow,
    SilenceRow,
)
from germane.storage.db.tables.base import Base, UtcDateTime
from germane.storage.db.tables.counts import (
    RollupCountRow,
    RollupDimensionRow,
    RollupDueRow,
    RollupProxyRow,
    RollupRow,
    TallyRow,
)
from germane.storage.db.tables.exchanges import ExchangeRow, FeedbackRow, MarkRow, ScoreRow, TaskRow
from germane.storage.db.tables.running import BudgetRow, CalibrationRow, JobRow, LeaseRow, RateLimitRow, WorkerRow

__all__ = [
    "AlertEventRow",
    "AlertRow",
    "ArrivalRow",
    "Base",
    "BaselineRow",
    "BudgetRow",
    "CalibrationRow",
    "DetectorRow",
    "ExchangeRow",
    "FeedbackRow",
    "JobRow",
    "LeaseRow",
    "MarkRow",
    "NotificationRow",
    "RateLimitRow",
    "RollupCountRow",
    "RollupDimensionRow",
    "RollupDueRow",
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
    "arrival",
    "baseline",
    "budget",
    "calibration",
    "detector",
    "exchange",
    "feedback",
    "job",
    "lease",
    "mark",
    "metadata",
    "notification",
    "rate_limit",
    "rollup",
    "rollup_count",
    "rollup_dimension",
    "rollup_due",
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
rollup_due = metadata.tables["rollup_due"]
mark = metadata.tables["mark"]
arrival = metadata.tables["arrival"]
baseline = metadata.tables["baseline"]
detector = metadata.tables["detector"]
alert = metadata.tables["alert"]
alert_event = metadata.tables["alert_event"]
notification = metadata.tables["notification"]
silence = metadata.tables["silence"]
