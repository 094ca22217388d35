"""Exchanges, scores and counts in SQLite or PostgreSQL: the only room that speaks SQL."""

from __future__ import annotations

from germane.storage.ageing import Removed
from germane.storage.alerts import Advance, Written
from germane.storage.answer_filter import Answer, AnswerFilter, AnswerPage, AnswerState, Place, Sort, Total, Work
from germane.storage.answers import Neighbours
from germane.storage.arrivals import Arrival, Past
from germane.storage.backlog import Backlog, OpenTasks, Outstanding
from germane.storage.baselines import BaselineVersion, Key, Why
from germane.storage.budget import Allowed, Expense, Grant, Spent, allowed, frees_at, shares
from germane.storage.comparison import Comparison, Comparisons, Finding, Window
from germane.storage.detectors import Progress
from germane.storage.estimate import Estimate
from germane.storage.exporting import Selection
from germane.storage.feedback import Labelled
from germane.storage.floors import Floors
from germane.storage.flow import Failing, Flow
from germane.storage.histogram import Histogram
from germane.storage.inspecting import Inspection, Room, Uneven
from germane.storage.jobs import JobRuns, Run
from germane.storage.limits import Limit, LimitUse
from germane.storage.manner import Manner, Sampled
from germane.storage.means import Bucket, CoverageBucket, Overall, RouteMean, RouteSummary, ServiceSummary
from germane.storage.notifications import Lane, Outcome, Posted
from germane.storage.pairing import comparisons
from germane.storage.part import utc_now
from germane.storage.pool import Candidate, Pick, Step
from germane.storage.pulse import Pulse
from germane.storage.readings import Counts, Scored
from germane.storage.record import Dropped, Record, dumped, made_by, read
from germane.storage.rescoring import Rescored
from germane.storage.restoring import Restored
from germane.storage.review import Disagreement, Sheet
from germane.storage.sampling import Decision
from germane.storage.store import Store
from germane.storage.tally import Coverage
from germane.storage.tasks import Claim, Task
from germane.storage.traffic import HourCount, Traffic, Usage
from germane.storage.trouble import Trouble
from germane.storage.workers import Presence, Worker
from germane.storage.writer import Writer

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
    "comparisons",
    "dumped",
    "frees_at",
    "made_by",
    "read",
    "shares",
    "utc_now",
]
