"""Exchanges, scores and counts in SQLite or PostgreSQL: the only room that speaks SQL."""

from __future__ import annotations

from germane.storage.alerting.alerts import Advance, Written
from germane.storage.alerting.baselines import BaselineVersion, Key, Progress, Why
from germane.storage.alerting.notifications import Lane, Outcome, Posted
from germane.storage.alerting.scoring_flow import Failing, Flow
from germane.storage.answers.detail import Disagreement, Sheet
from germane.storage.answers.filter import Answer, AnswerFilter, AnswerPage, AnswerState, Place, Sort, Total, Work
from germane.storage.answers.readers import Counts, Scored
from germane.storage.answers.search import Neighbours
from germane.storage.calibration_cache import Floors
from germane.storage.cluster.workers import JobRuns, Presence, Run, Worker
from germane.storage.counts.tally import Coverage
from germane.storage.db.component import utc_now
from germane.storage.ingest.writer import Writer
from germane.storage.queue.assign import Decision
from germane.storage.queue.backlog import Backlog, OpenTasks, Outstanding
from germane.storage.queue.candidates import Candidate, Pick, Step
from germane.storage.queue.detector_inbox import Arrival, Past
from germane.storage.queue.feedback import Labelled
from germane.storage.queue.health import Manner, Pulse, Sampled, Trouble
from germane.storage.queue.rescore import Rescored
from germane.storage.queue.tasks import Claim, Task
from germane.storage.quota.budget_ledger import (
    Allowed,
    Expense,
    Grant,
    Spent,
    allowed,
    amount,
    frees_at,
    shares,
    spent_of,
    spent_until,
)
from germane.storage.quota.rate_limits import Limit, LimitUse
from germane.storage.quota.traffic_forecast import HourCount, Traffic, Usage
from germane.storage.retention.expire import Removed
from germane.storage.retention.integrity_check import Inspection, Room, Uneven
from germane.storage.stats.estimate import Estimate
from germane.storage.stats.histogram import Histogram
from germane.storage.stats.models import Bucket, CoverageBucket, Overall, RouteMean, RouteSummary, ServiceSummary
from germane.storage.stats.two_sample import Comparison, Comparisons, Finding, Window
from germane.storage.store import Store
from germane.storage.transfer.export import Selection
from germane.storage.transfer.import_ import Restored
from germane.storage.transfer.record import Dropped, Record, dumped, made_by, read
from germane.storage.trends.store_comparisons import comparisons

__all__ = [
    "Advance",
    "Allowed",
    "Answer",
    "AnswerFilter",
    "AnswerPage",
    "AnswerState",
    "Arrival",
    "Backlog",
    "BaselineVersion",
    "Bucket",
    "Candidate",
    "Claim",
    "Comparison",
    "Comparisons",
    "Counts",
    "Coverage",
    "CoverageBucket",
    "Decision",
    "Disagreement",
    "Dropped",
    "Estimate",
    "Expense",
    "Failing",
    "Finding",
    "Floors",
    "Flow",
    "Grant",
    "Histogram",
    "HourCount",
    "Inspection",
    "JobRuns",
    "Key",
    "Labelled",
    "Lane",
    "Limit",
    "LimitUse",
    "Manner",
    "Neighbours",
    "OpenTasks",
    "Outcome",
    "Outstanding",
    "Overall",
    "Past",
    "Pick",
    "Place",
    "Posted",
    "Presence",
    "Progress",
    "Pulse",
    "Record",
    "Removed",
    "Rescored",
    "Restored",
    "Room",
    "RouteMean",
    "RouteSummary",
    "Run",
    "Sampled",
    "Scored",
    "Selection",
    "ServiceSummary",
    "Sheet",
    "Sort",
    "Spent",
    "Step",
    "Store",
    "Task",
    "Total",
    "Traffic",
    "Trouble",
    "Uneven",
    "Usage",
    "Why",
    "Window",
    "Work",
    "Worker",
    "Writer",
    "Written",
    "allowed",
    "amount",
    "comparisons",
    "dumped",
    "frees_at",
    "made_by",
    "read",
    "shares",
    "spent_of",
    "spent_until",
    "utc_now",
]
