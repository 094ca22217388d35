"""Exchanges, scores and counts in SQLite or PostgreSQL: the only room that speaks SQL."""

from __future__ import annotations

from germane.storage.ageing import Removed
from germane.storage.alerts import Advance, Written
from germane.storage.arrivals import Arrival, Past
from germane.storage.backlog import Backlog, OpenTasks, Outstanding, Trouble
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
from germane.storage.limits import Limit, LimitUse
from germane.storage.means import Bucket, CoverageBucket, RouteMean, RouteSummary
from germane.storage.notifications import Lane, Outcome, Posted
from germane.storage.part import utc_now
from germane.storage.pool import Candidate, Pick, Step
from germane.storage.pulse import Pulse
from germane.storage.readings import Counts, Scored
from germane.storage.record import Dropped, Record, dumped, made_by, read
from germane.storage.restoring import Restored
from germane.storage.sampling import Decision
from germane.storage.store import Store
from germane.storage.tally import Coverage
from germane.storage.tasks import Claim, Task
from germane.storage.traffic import HourCount, Traffic, Usage
from germane.storage.workers import Presence, Worker
from germane.storage.writer import Writer

__all__ = [
    "Advance",
    "Allowed",
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
    "Key",
    "Labelled",
    "Lane",
    "Limit",
    "LimitUse",
    "OpenTasks",
    "Outcome",
    "Outstanding",
    "Past",
    "Pick",
    "Posted",
    "Presence",
    "Progress",
    "Pulse",
    "Record",
    "Removed",
    "Restored",
    "RouteMean",
    "RouteSummary",
    "Scored",
    "Selection",
    "Spent",
    "Step",
    "Store",
    "Task",
    "Traffic",
    "Trouble",
    "Usage",
    "Why",
    "Window",
    "Worker",
    "Writer",
    "Written",
    "allowed",
    "dumped",
    "frees_at",
    "made_by",
    "read",
    "shares",
    "utc_now",
]
