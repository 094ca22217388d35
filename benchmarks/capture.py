"""Capture: the writer's throughput and memory, and behavior at a million exchanges per minute.

There are three parts, each with a goal. The exit code is 1 if a goal is missed.

- writer: exchanges per second from queue to disk, with answers of 500 characters and three contexts, compared with
  SQLAlchemy Core, which inserts the same prepared rows into the same table with the same indexes. The two methods
  alternate. Goal: at least 0.7 times the rate of Core. With --postgresql URL, PostgreSQL (an empty
  database) is measured as well.
- memory: the memory used while a million exchanges pass through the writer. Goal: no growth after the first tenth.
- stream: 10,000, 100,000 and 1,000,000 exchanges per minute with a simulated clock, under the same exchange limit and
  budget, with the production sampler and an in-process judge. Goal: the numbers of rows and judge requests differ by at
  most a tenth between the rates, and every exchange has a row or is counted. This part also prints the cost of one
  exchange beyond the limit on the calling thread.

Run: python benchmarks/capture.py [PART ...]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from common import Goals, new_exchange, resident_megabytes
from sqlalchemy import insert

from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Exchange, sampling_key_for
from germane.monitor.loop.leases import LeaderLease
from germane.monitor.sampling.budget_allocation import ExchangeCost
from germane.monitor.sampling.candidate_pool import CandidatePool
from germane.monitor.sampling.eligibility import EligibilityChecker
from germane.monitor.sampling.sampler import Sampler
from germane.score import Score
from germane.settings import load_settings
from germane.settings.types import Budget
from germane.storage import ExchangeWriter, TrackingStore
from germane.storage.db import mappers as rows
from germane.storage.db.tables import exchange as table
from germane.storage.quota.budget_ledger import RequestUsage
from germane.testing import transaction

MIN_SHARE = 0.7
"""Minimum share of Core's rate."""
BATCH = 500
MAX_GROWTH = 1.05
"""Maximum ratio of the process's memory after all exchanges to its memory after a tenth of the exchanges."""
RATES = (10_000, 100_000, 1_000_000)
"""Exchanges per minute."""
LIMIT = 6_000
BUDGET = Budget(requests_per_hour=6_000)
MAX_RATIO = 1.1
"""Maximum ratio of the rows or judge requests between two rates."""
CALLS = 200_000
"""Calls beyond the limit; the median of five rounds is used."""
TICK = 2.0
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
COUNTED = {"exchange": 8, "scoring_task": 6, "score": 6, "tally": 10}
"""Tables whose rows are counted, with the width of their columns."""
OWNER = "benchmark"


@contextmanager
def emptied(store: TrackingStore) -> Iterator[None]:
    """Start with an empty table and a completed garbage collection."""
    with transaction(store) as connection:
        connection.exec_driver_sql("DELETE FROM exchange")
    gc.collect()
    yield


def parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Split items into batches, one per transaction."""
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def by_writer(store: TrackingStore, exchanges: Sequence[Exchange]) -> float:
    """Queue exchanges as handlers do, and return the seconds until they are written."""
    writer = ExchangeWriter(store, capacity=len(exchanges), batch=BATCH)
    began = time.perf_counter()
    for exchange in exchanges:
        writer.put(exchange)
    assert writer.flush(600)
    seconds = time.perf_counter() - began
    assert writer.stop(60)
    return seconds


def by_core(store: TrackingStore, exchanges: Sequence[Exchange]) -> float:
    """Insert the same rows with SQLAlchemy Core, from dictionaries."""
    ready = [_dictionary(exchange) for exchange in exchanges]
    began = time.perf_counter()
    for some in parts(ready):
        with transaction(store) as connection:
            connection.execute(insert(table), list(some))
    return time.perf_counter() - began


def _dictionary(exchange: Exchange) -> dict[str, Any]:
    plain = {name: getattr(exchange, name) for name in rows.EXCHANGES.columns}
    contexts = [{"text": one.text, "id": one.id, "score": one.score} for one in exchange.contexts]
    return plain | {"contexts": contexts, "history": [], "attributes": dict(exchange.attributes)}


WAYS: dict[str, Callable[[TrackingStore, Sequence[Exchange]], float]] = {"writer": by_writer, "Core": by_core}


def measure_writer(url: str, count: int, rounds: int, goals: Goals) -> None:
    """Measure both methods in alternation."""
    store = TrackingStore(url)
    store.migrate()
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    for round_ in range(rounds + 1):
        exchanges = [new_exchange(number, contexts=3) for number in range(count)]
        for name, way in WAYS.items():
            with emptied(store):
                rate = count / way(store, exchanges)
            if round_:  # the first round warms up
                rates[name].append(rate)
    store.close()
    shares = [ours / theirs for ours, theirs in zip(rates["writer"], rates["Core"], strict=True)]
    kind = url.partition(":")[0]
    for name, found in rates.items():
        goals.medians(f"writer, {kind}: {name}", found, "exchanges/s")
    goals.medians(f"writer, {kind}: share of Core's rate", shares, least=MIN_SHARE)


def measure_memory(folder: Path, count: int, goals: Goals) -> None:
    """Send many exchanges through one writer, no faster than it writes, deleting the rows along the way."""
    store = TrackingStore(f"sqlite:///{folder}/memory.db")
    store.migrate()
    writer, sizes, step = ExchangeWriter(store, batch=BATCH), list[float](), max(count // 100, 1)
    for number in range(1, count + 1):
        assert writer.put(new_exchange(number, contexts=3))
        if writer.depth > BATCH * 10:
            assert writer.flush(60)
        if number % step == 0:
            assert writer.flush(60)
            with transaction(store) as connection:
                connection.exec_driver_sql("DELETE FROM exchange")
            if number * 10 % count == 0:
                gc.collect()
                sizes.append(resident_megabytes())
    assert writer.stop(60)
    store.close()
    print("memory: at each tenth " + ", ".join(f"{size:.0f} MB" for size in sizes))
    goals.line("memory: growth after the first tenth", sizes[-1] / sizes[0], most=MAX_GROWTH)
    goals.line("memory: dropped exchanges", writer.dropped, most=0)


class Judged:
    """A scorer with an in-process judge that has no latency."""

    name = "judged"
    fingerprint = "j1"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        """Return the sampling key as the score."""
        return exchange.sampling_key


class Stream:
    """Exchanges at a constant rate that pass the exchange limit, the sampler and the judge, with a simulated clock."""

    def __init__(self, url: str) -> None:
        self.seconds = 0.0
        self.sent = self.calls = 0
        self.store = TrackingStore(url, clock=self.now)
        self.store.migrate()
        self.scorer = Judged()
        self.writer = ExchangeWriter(
            self.store, limit=LIMIT, interval=0.0, scorers=[self.scorer.name], clock=lambda: self.seconds
        )
        self.threads = DaemonThreadPool(1, name="benchmark-sampler")

    def now(self) -> datetime:
        """Return the simulated time."""
        return BEGIN + timedelta(seconds=self.seconds)

    async def run(self, rate: int, minutes: int) -> None:
        """Send exchanges until the last interval has ended."""
        sampling = self._sampling()
        for tick in range(round(minutes * 60 / TICK)):
            self._send(tick * TICK, round(rate * TICK / 60 * (tick + 1)) - self.sent)
            await self._settle(sampling)
        self.seconds = minutes * 60.0 + TICK
        await self._settle(sampling)

    def _send(self, start: float, count: int) -> None:
        """Do the work that the tracer does on the calling thread."""
        for place in range(count):
            self.seconds = start + TICK * place / count
            number, self.sent = self.sent, self.sent + 1
            draw, started = sampling_key_for(f"{number + 1:032x}"), round((BEGIN.timestamp() + self.seconds) * 1e9)
            probability = self.writer.admit("benchmark", "returns", started, draw)
            if probability is not None:
                changes = {"started_at": self.now(), "sampling_key": draw, "capture_probability": probability}
                assert self.writer.put(new_exchange(number, contexts=3, **changes))

    async def _settle(self, sampling: Sampler) -> None:
        assert await asyncio.to_thread(self.writer.flush, 60)
        await sampling.run()
        names = {self.scorer.name: self.scorer.fingerprint}
        while claims := self.store.queue.claim_tasks(OWNER, names, limit=BATCH, lease=timedelta(minutes=1)):
            grant = self.store.quota.reserve_budget(BUDGET, [RequestUsage(requests=1)] * len(claims))
            assert all(grant.granted)
            self.calls += len(claims)
            scores = [(claim.tasks[0], await self._score(claim.exchange)) for claim in claims]
            self.store.queue.complete_tasks(OWNER, scores)

    async def _score(self, exchange: Exchange) -> Score:
        value = await self.scorer.score(exchange)
        return Score(scorer=self.scorer.name, fingerprint=self.scorer.fingerprint, value=value, scored_at=self.now())

    def _sampling(self) -> Sampler:
        pool = CandidatePool(
            self.store, budget=BUDGET, sample_rate=load_settings(budget=BUDGET).sample_rate,
            default_cost=ExchangeCost(1, 0, 0), lease_holder=("sampler", OWNER),
        )  # fmt: skip
        return Sampler(
            self.store, [self.scorer], sample_rate=None, eligibility=EligibilityChecker([self.scorer]), pool=pool,
            leader=LeaderLease(self.store, "sampler", OWNER, ttl=timedelta(minutes=1), clock=self.now),
            thread_pool=self.threads, attach=lambda *_: None, clock=self.now,
        )  # fmt: skip

    def number(self, query: str) -> float:
        """Return the result of a query."""
        with transaction(self.store, read_only=True) as connection:
            return float(connection.exec_driver_sql(query).scalar_one())

    def close(self) -> None:
        """Stop the threads."""
        assert self.writer.stop(60)
        self.threads.close()
        self.store.close()


def beyond(folder: Path, count: int) -> float:
    """Return the CPU time in ns of dropping one exchange on the calling thread: a hash and a counter."""
    store = TrackingStore(f"sqlite:///{folder}/beyond.db")
    store.migrate()
    writer = ExchangeWriter(store, limit=1)
    names = [f"{number:032x}" for number in range(count)]
    times = []
    for _ in range(5):
        began = time.thread_time_ns()
        for name in names:
            writer.admit("benchmark", "returns", began, sampling_key_for(name))
        times.append((time.thread_time_ns() - began) / count)
    assert writer.stop(60)
    store.close()
    return median(times)


def measure_stream(
    folder: Path, minutes: int, goals: Goals, rates: Sequence[int] = RATES, *, calls: int = CALLS
) -> None:
    """Run the streams and print their outcomes."""
    print(f"stream: {minutes} minutes, exchange limit {LIMIT:,}, budget {BUDGET.requests_per_hour:,} requests/h")
    print(" per minute        sent    stored   tasks  scores  tally rows     requests  sum of 1/p  CPU s")
    stored, judged, uncounted = list[float](), list[float](), 0
    for rate in rates:
        began = time.process_time()
        with closing(Stream(f"sqlite:///{folder}/stream-{rate}.db")) as stream:
            asyncio.run(stream.run(rate, minutes))
            rows = [
                stream.number(f"SELECT count(*) FROM {name}") for name in ("exchange", "scoring_task", "score", "tally")
            ]
            weighted = stream.number("SELECT sum(1 / capture_probability) FROM exchange")
            uncounted += stream.sent - sum(each.seen for each in stream.store.trends.coverage())
        counts = "  ".join(f"{count:{wide},.0f}" for count, wide in zip(rows, COUNTED.values(), strict=True))
        cpu = time.process_time() - began
        print(f"{rate:11,}  {stream.sent:10,}  {counts}  {stream.calls:11,}  {weighted:10,.0f}  {cpu:5.0f}")
        stored.append(rows[0])
        judged.append(stream.calls)
    goals.line("stream: CPU time of an exchange beyond the limit", beyond(folder, calls), "ns")
    apart = max(max(counts) / max(min(counts), 1) for counts in (stored, judged))
    goals.line("stream: max/min of rows and requests", apart, most=MAX_RATIO)
    goals.line("stream: exchanges without a row or a count", uncounted, most=0)


def main() -> int:
    """Run the parts; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["writer", "memory", "stream"], metavar="PART")
    parser.add_argument("--exchanges", type=int, default=10_000, help="exchanges per round of the writer part")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--million", type=int, default=1_000_000, help="exchanges in the memory part")
    parser.add_argument("--minutes", type=int, default=6, help="simulated minutes in the stream part")
    parser.add_argument(
        "--postgresql", metavar="URL", help="an empty database for the writer part, in addition to SQLite"
    )
    options = parser.parse_args()
    logging.getLogger("germane").setLevel(logging.ERROR)  # the limit is exceeded on purpose
    goals = Goals()
    with tempfile.TemporaryDirectory() as name:
        if "writer" in options.parts:
            for url in (f"sqlite:///{name}/writer.db", options.postgresql):
                if url:
                    measure_writer(url, options.exchanges, options.rounds, goals)
        if "memory" in options.parts:
            measure_memory(Path(name), options.million, goals)
        if "stream" in options.parts:
            measure_stream(Path(name), options.minutes, goals)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
