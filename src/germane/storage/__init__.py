"""Storage of exchanges, scores and counts in SQLite or PostgreSQL. Only this package uses SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.lazy import lazy_exports
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
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
    from germane.storage.alerting.notifications import (
        ChannelQueue,
        DeliveryOutcome,
        NotificationRecord,
        NotificationStore,
    )
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
    from germane.storage.answers.groups import MatchSummary, QuestionGroup, QuestionGroups, QuestionSort
    from germane.storage.answers.question_scores import EarlierAnswer, QuestionScore, QuestionScores
    from germane.storage.answers.questions import question_key
    from germane.storage.answers.search import AnswerNeighbors
    from germane.storage.answers.store_answers import AnswerReader, AnswerStore, RowCounts, ScoredExchange
    from germane.storage.answers.store_labels import Disagreement, LabelReader, LabelStore
    from germane.storage.archive.days import ArchivedDay
    from germane.storage.counts.tally import Coverage
    from germane.storage.counts.watched import RECOGNIZED, WatchedTraces, WatchKey, watch_key
    from germane.storage.db.batches import PruneResult
    from germane.storage.db.component import StoreContext, utc_now
    from germane.storage.db.errors import ContentRefused
    from germane.storage.db.mappers import score_key
    from germane.storage.db.sanitize import clean_text
    from germane.storage.history.partitions import (
        ANY_REASON,
        HistoryItem,
        HistoryRun,
        HistorySelection,
        PartitionClaim,
        PartitionKey,
        ScoreCounts,
    )
    from germane.storage.history.results import score_checksum
    from germane.storage.history.store_history import HistoryStore
    from germane.storage.ingest.drop_counts import TrafficThinner
    from germane.storage.ingest.forwarding import ForwardingQueue, OutgoingRequest, QueuedRequest, compress_request
    from germane.storage.ingest.received_spans import (
        ReceivedItem,
        ReceivedSpanStore,
        ReceivedTrace,
        StagingCounts,
        StagingSize,
        TraceOutcome,
        UncapturedTrace,
    )
    from germane.storage.ingest.store_exchanges import ExchangeStore
    from germane.storage.ingest.unreadable_traces import SampleLimiter, UnreadableTraceStore
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
    from germane.storage.retention.store_archive import ArchiveStore, ArchiveSummary, DayResult
    from germane.storage.retention.store_retention import RetentionStore
    from germane.storage.stats.estimate import (
        Estimate,
        RunningSums,
        WeightedSums,
        estimate_mean,
        mean_interval,
        t_quantile,
    )
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
    from germane.storage.trends.comparisons import compare_summaries, measure_comparison
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
    from germane.storage.trends.usage import CostBucket, DurationBucket, NewestBuckets
    from germane.storage.views import MAX_SAVED_VIEWS, SavedViewStore
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
    "ANY_REASON",
    "BACKLOG_COUNT_LIMIT",
    "MAX_JOB_RUNS",
    "MAX_SAVED_VIEWS",
    "MAX_SCORING_DELAY",
    "MIN_SAMPLES",
    "RECOGNIZED",
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
    "ArchiveStore",
    "ArchiveSummary",
    "ArchivedDay",
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
    "ContentRefused",
    "CostBucket",
    "Coverage",
    "CoverageBucket",
    "DayResult",
    "DeliveryOutcome",
    "DetectorScore",
    "DetectorScoreQuery",
    "DetectorState",
    "DetectorStore",
    "Disagreement",
    "DiskUsage",
    "DroppedCount",
    "DurationBucket",
    "EarlierAnswer",
    "Estimate",
    "ExchangeRecord",
    "ExchangeStore",
    "ExchangeWriter",
    "ExportSelection",
    "ExportedItem",
    "FailingTasks",
    "ForwardingQueue",
    "Histogram",
    "HistoryItem",
    "HistoryRun",
    "HistorySelection",
    "HistoryStore",
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
    "MatchSummary",
    "NewestBuckets",
    "NotificationRecord",
    "NotificationStore",
    "OpenTasks",
    "OutgoingRequest",
    "OutstandingWork",
    "PartitionClaim",
    "PartitionKey",
    "PruneResult",
    "QuestionGroup",
    "QuestionGroups",
    "QuestionScore",
    "QuestionScores",
    "QuestionSort",
    "QueuedRequest",
    "QuotaStore",
    "RateLimit",
    "RateLimitUsage",
    "ReceivedItem",
    "ReceivedSpanStore",
    "ReceivedTrace",
    "RequestUsage",
    "RescoreResult",
    "RetentionStore",
    "RetrySummary",
    "RollupStore",
    "RouteMean",
    "RouteSummary",
    "RowCounts",
    "RunningSums",
    "SampleLimiter",
    "SamplerStep",
    "SamplingDecision",
    "SamplingReasonCount",
    "SamplingStore",
    "SamplingSummary",
    "SavedViewStore",
    "ScoreCounts",
    "ScoredExchange",
    "ScorerUsage",
    "ScoringFlow",
    "ScoringHealth",
    "ScoringTask",
    "SelectedCandidate",
    "ServiceSummary",
    "StagingCounts",
    "StagingSize",
    "Store",
    "StoreContext",
    "StoredRecord",
    "TallyMismatch",
    "TaskClaim",
    "TaskQueue",
    "TaskStatus",
    "Throughput",
    "TimeWindow",
    "TraceOutcome",
    "TrackingStore",
    "Traffic",
    "TrafficThinner",
    "TransferStore",
    "TrendReader",
    "TrendStore",
    "UncapturedTrace",
    "UnreadableTraceStore",
    "WatchKey",
    "WatchedTraces",
    "WeightedSums",
    "WindowSummary",
    "Worker",
    "WorkerHeartbeat",
    "WorkerStore",
    "budget_limits_at",
    "budget_shares",
    "clean_text",
    "compare_summaries",
    "compress_request",
    "describe_usage",
    "dump_line",
    "dump_stored",
    "estimate_mean",
    "exhausted_until",
    "format_amount",
    "mark_significant_drops",
    "mean_interval",
    "measure_comparison",
    "new_worker_id",
    "next_affordable_at",
    "parse_line",
    "question_key",
    "score_checksum",
    "score_key",
    "t_quantile",
    "utc_now",
    "watch_key",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "alerting.alerts": ("AlertReader", "AlertStore", "AlertTransaction", "ConditionalWrite"),
        "alerting.baselines": ("BaselineKey", "BaselineReason", "BaselineStore", "BaselineVersion"),
        "alerting.detectors": (
            "MAX_SCORING_DELAY",
            "DetectorScore",
            "DetectorScoreQuery",
            "DetectorState",
            "DetectorStore",
        ),
        "alerting.notifications": ("ChannelQueue", "DeliveryOutcome", "NotificationRecord", "NotificationStore"),
        "alerting.scoring_flow": ("FailingTasks", "ScoringFlow"),
        "answers.detail": ("AnswerDetail",),
        "answers.filter": (
            "Answer",
            "AnswerCursor",
            "AnswerFilter",
            "AnswerPage",
            "AnswerSort",
            "AnswerState",
            "MatchCount",
            "TaskStatus",
        ),
        "answers.groups": ("MatchSummary", "QuestionGroup", "QuestionGroups", "QuestionSort"),
        "answers.question_scores": ("EarlierAnswer", "QuestionScore", "QuestionScores"),
        "answers.questions": ("question_key",),
        "answers.search": ("AnswerNeighbors",),
        "answers.store_answers": ("AnswerReader", "AnswerStore", "RowCounts", "ScoredExchange"),
        "answers.store_labels": ("Disagreement", "LabelReader", "LabelStore"),
        "archive.days": ("ArchivedDay",),
        "counts.tally": ("Coverage",),
        "counts.watched": ("RECOGNIZED", "WatchedTraces", "WatchKey", "watch_key"),
        "db.batches": ("PruneResult",),
        "db.component": ("StoreContext", "utc_now"),
        "db.errors": ("ContentRefused",),
        "db.mappers": ("score_key",),
        "db.sanitize": ("clean_text",),
        "history.partitions": (
            "ANY_REASON",
            "HistoryItem",
            "HistoryRun",
            "HistorySelection",
            "PartitionClaim",
            "PartitionKey",
            "ScoreCounts",
        ),
        "history.results": ("score_checksum",),
        "history.store_history": ("HistoryStore",),
        "ingest.drop_counts": ("TrafficThinner",),
        "ingest.forwarding": ("ForwardingQueue", "OutgoingRequest", "QueuedRequest", "compress_request"),
        "ingest.received_spans": (
            "ReceivedItem",
            "ReceivedSpanStore",
            "ReceivedTrace",
            "StagingCounts",
            "StagingSize",
            "TraceOutcome",
            "UncapturedTrace",
        ),
        "ingest.store_exchanges": ("ExchangeStore",),
        "ingest.unreadable_traces": ("SampleLimiter", "UnreadableTraceStore"),
        "ingest.writer": ("ExchangeWriter",),
        "queue.backlog": ("BACKLOG_COUNT_LIMIT", "Backlog", "OpenTasks", "OutstandingWork", "Throughput"),
        "queue.candidates": ("Candidate", "SamplerStep", "SelectedCandidate"),
        "queue.feedback": ("LabeledExchange",),
        "queue.health": ("RetrySummary", "SamplingReasonCount", "SamplingSummary", "ScoringHealth"),
        "queue.rescore": ("RescoreResult",),
        "queue.store_sampling": ("SamplingDecision", "SamplingStore"),
        "queue.store_tasks": ("TaskQueue",),
        "queue.tasks": ("ScoringTask", "TaskClaim"),
        "quota.budget_ledger": (
            "BudgetDay",
            "BudgetLimits",
            "BudgetReservation",
            "RequestUsage",
            "budget_limits_at",
            "budget_shares",
            "describe_usage",
            "exhausted_until",
            "format_amount",
            "next_affordable_at",
        ),
        "quota.rate_limits": ("RateLimit", "RateLimitUsage"),
        "quota.store_quota": ("HourCount", "QuotaStore", "ScorerUsage", "Traffic"),
        "retention.integrity_check": ("DiskUsage", "IntegrityChecker", "IntegrityReport", "TallyMismatch"),
        "retention.store_archive": ("ArchiveStore", "ArchiveSummary", "DayResult"),
        "retention.store_retention": ("RetentionStore",),
        "stats.estimate": ("Estimate", "RunningSums", "WeightedSums", "estimate_mean", "mean_interval", "t_quantile"),
        "stats.histogram": ("Histogram",),
        "stats.two_sample": ("Comparison", "ComparisonFinding", "Comparisons", "TimeWindow", "mark_significant_drops"),
        "store": ("CalibrationCache", "Store", "TrackingStore"),
        "transfer.export": ("StoredRecord", "dump_stored"),
        "transfer.record": (
            "ALERTING_PARTS",
            "AlertingRow",
            "DroppedCount",
            "ExchangeRecord",
            "ExportedItem",
            "dump_line",
            "parse_line",
        ),
        "transfer.store_transfer": ("ExportSelection", "ImportResult", "TransferStore"),
        "trends.bucket_grid": ("BucketGrid",),
        "trends.comparisons": ("compare_summaries", "measure_comparison"),
        "trends.rollup": ("RollupStore",),
        "trends.store_trends": ("TrendReader", "TrendStore"),
        "trends.summaries": (
            "Bucket",
            "CoverageBucket",
            "RouteMean",
            "RouteSummary",
            "ServiceSummary",
            "WindowSummary",
        ),
        "trends.usage": ("CostBucket", "DurationBucket", "NewestBuckets"),
        "views": ("MAX_SAVED_VIEWS", "SavedViewStore"),
        "workers": ("MAX_JOB_RUNS", "JobRun", "JobRuns", "Worker", "WorkerHeartbeat", "WorkerStore", "new_worker_id"),
    },
)
