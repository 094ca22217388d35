"""A year of quiet traffic through the real monitor and database, by a clock that is turned: python benchmarks/year.py.

Real are the database with its tables, the scheduler and its thread, sampling, tasks and leases, the scoring loop, the
queue of arrivals, learning, detector, all rules that are on by default, alerts and outbox. Simulated are the clock,
which is turned by ``--step`` once all that was due is done, and the judge: a scorer that reads from its exchange what
it is worth. The exchanges of a step all come at its end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from streams.recipe import BASELINE_DAYS, START, Stream, stream

from germane.alert import Alert
from germane.exchange import Exchange, draw_of, new_exchange_id
from germane.monitor import Monitor
from germane.settings import load
from germane.storage import BaselineVersion, Store

BEGIN = datetime.fromtimestamp(START, UTC)
TICK = 0.01
"""Real seconds; shorter than a setting may be, as each step takes some."""
POLL = 0.002
PATIENCE = 60.0
"""Real seconds for one step: longer means that something hangs."""
MOST = 10_000
"""Alerts that are read."""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        """Return what it shows."""
        return self.now


class Judge:
    """Reads from an exchange what its answer is worth."""

    name = "answer_relevancy"
    fingerprint = "simulated"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self) -> None:
        self.asked = 0

    async def score(self, exchange: Exchange) -> float:
        """Return it, after others had their turn."""
        await asyncio.sleep(0)
        self.asked += 1
        return float(exchange.attributes["worth"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    exchanges: int
    scores: int
    looks: int
    """Steps of the clock."""
    alerts: list[Alert]
    """The newest first."""
    events: Counter[str]
    """What happened to them."""
    versions: list[BaselineVersion]
    seconds: float
    """Real ones."""

    @property
    def fired(self) -> list[Alert]:
        """Those that people were told of."""
        return [alert for alert in self.alerts if alert.fired_at]


def run(url: str, made: Stream, *, step: timedelta) -> Outcome:
    """Have a stream captured, scored and watched, one step of the clock after the other."""
    clock, judge, began = Clock(), Judge(), time.perf_counter()
    store = Store(url, clock=clock)
    store.migrate()
    with contextlib.closing(store), _monitored(store, judge, clock) as monitor:
        looks = math.ceil(made.hours[-1] * 3600 / step.total_seconds())
        moments = BEGIN.timestamp() + 3600 * made.hours
        done = 0
        for number in range(1, looks + 1):
            until = BEGIN + number * step
            last = int(np.searchsorted(moments, until.timestamp()))
            clock.now = until
            store.add([_exchange(made, place, until) for place in range(done, last)])
            done = last
            _settle(judge, store, monitor, clock, done)
        alerts = store.alerts(limit=MOST)
        return Outcome(
            exchanges=done,
            scores=store.counts().done,
            looks=looks,
            alerts=alerts,
            events=Counter(event.what for alert in alerts for event in store.alert_events(alert.id)),
            versions=store.baselines(superseded=True),
            seconds=time.perf_counter() - began,
        )


@contextlib.contextmanager
def _monitored(store: Store, judge: Judge, clock: Clock) -> Iterator[Monitor]:
    settings = load(service="shop", lease=3600, scorers=[]).model_copy(update={"tick": TICK})
    monitor = Monitor(store, [judge], settings, attach=lambda *_: None, clock=clock)
    monitor.start()
    try:
        yield monitor
    finally:
        monitor.stop()


def _settle(judge: Judge, store: Store, monitor: Monitor, clock: Clock, captured: int) -> None:
    """Wait until all that is due by the clock is done: scored, saved and looked at."""
    deadline = time.monotonic() + PATIENCE
    while judge.asked < captured or store.under_way() or store.arrivals(1) or not _rested(monitor, clock):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{clock.now}: {judge.asked} of {captured} asked for, {monitor.status()}")
        time.sleep(POLL)


def _rested(monitor: Monitor, clock: Clock) -> bool:
    """Whether each job has run at the time that it is now."""
    jobs = monitor.status().jobs
    return all(jobs[name].last_run == clock.now for name in ("sample", "score", "watch"))


def _exchange(made: Stream, place: int, moment: datetime) -> Exchange:
    trace_id = f"{place + 1:032x}"
    return Exchange(
        id=new_exchange_id(),
        trace_id=trace_id,
        span_id=trace_id[-16:],
        service="shop",
        route=made.names[made.routes[place]],
        question="How long is the warranty?",
        answer=f"Two years, says paragraph {place}.",
        attributes={"worth": float(made.values[place])},
        started_at=moment,
        draw=draw_of(trace_id),
    )


def service(seed: int, per_day: float, days: int, **given: Any) -> Stream:
    """Return so many days of a service after a fortnight of learning."""
    return stream(np.random.default_rng(seed), per_day, days=days + BASELINE_DAYS, **given)


@contextlib.contextmanager
def _database(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="germane-year-") as folder:
        yield f"sqlite:///{Path(folder) / 'year.db'}"


def _print(outcome: Outcome, days: int) -> None:
    print(f"{days} days after a fortnight of learning, {outcome.looks} steps of the clock")
    print(f"exchanges captured   {outcome.exchanges}")
    print(f"scores               {outcome.scores}")
    for version in outcome.versions:
        found = version.baseline
        numbers = f"n {found.n}, {found.scores_per_day:.1f} a day" if found else ""
        print(f"baseline version {version.number}   {version.status}, {version.reason}: {numbers}")
    for alert in outcome.fired:
        print(f"alert fired          {alert.fired_at:%Y-%m-%d %H:%M}, resolved {alert.resolved_at}: {alert.message}")
    print(f"events of alerts     {dict(outcome.events)}")
    print(f"alerts fired         {len(outcome.fired)}")
    print(f"seconds              {outcome.seconds:.0f}")


def main() -> int:
    """Return 1 when more than one alert fired."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--per-day", type=float, default=100, help="scores a day; default: 100")
    parser.add_argument("--days", type=int, default=365, help="after the fortnight of learning; default: 365")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wander", type=float, default=0.01, help="of the mean from day to day; default: .01")
    parser.add_argument("--step", type=float, default=1, help="hours by which the clock is turned; default: 1")
    parser.add_argument("--database", metavar="URL", help="an empty one; default: an SQLite file for the time")
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    made = service(given.seed, given.per_day, given.days, wander=given.wander)
    with _database(given.database) as url:
        outcome = run(url, made, step=timedelta(hours=given.step))
    _print(outcome, given.days)
    return 1 if len(outcome.fired) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
