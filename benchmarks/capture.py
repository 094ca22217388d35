"""Capture: the writer's throughput and memory, and behavior at a million exchanges per minute.

There are three parts, each with a goal. The exit code is 1 if a goal is missed.

- writer: exchanges per second from queue to disk, with answers of 500 characters and three contexts, compared with
  SQLAlchemy Core and the plain driver, which insert the same prepared rows into the same table with the same indexes.
  The three methods alternate. Goal: at least 0.7 times the rate of Core. With --postgresql URL, PostgreSQL (an empty
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
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import insert

from germane.daemon_pool import DaemonThreadPool
from germane.exchange import Context, Exchange, new_exchange_id, sampling_key_for
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
from germane.testing import engine_of, transaction

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
OWNER = "benchmark"
QUESTION = "How long do I have to return a pair of shoes that does not fit, number {number}?"
ANSWER = (
    "Order {number} can be returned within thirty days of delivery. Print the label from your account, pack the goods "
    "in their own box, and hand them in at any of the partner shops; there is no charge for returns inside the "
    "country. The amount is refunded to the card within five working days after the parcel has arrived, and a message "
    "tells you when that was done. Shoes must not have been worn outside. If the label has been lost, a new one can be "
    "printed, and any other box will do as well."
)


def make(number: int, **changes: Any) -> Exchange:
    """Return an exchange with unique texts, as the tracer creates it."""
    trace_id = f"{number + 1:032x}"
    values: dict[str, Any] = {"started_at": datetime.now(UTC), "sampling_key": sampling_key_for(trace_id)} | changes
    return Exchange(
        id=new_exchange_id(), trace_id=trace_id, span_id=trace_id[16:], service="benchmark", route="returns",
        question=QUESTION.format(number=number), answer=ANSWER.format(number=number),
        contexts=tuple(Context(f"{ANSWER} ({number}, {place})", f"doc-{place}", 0.9) for place in range(3)),
        attributes={"tenant": "north"}, duration=0.25, **values,
    )  # fmt: skip


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


def by_driver(store: TrackingStore, exchanges: Sequence[Exchange]) -> float:
    """Insert the same rows with the driver's executemany, from tuples."""
    stamp = rows.timestamp_encoder(engine_of(store).dialect.name)
    ready = [rows.EXCHANGES.encode(exchange, stamp) for exchange in exchanges]
    mark = "?" if engine_of(store).dialect.name == "sqlite" else "%s"
    names = ", ".join(f'"{name}"' for name in rows.EXCHANGES.columns)
    statement = f"INSERT INTO exchange ({names}) VALUES ({', '.join([mark] * len(rows.EXCHANGES.columns))})"
    raw = engine_of(store).raw_connection()
    cursor = raw.cursor()
    began = time.perf_counter()
    for some in parts(ready):
        if mark == "?":
            cursor.execute("BEGIN IMMEDIATE")
        cursor.executemany(statement, some)
        cursor.execute("COMMIT") if mark == "?" else raw.commit()
    seconds = time.perf_counter() - began
    raw.close()
    return seconds


WAYS: dict[str, Callable[[TrackingStore, Sequence[Exchange]], float]] = {
    "writer": by_writer, "Core": by_core, "driver": by_driver
}  # fmt: skip


def measure_writer(url: str, count: int, rounds: int) -> bool:
    """Measure the three methods in alternation, print their rates, and return whether the goal is met."""
    store = TrackingStore(url)
    store.migrate()
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    for round_ in range(rounds + 1):
        exchanges = [make(number) for number in range(count)]
        for name, way in WAYS.items():
            with emptied(store):
                rate = count / way(store, exchanges)
            if round_:  # the first round warms up
                rates[name].append(rate)
    store.close()
    shares = [ours / theirs for ours, theirs in zip(rates["writer"], rates["Core"], strict=True)]
    rates_text = "  ".join(f"{name} {median(found):8,.0f}/s" for name, found in rates.items())
    print(f"{url.partition(':')[0]:11} {rates_text}  writer/Core {median(shares):.2f}  goal {MIN_SHARE}")
    return median(shares) >= MIN_SHARE


