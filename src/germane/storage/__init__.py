"""Storage of exchanges, scores and counts in SQLite or PostgreSQL. Only this package uses SQL."""

from __future__ import annotations

from germane.score import MIN_SAMPLES
from germane.storage.alerting.alerts import AlertReader, AlertStore, AlertTransaction, ConditionalWrite
from germane.storage.alerting.baselines import (
    BaselineKey,
    BaselineReason,
    BaselineStore,
    BaselineVersion,
)
from germane.storage.alerting.detectors import (
    MAX_SCORING_DELAY,
    DetectorScore,
    DetectorScoreQuery,
    DetectorState,
    DetectorStore,
)
from germane.storage.alerting.notifications import ChannelQueue, DeliveryOutcome, NotificationRecord, NotificationStore
from germane.storage.alerting.scoring_flow import FailingTasks, ScoringFlow
from germane.storage.answers.detail import AnswerDetail
from germane.storage.answers.filter import (
    Answer,
    AnswerCursor,
    AnswerFilter,
    AnswerPage,
    AnswerSort,
    AnswerState,
    MatchCount,
    TaskStatus,
)
from germane.storage.answers.search import AnswerNeighbors
from germane.storage.answers.store_answers import AnswerReader, AnswerStore, RowCounts, ScoredExchange
from germane.storage.answers.store_labels import Disagreement, LabelReader, LabelStore
from germane.storage.counts.tally import Coverage
from germane.storage.db.batches import PruneResult
from germane.storage.db.component import StoreContext, utc_now
from germane.storage.db.mappers import score_key
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.storage.ingest.writer import ExchangeWriter
from germane.storage.queue.backlog import BACKLOG_COUNT_LIMIT, Backlog, OpenTasks, OutstandingWork, Throughput
from germane.storage.queue.candidates import Candidate, SamplerStep, SelectedCandidate
from germane.storage.queue.feedback import LabeledExchange
from germane.storage.queue.health import RetrySummary, SamplingReasonCount, SamplingSummary, ScoringHealth
from germane.storage.queue.rescore import RescoreResult
from germane.storage.queue.store_sampling import SamplingDecision, SamplingStore
from germane.storage.queue.store_tasks import TaskQueue
from germane.storage.queue.tasks import ScoringTask, TaskClaim
from germane.storage.quota.budget_ledger import (
    BudgetDay,
    BudgetLimits,
    BudgetReservation,
    RequestUsage,
    budget_limits_at,
    budget_shares,
    describe_usage,
    exhausted_until,
    format_amount,
    next_affordable_at,
)
from germane.storage.quota.rate_limits import RateLimit, RateLimitUsage
from germane.storage.quota.store_quota import HourCount, QuotaStore, ScorerUsage, Traffic
from germane.storage.retention.integrity_check import DiskUsage, IntegrityChecker, IntegrityReport, TallyMismatch
from germane.storage.retention.store_retention import RetentionStore
from germane.storage.stats.estimate import Estimate, WeightedSums, estimate_mean, mean_interval, t_quantile
from germane.storage.stats.histogram import Histogram
from germane.storage.stats.two_sample import (
    Comparison,
    ComparisonFinding,
    Comparisons,
    TimeWindow,
    mark_significant_drops,
)
from germane.storage.store import CalibrationCache, Store, TrackingStore
from germane.storage.transfer.export import StoredRecord, dump_stored
from germane.storage.transfer.record import (
    ALERTING_PARTS,
    AlertingRow,
    DroppedCount,
    ExchangeRecord,
    ExportedItem,
    dump_line,
    parse_line,
)
from germane.storage.transfer.store_transfer import ExportSelection, ImportResult, TransferStore
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.comparisons import compare_summaries
from germane.storage.trends.rollup import RollupStore
from germane.storage.trends.store_trends import TrendReader, TrendStore
from germane.storage.trends.summaries import (
    Bucket,
    CoverageBucket,
    RouteMean,
    RouteSummary,
    ServiceSummary,
    WindowSummary,
)
from germane.storage.workers import (
    MAX_JOB_RUNS,
    JobRun,
    JobRuns,
    Worker,
    WorkerHeartbeat,
    WorkerStore,
    new_worker_id,
)

__all__ = [
    "ALERTING_PARTS",
    "BACKLOG_COUNT_LIMIT",
    "MAX_JOB_RUNS",
    "MAX_SCORING_DELAY",
    "MIN_SAMPLES",
    "AlertReader",
    "AlertStore",
    "AlertTransaction",
    "AlertingRow",
    "Answer",
    "AnswerCursor",
    "AnswerDetail",
    "AnswerFilter",
    "AnswerNeighbors",
    "AnswerPage",
    "AnswerReader",
    "AnswerSort",
    "AnswerState",
    "AnswerStore",
    "Backlog",
    "BaselineKey",
    "BaselineReason",
    "BaselineStore",
    "BaselineVersion",
    "Bucket",
    "BucketGrid",
    "BudgetDay",
    "BudgetLimits",
    "BudgetReservation",
    "CalibrationCache",
    "Candidate",
    "ChannelQueue",
    "Comparison",
    "ComparisonFinding",
    "Comparisons",
    "ConditionalWrite",
    "Coverage",
    "CoverageBucket",
    "DeliveryOutcome",
    "DetectorScore",
    "DetectorScoreQuery",
    "DetectorState",
    "DetectorStore",
    "Disagreement",
    "DiskUsage",
    "DroppedCount",
    "Estimate",
    "ExchangeRecord",
    "ExchangeStore",
    "ExchangeWriter",
    "ExportSelection",
    "ExportedItem",
    "FailingTasks",
    "Histogram",
    "HourCount",
    "ImportResult",
    "IntegrityChecker",
    "IntegrityReport",
    "JobRun",
    "JobRuns",
    "LabelReader",
    "LabelStore",
    "LabeledExchange",
    "MatchCount",
    "NotificationRecord",
    "NotificationStore",
    "OpenTasks",
    "OutstandingWork",
    "PruneResult",
    "QuotaStore",
    "RateLimit",
    "RateLimitUsage",
    "RequestUsage",
    "RescoreResult",
    "RetentionStore",
    "RetrySummary",
    "RollupStore",
    "RouteMean",
    "RouteSummary",
    "RowCounts",
    "SamplerStep",
    "SamplingDecision",
    "SamplingReasonCount",
    "SamplingStore",
    "SamplingSummary",
    "ScoredExchange",
    "ScorerUsage",
    "ScoringFlow",
    "ScoringHealth",
    "ScoringTask",
    "SelectedCandidate",
    "ServiceSummary",
    "Store",
    "StoreContext",
    "StoredRecord",
    "TallyMismatch",
    "TaskClaim",
    "TaskQueue",
    "TaskStatus",
    "Throughput",
    "TimeWindow",
    "TrackingStore",
    "Traffic",
    "TransferStore",
    "TrendReader",
    "TrendStore",
    "WeightedSums",
    "WindowSummary",
    "Worker",
    "WorkerHeartbeat",
    "WorkerStore",
    "budget_limits_at",
    "budget_shares",
    "compare_summaries",
    "describe_usage",
    "dump_line",
    "dump_stored",
    "estimate_mean",
    "exhausted_until",
    "format_amount",
    "mark_significant_drops",
    "mean_interval",
    "new_worker_id",
    "next_affordable_at",
    "parse_line",
    "score_key",
    "t_quantile",
    "utc_now",
]
