"""Outcome of every sampled exchange under five loads, with a simulated clock: python benchmarks/traffic.py [ROW]."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from common import new_exchange
from sqlalchemy import select

from germane.exchange import Exchange, sampling_key_for
from germane.monitor import Monitor, MonitorConfig
from germane.settings import Settings, load_settings
from germane.storage import TrackingStore
from germane.storage.db.engine import Database
from germane.storage.db.tables import exchange, scoring_task
from germane.testing import Clock

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LATE = 10
"""Delay in minutes before one in a hundred exchanges is written, as after a lost connection."""
BATCH = 500
PATIENCE = 300.0
"""Real seconds after which the exchanges of a simulated minute count as lost if they have no final state."""


@dataclass(frozen=True)
class Load:
    """One row of the table: traffic, and the result of another tool."""

    per_second: int
    hours: int
    rate: float
    elsewhere: str
    """Share of the same traffic that MLflow 3.18.0 scored, polling once a minute."""

    def __str__(self) -> str:
        return f"{self.per_second}/s x {self.hours} h"


LOADS = (
    Load(5, 1, 1.0, "100%"),
    Load(20, 2, 1.0, "62%"),
    Load(20, 2, 0.01, "37%"),
    Load(20, 10, 0.001, "34%"),
    Load(100, 2, 0.01, "11%"),
)


@dataclass
class Outcome:
    """Outcome of one load's exchanges."""

    seen: int
    drawn: int
    """Number of sampled exchanges, computed from their sampling keys."""
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Counts of the sampled exchanges in the database by state and reason."""
    others: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Counts of the exchanges that were not sampled, by state and reason."""
    counted: Mapping[str, int] = field(default_factory=dict)
    """Sums of the tally."""

    @property
    def ended(self) -> int:
        """Number of sampled exchanges that are scored, or that are skipped or failed with a reason."""
        return sum(count for (state, why), count in self.states.items() if state == "done" or (_ends(state) and why))

    @property
    def is_whole(self) -> bool:
        """Whether every exchange has a final state and the tally matches."""
        ends = sum(count for (state, why), count in self.others.items() if _ends(state) and why)
        of_tally = self.counted["scored"] + self.counted["skipped"] + self.counted["failed"]
        scored = self.states["done", ""] == self.counted["scored"]
        return self.ended == self.drawn and ends == self.seen - self.drawn and of_tally == self.seen and scored

    def count(self, state: str) -> str:
        """Format the counts of sampled exchanges in a state by reason."""
        return ", ".join(f"{why} {count}".strip() for (had, why), count in sorted(self.states.items()) if had == state)


def _ends(state: str) -> bool:
    return state in {"skipped", "failed"}


class Instant:
    """An in-process scorer without latency that fails for one exchange in fifty."""

    name = "instant"
    fingerprint = "i1"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        """Return the sampling key as the score."""
        if int(exchange.id, 16) % 50 == 0:
            raise LookupError("simulated failure")
        return exchange.sampling_key


@contextmanager
def monitored(
    store: TrackingStore, scorer: Any, settings: Settings, clock: Callable[[], datetime]
) -> Iterator[Monitor]:
    """Run the production monitor with one scorer and a clock."""
    monitor = Monitor(MonitorConfig(store, [scorer], settings, attach=lambda *_: None, clock=clock))
    monitor.start()
    try:
        yield monitor
    finally:
        monitor.stop()


class Traffic:
    """One load's exchanges, minute by minute. They are reproducible."""

    def __init__(self, load: Load) -> None:
        self.seen = self.drawn = 0
        self._load = load
        self._random = random.Random(f"{load}")
        self._late: deque[list[Exchange]] = deque([[] for _ in range(LATE)])

    def of_minute(self, number: int) -> Iterator[list[Exchange]]:
        """Yield the exchanges that reach the database in one minute, in batches."""
        made = self._made(number) if number < 60 * self._load.hours else []
        self._late.append(made[::100])
        coming = self._late.popleft() + [one for place, one in enumerate(made) if place % 100]
        yield from (coming[first : first + BATCH] for first in range(0, len(coming), BATCH))

    def _made(self, minute: int) -> list[Exchange]:
        count = 60 * self._load.per_second
        return [self._one(BEGIN + minute * MINUTE + place * MINUTE / count) for place in range(count)]

    def _one(self, at: datetime) -> Exchange:
        """Return an exchange. Some exchanges have no answer, and some ended with an error."""
        self.seen += 1
        trace_id = f"{self._random.getrandbits(128):032x}"
        draw = sampling_key_for(trace_id)
        self.drawn += draw <= self._load.rate
        return new_exchange(
            self.seen, id=f"{self.seen:032x}", trace_id=trace_id, service="shop", started_at=at, sampling_key=draw,
            answer=None if self.seen % 40 == 0 else "Two years.", status="error" if self.seen % 30 == 0 else "ok",
        )  # fmt: skip