def resident() -> float:
    """Return the memory of this process in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def measure_memory(folder: Path, count: int) -> bool:
    """Send many exchanges through one writer, no faster than it writes, deleting the rows along the way."""
    store = TrackingStore(f"sqlite:///{folder}/memory.db")
    store.migrate()
    writer, sizes, step = ExchangeWriter(store, batch=BATCH), {}, max(count // 100, 1)
    for number in range(1, count + 1):
        assert writer.put(make(number))
        if writer.depth > BATCH * 10:
            assert writer.flush(60)
        if number % step == 0:
            assert writer.flush(60)
            with transaction(store) as connection:
                connection.exec_driver_sql("DELETE FROM exchange")
            if number * 10 % count == 0:
                sizes[number] = resident()
    assert writer.stop(60)
    store.close()
    first, last = sizes[count // 10], sizes[count]
    print("memory      " + "  ".join(f"{number:,}: {size:.0f} MiB" for number, size in sizes.items()))
    print(f"            growth {last / first:.3f}  goal {MAX_GROWTH}  dropped {writer.dropped}")
    return last <= first * MAX_GROWTH and not writer.dropped


class Judged:
    """A scorer with an in-process judge that has no latency."""

    name = "judged"
    fingerprint = "j1"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    async def score(self, exchange: Exchange) -> float:
        """Return the sampling key as the score."""
        return exchange.sampling_key


@dataclass
class Outcome:
    """Outcome of one stream."""

    came: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    """Rows by table."""
    calls: int = 0
    weighted: float = 0.0
    """Sum of 1 / capture_probability over the stored exchanges."""
    counted: int = 0
    """Exchanges seen according to the tally."""


class Stream:
    """Exchanges at a constant rate that pass the exchange limit, the sampler and the judge, with a simulated clock."""

    def __init__(self, url: str) -> None:
        self.seconds = 0.0
        self.outcome = Outcome()
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

    async def run(self, rate: int, minutes: int) -> Outcome:
        """Send exchanges until the last interval has ended."""
        sampling = self._sampling()
        for tick in range(round(minutes * 60 / TICK)):
            self._come(tick * TICK, round(rate * TICK / 60 * (tick + 1)) - self.outcome.came)
            await self._settle(sampling)
        self.seconds = minutes * 60.0 + TICK
        await self._settle(sampling)
        return self._found()

    def _come(self, start: float, count: int) -> None:
        """Do the work that the tracer does on the calling thread."""
        for place in range(count):
            self.seconds = start + TICK * place / count
            number, self.outcome.came = self.outcome.came, self.outcome.came + 1
            draw, started = sampling_key_for(f"{number + 1:032x}"), round((BEGIN.timestamp() + self.seconds) * 1e9)
            probability = self.writer.admit("benchmark", "returns", started, draw)
            if probability is not None:
                assert self.writer.put(
                    make(number, started_at=self.now(), sampling_key=draw, capture_probability=probability)
                )

    async def _settle(self, sampling: Sampler) -> None:
        assert await asyncio.to_thread(self.writer.flush, 60)
        await sampling.run()
        names = {self.scorer.name: self.scorer.fingerprint}
        while claims := self.store.queue.claim_tasks(OWNER, names, limit=BATCH, lease=timedelta(minutes=1)):
            grant = self.store.quota.reserve_budget(BUDGET, [RequestUsage(requests=1)] * len(claims))
            assert all(grant.granted)
            self.outcome.calls += len(claims)
            scores = [(claim.tasks[0], await self._score(claim.exchange)) for claim in claims]
            self.store.queue.complete_tasks(OWNER, scores)

    async def _score(self, exchange: Exchange) -> Score:
        value = await self.scorer.score(exchange)
        return Score(scorer=self.scorer.name, fingerprint=self.scorer.fingerprint, value=value, scored_at=self.now())

    def _sampling(self) -> Sampler:
        settings = load_settings(budget=BUDGET)
        holder = ("sampler", OWNER)
        pool = CandidatePool(
            self.store,
            budget=BUDGET,
            sample_rate=settings.sample_rate,
            default_cost=ExchangeCost(1, 0, 0),
            lease_holder=holder,
        )
        return Sampler(
            self.store, [self.scorer], sample_rate=None, eligibility=EligibilityChecker([self.scorer]), pool=pool,
            leader=LeaderLease(self.store, "sampler", OWNER, ttl=timedelta(minutes=1), clock=self.now),
            thread_pool=self.threads, attach=lambda *_: None, clock=self.now,
        )  # fmt: skip

    def _found(self) -> Outcome:
        with transaction(self.store, read_only=True) as connection:
            for name in ("exchange", "scoring_task", "score", "tally"):
                self.outcome.rows[name] = connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()
            weights = "SELECT sum(1 / capture_probability) FROM exchange"
            self.outcome.weighted = connection.exec_driver_sql(weights).scalar_one()
        self.outcome.counted = sum(each.seen for each in self.store.trends.coverage())
        return self.outcome

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


def measure_stream(folder: Path, minutes: int, rates: Sequence[int] = RATES, *, calls: int = CALLS) -> bool:
    """Run the streams, print their outcomes, and return whether the goals are met."""
    print(f"stream      {minutes} minutes, exchange limit {LIMIT:,}, budget {BUDGET.requests_per_hour:,} requests/h")
    print(" per minute        sent    stored   tasks  scores  tally rows     requests  sum of 1/p  CPU s")
    found = []
    for rate in rates:
        began = time.process_time()
        with closing(Stream(f"sqlite:///{folder}/stream-{rate}.db")) as stream:
            one = asyncio.run(stream.run(rate, minutes))
        rows_ = "  ".join(
            f"{one.rows[name]:{wide},}"
            for name, wide in (("exchange", 8), ("scoring_task", 6), ("score", 6), ("tally", 10))
        )
        print(
            f"{rate:11,}  {one.came:10,}  {rows_}  {one.calls:11,}  {one.weighted:10,.0f}  "
            f"{time.process_time() - began:5.0f}"
        )
        found.append(one)
    print(f"            beyond the limit: {beyond(folder, calls):,.0f} ns of CPU time each on the calling thread")
    stored, judged = [one.rows["exchange"] for one in found], [one.calls for one in found]
    apart = max(max(counts) / max(min(counts), 1) for counts in (stored, judged))
    print(f"            max/min of rows and requests {apart:.3f}  goal {MAX_RATIO}")
    return apart <= MAX_RATIO and all(one.counted == one.came for one in found)


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
    met = []
    with tempfile.TemporaryDirectory() as name:
        if "writer" in options.parts:
            urls = [f"sqlite:///{name}/writer.db", *([options.postgresql] if options.postgresql else [])]
            met += [measure_writer(url, options.exchanges, options.rounds) for url in urls]
        if "memory" in options.parts:
            met.append(measure_memory(Path(name), options.million))
        if "stream" in options.parts:
            met.append(measure_stream(Path(name), options.minutes))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
