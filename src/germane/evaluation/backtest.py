"""Backtests of alert rules on an engine, with one partition for each rule.

A backtest is sequential in time, and a ``drop`` rule follows all routes of a service together, so dividing a rule would
change its alerts. Rules do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from germane.alerting import BacktestReport, run_backtest
from germane.evaluation.engines import Engine
from germane.evaluation.partitions import run_partitions, settings_for_workers, settings_of_worker
from germane.settings import AnyRule, Settings
from germane.storage import TrackingStore


@dataclass(frozen=True, slots=True)
class BacktestJob:
    """The data that the backtests of all rules share."""

    settings: Settings
    has_own_secrets: bool
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class RulePart:
    """A rule to backtest."""

    number: int
    rule: AnyRule


def run_backtest_on_engine(
    settings: Settings, rules: Sequence[AnyRule], engine: Engine, *, since: datetime, until: datetime
) -> BacktestReport:
    """Run each rule over the stored history in a process of an engine; see :func:`germane.alerting.run_backtest`.

    The report is the same as without an engine.

    Raises:
        PartitionFailed: A rule failed repeatedly.
    """
    job = BacktestJob(settings_for_workers(settings, engine), engine.is_remote, since, until)
    reports: dict[int, BacktestReport] = {}
    parts = [RulePart(number, rule) for number, rule in enumerate(rules)]
    run_partitions(
        engine, backtest_rule, job, parts, on_done=lambda part, report: reports.update({part.number: report})
    )
    ordered = [reports[part.number] for part in parts]
    return replace(
        ordered[0],
        rules=tuple(backtest for report in ordered for backtest in report.rules),
        skipped=tuple(rule for report in ordered for rule in report.skipped),
    )


def backtest_rule(job: BacktestJob, part: RulePart) -> BacktestReport:
    """Run one rule over the stored history. Runs in a process of the engine."""
    settings = settings_of_worker(job.settings, has_own_secrets=job.has_own_secrets)
    store = TrackingStore(settings.database)
    try:
        return run_backtest(store, settings, [part.rule], since=job.since, until=job.until)
    finally:
        store.close()
