"""Soak test: a year of quiet traffic through the real monitor and database, with a simulated clock.

The following parts are real: the database with its tables, the scheduler and its thread, sampling, tasks and leases,
the scoring loop, the detector's input queue, learning, the detector, all default rules, alerts and the outbox. Two
parts are simulated: the clock, which advances by ``--step`` when all due work is done, and the judge, a scorer that
reads the score from the exchange. All exchanges of a step arrive at the end of the step.

Run: python benchmarks/soak.py
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from common import new_exchange
from streams.recipe import BASELINE_DAYS, START, Stream, stream
from traffic import monitored

from germane.alert import Alert
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.settings import load_settings
from germane.storage import BaselineVersion, TrackingStore
from germane.testing import Clock

BEGIN = datetime.fromtimestamp(START, UTC)
TICK = 0.01
"""Poll interval in real seconds. It is shorter than the setting permits, because each step waits for several polls."""
POLL = 0.002
PATIENCE = 60.0
"""Timeout of one step in real seconds."""
MAX_ALERTS = 10_000
"""Maximum number of alerts to load."""


class Judge:
    """A scorer that reads the score from the exchange's attributes."""

    name = "answer_relevancy"
    fingerprint = "simulated"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self) -> None:
        self.asked = 0

    async def score(self, exchange: Exchange) -> float:
        """Yield to other tasks, then return the score."""
        await asyncio.sleep(0)
        self.asked += 1
        return float(exchange.attributes["worth"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a run."""

    exchanges: int
    scores: int
    looks: int
    """Number of clock steps."""
    alerts: list[Alert]
    """Alerts, newest first."""
    events: Counter[str]
    """Number of alert events by type."""
    versions: list[BaselineVersion]
    seconds: float
    """Real duration in seconds."""

    @property
    def fired(self) -> list[Alert]:
        """Alerts that fired."""
        return [alert for alert in self.alerts if alert.fired_at]


def run(url: str, made: Stream, *, step: timedelta) -> Outcome:
    """Capture, score and evaluate a stream, one clock step at a time."""
    clock, judge, began = Clock(BEGIN), Judge(), time.perf_counter()
    store = TrackingStore(url, clock=clock)
    store.migrate()
    settings = load_settings(service="shop", task_lease=3600, scorers=[]).model_copy(update={"poll_interval": TICK})
    with closing(store), monitored(store, judge, settings, clock) as monitor:
        looks = math.ceil(made.hours[-1] * 3600 / step.total_seconds())
        moments = BEGIN.timestamp() + 3600 * made.hours
        done = 0
        for number in range(1, looks + 1):
            until = BEGIN + number * step
            last = int(np.searchsorted(moments, until.timestamp()))
            clock.now = until
            store.exchanges.add([_exchange(made, place, until) for place in range(done, last)])
            done = last
            _settle(judge, store, monitor, clock, done)
        alerts = store.alerts.search(limit=MAX_ALERTS)
        return Outcome(
            exchanges=done,
            scores=store.answers.counts().done,
            looks=looks,
            alerts=alerts,
            events=Counter(event.type for alert in alerts for event in store.alerts.list_events(alert.id)),
            versions=store.baselines.list_versions(superseded=True),
            seconds=time.perf_counter() - began,
        )


def _settle(judge: Judge, store: TrackingStore, monitor: Monitor, clock: Clock, captured: int) -> None:
    """Wait until all due work is done: scored, stored and evaluated."""
    deadline = time.monotonic() + PATIENCE
    while (
        judge.asked < captured
        or store.pool.count_in_progress()
        or store.detectors.list_new_scores(1)
        or not _rested(monitor, clock)
    ):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{clock.now}: {judge.asked} of {captured} scored, {monitor.status()}")
        time.sleep(POLL)


def _rested(monitor: Monitor, clock: Clock) -> bool:
    """Whether each job has run at the current time."""
    jobs = monitor.status().jobs
    return all(jobs[name].last_run == clock.now for name in ("sample", "score", "evaluate"))


def _exchange(made: Stream, place: int, moment: datetime) -> Exchange:
    return new_exchange(
        place, trace_id=f"{place + 1:032x}", service="shop", route=made.names[made.routes[place]], started_at=moment,
        attributes={"worth": float(made.values[place])},
    )  # fmt: skip


def service(seed: int, per_day: float, days: int, **given: Any) -> Stream:
    """Return a stream that lasts ``days`` after two weeks of learning."""
    return stream(np.random.default_rng(seed), per_day, days=days + BASELINE_DAYS, **given)


def _print(outcome: Outcome, days: int) -> None:
    print(f"{days} days after two weeks of learning, {outcome.looks} clock steps")
    print(f"exchanges captured   {outcome.exchanges}")
    print(f"scores               {outcome.scores}")
    for version in outcome.versions:
        found = version.baseline
        numbers = f"n {found.n}, {found.scores_per_day:.1f} a day" if found else ""
        print(f"baseline version {version.number}   {version.status}, {version.reason}: {numbers}")
    for alert in outcome.fired:
        print(f"alert fired          {alert.fired_at:%Y-%m-%d %H:%M}, resolved {alert.resolved_at}: {alert.message}")
    print(f"alert events         {dict(outcome.events)}")
    print(f"alerts fired         {len(outcome.fired)}")
    print(f"seconds              {outcome.seconds:.0f}")


def main() -> int:
    """Run the soak test; return 1 if more than one alert fired."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--per-day", type=float, default=100, help="scores per day; default: 100")
    parser.add_argument("--days", type=int, default=365, help="days after the two weeks of learning; default: 365")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--wander", type=float, default=0.01, help="standard deviation of the daily mean; default: 0.01"
    )
    parser.add_argument("--step", type=float, default=1, help="hours per clock step; default: 1")
    parser.add_argument("--database", metavar="URL", help="an empty database; default: a temporary SQLite file")
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    made = service(given.seed, given.per_day, given.days, wander=given.wander)
    with tempfile.TemporaryDirectory(prefix="germane-soak-") as folder:
        url = given.database or f"sqlite:///{folder}/soak.db"
        outcome = run(url, made, step=timedelta(hours=given.step))
    _print(outcome, given.days)
    return 1 if len(outcome.fired) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