class Replay:
    """Replays a load against the production monitor."""

    def __init__(self, load: Load, url: str) -> None:
        self._load, self._clock = load, Clock(BEGIN)
        self._store, self._database = TrackingStore(url, clock=self._clock), Database(url)

    def run(self, minutes: int | None = None) -> Outcome:
        """Replay the load, or its first minutes, including late exchanges."""
        traffic = Traffic(self._load)
        last = minutes or 60 * self._load.hours
        self._store.migrate()
        settings = load_settings(sample_rate=self._load.rate, poll_interval=0.05, task_lease=3600.0, service="shop")
        running = monitored(self._store, Instant(), settings, self._clock)
        with closing(self._store), closing(self._database), running as monitor:
            for number in range(last + LATE):
                for batch in traffic.of_minute(number if number < last else sys.maxsize):
                    self._store.exchanges.add(batch)
                if not self._pass_a_minute(monitor):
                    break
            return self._outcome(traffic)

    def _pass_a_minute(self, monitor: Monitor) -> bool:
        """Advance by a minute and wait for the work; return False on timeout."""
        self._clock.now += MINUTE
        deadline = time.monotonic() + PATIENCE
        while not (self._had_its_turn(monitor) and self._is_idle()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def _had_its_turn(self, monitor: Monitor) -> bool:
        last_run = monitor.status().jobs["sample"].last_run
        return last_run is not None and last_run >= self._clock.now

    def _is_idle(self) -> bool:
        """Whether no exchange is waiting for sampling or a score."""
        undecided = select(exchange.c.id).where(exchange.c.sampling_reason.is_(None)).limit(1)
        waiting = select(scoring_task.c.id).where(scoring_task.c.due_at.is_not(None)).limit(1)
        with self._database.read() as connection:
            return not any(connection.execute(query).first() for query in (undecided, waiting))

    def _outcome(self, traffic: Traffic) -> Outcome:
        found = Outcome(traffic.seen, traffic.drawn)
        coverage = self._store.trends.coverage()
        for name in ("seen", "scored", "pending"):
            found.counted = {**found.counted, name: sum(getattr(each, name) for each in coverage)}
        for name in ("skipped", "failed"):
            found.counted = {**found.counted, name: sum(sum(getattr(each, name).values()) for each in coverage)}
        query = select(exchange.c.sampling_key <= self._load.rate, scoring_task.c.state, scoring_task.c.reason)
        with self._database.read() as connection:
            rows = connection.execute(query.join(exchange, exchange.c.id == scoring_task.c.exchange_id))
            for drawn, state, reason in rows.yield_per(10_000):
                (found.states if drawn else found.others)[state, reason or ""] += 1
        return found


def replay(load: Load, minutes: int | None = None) -> Outcome:
    """Replay a load, or its first minutes, on a temporary database."""
    with tempfile.TemporaryDirectory(prefix="germane-traffic-") as folder:
        return Replay(load, f"sqlite:///{folder}/germane.db").run(minutes)


HEAD = (
    f"{'traffic':>12} {'rate':>6} {'seen':>8} {'sampled':>8} {'scored':>8} {'failed':>22} {'ended':>7} {'MLflow':>7}"
    "  skipped"
)


def line(load: Load, outcome: Outcome) -> str:
    """Return the row of the table."""
    share = f"{outcome.ended / outcome.drawn:.2%}" if outcome.drawn else "-"
    scored, failed = outcome.states["done", ""], outcome.count("failed") or "0"
    figures = f"{outcome.seen:8} {outcome.drawn:8} {scored:8} {failed:>22} {share:>7} {load.elsewhere:>7}"
    return f"{load!s:>12} {load.rate:>6g} {figures}  {outcome.count('skipped')}"


def main() -> int:
    """Print a line per load; return 1 if any exchange is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, help="1 to 5; default: all")
    parser.add_argument("--minutes", type=int, help="minutes of each load; default: all")
    given = parser.parse_args()
    print(HEAD)
    missed = 0
    for number in given.rows or range(1, len(LOADS) + 1):
        began = time.monotonic()
        outcome = replay(LOADS[number - 1], given.minutes)
        missed += not outcome.is_whole
        print(line(LOADS[number - 1], outcome), f" ({time.monotonic() - began:.0f} s)", flush=True)
        if not outcome.is_whole:
            print(f"  incomplete: {outcome}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
