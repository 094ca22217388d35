"""Commands on one million exchanges: python benchmarks/million.py [--exchanges N] [--database sqlite] [--keep PATH].

The benchmark fills a database with sixty days of exchanges and two scorers (benchmarks/history.py), computes the
rollups, and runs each command in a separate process, with warm operating-system caches. The table shows the seconds,
including the start of Python, the CPU time, the rows per second, and the peak memory. Depending on the command, a row
is a line of an export, an erased text, a deleted exchange or score, or a queued task. Commands that change an SQLite
file work on a copy. With --concurrent, another thread captures 200 exchanges per second at the same time, and
the table also shows the duration of its slowest batch. Goals: report, worst and trend within 1.5 s; prune, forget and
export at 20,000 rows per second. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import Process
from pathlib import Path
from uuid import uuid4

from history import FAILED, SCORERS, History, last_hour
from queries import SERVERS, made
from sqlalchemy import update

from germane.exchange import Exchange
from germane.storage import TrackingStore
from germane.storage.db.tables import exchange
from germane.testing import transaction

DAYS = 60
SECONDS_GOAL, RATE_GOAL = 1.5, 20_000
CONCURRENT_RATE, CONCURRENT_BATCH = 200, 20
"""Exchanges per second, and per transaction, of the concurrent thread."""


@dataclass(frozen=True)
class Command:
    """A command with its goal."""

    name: str
    arguments: Sequence[str]
    changes: bool = False
    rows: Callable[[str, Path], int] | None = None
    """Function that returns the number of rows, given the output and the exported file."""
    seconds: float | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Measured:
    """Resource usage of one run."""

    seconds: float
    cpu: float
    megabytes: float
    rows: int
    slowest: float
    """Duration of the slowest concurrent transaction in seconds; 0 if there is none."""


def counted(output: str, _file: Path) -> int:
    """Return the sum of the counts that a command prints as JSON."""
    content = json.loads(output)
    counts = content.get("removed") or content["outcome"]
    return sum(counts.values())


def lines(_output: str, file: Path) -> int:
    """Return the number of exported lines."""
    with file.open("rb") as content:
        return sum(block.count(b"\n") for block in iter(lambda: content.read(1 << 20), b""))


COMMANDS = (
    Command("report, 24 h", ("report", "--json"), seconds=SECONDS_GOAL),
    Command("report, 60 d", ("report", "--since", "60d", "--json"), seconds=SECONDS_GOAL),
    Command("worst, 24 h", ("worst", "--json"), seconds=SECONDS_GOAL),
    Command("worst, 60 d", ("worst", "--since", "60d", "--json"), seconds=SECONDS_GOAL),
    Command("trend, 7 d", ("trend", "--json"), seconds=SECONDS_GOAL),
    Command("trend, 60 d", ("trend", "--since", "60d", "--json"), seconds=SECONDS_GOAL),
    Command("doctor", ("doctor", "--offline", "--json")),
    Command("export to JSONL", ("export", "{file}", "--format", "jsonl"), rows=lines, rate=RATE_GOAL),
    Command("export to CSV", ("export", "{file}", "--format", "csv"), rows=lines, rate=RATE_GOAL),
    Command(
        "prune: 70% of texts, 15% of exchanges",
        ("prune", "--text-older-than", "{texts}", "--older-than", "{exchanges}", "--json"),
        changes=True,
        rows=counted,
        rate=RATE_GOAL,
    ),
    Command("forget a user", ("forget", "--user", "u77", "--yes", "--json"), changes=True, rows=counted),
    Command(
        "forget a tenant",
        ("forget", "--attribute", "tenant=south", "--yes", "--json"),
        changes=True,
        rows=counted,
        rate=RATE_GOAL,
    ),
    Command(
        "rescore, 60 d",
        ("rescore", "--since", "60d", "--scorer", SCORERS[0], "--below", "0.8", "--limit", "100000", "--yes", "--json"),
        changes=True,
        rows=counted,
    ),
)


def run(command: Command, url: str, *, concurrent: bool) -> Measured:
    """Run a command as a process."""
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export"
        fields = {
            "file": str(file),
            "texts": f"{(now - timedelta(days=DAYS * 0.28)).isoformat()}",
            "exchanges": f"{(now - timedelta(days=DAYS * 0.87)).isoformat()}",
        }
        words = [argument.format(**fields) for argument in command.arguments]
        arguments = [sys.executable, "-m", "germane", *words, "--database", url]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OTEL_"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise, Python compiles for a third of its startup
        environment |= {"OPENAI_API_KEY": "unused", "OPENAI_BASE_URL": "http://127.0.0.1:9", "OPENAI_MODEL": "none"}
        environment |= {"GERMANE_EMBEDDER": "none"}
        with capturing(url, active=concurrent) as slowest, (Path(folder) / "out").open("w+") as output:
            began = time.perf_counter()
            process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.PIPE, env=environment, cwd=folder)
            assert process.stderr is not None
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read()
        if process.returncode not in {0, 4}:
            raise RuntimeError(f"{command.name}: {errors.decode()}")
        rows = command.rows(text, file) if command.rows else 0
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, rows, slowest())


@contextmanager
def capturing(url: str, *, active: bool) -> Iterator[Callable[[], float]]:
    """Write exchanges at a constant rate, and yield a function that returns the longest transaction time in seconds."""
    took, stopped = [0.0], threading.Event()

    def write() -> None:
        with closing(TrackingStore(url)) as store:
            while not stopped.wait(CONCURRENT_BATCH / CONCURRENT_RATE):
                batch = [_exchange() for _ in range(CONCURRENT_BATCH)]
                began = time.perf_counter()
                store.exchanges.add(batch)
                took.append(time.perf_counter() - began)

    thread = threading.Thread(target=write)
    if active:
        thread.start()
    try:
        yield lambda: max(took)
    finally:
        stopped.set()
        if active:
            thread.join()


def _exchange() -> Exchange:
    names = {"trace_id": uuid4().hex, "span_id": uuid4().hex[:16], "service": "shop", "route": "route-1"}
    return Exchange(id=uuid4().hex, **names, question="Why?", answer="Because.", started_at=datetime.now(UTC))


def line(command: Command, measured: Measured) -> tuple[str, bool]:
    """Return the line of the table, and whether the goal was met."""
    rate = measured.rows / measured.seconds
    met = not (command.seconds and measured.seconds > command.seconds) and not (command.rate and rate < command.rate)
    counts = f"{measured.rows:>11,}{rate:>11,.0f}" if command.rows else " " * 22
    slowest = f"{measured.slowest:>8.2f}" if measured.slowest else ""
    times = f"{measured.seconds:>9.2f}{measured.cpu:>9.2f}"
    return f"{command.name:<36}{times}{counts}{measured.megabytes:>8.0f}{slowest}{'' if met else '  MISSED'}", met


def fill(url: str, history: History, mark: Path) -> None:
    """Fill a database unless it is already filled, and move some exchanges to another tenant, for ``forget``."""
    if mark.exists():
        return
    made(url, history, mark)
    is_south = (exchange.c.model == "large-1", exchange.c.route.in_(["route-2", "route-3"]))
    with closing(TrackingStore(url)) as store, transaction(store) as connection:
        connection.execute(update(exchange).where(*is_south).values(attributes={"tenant": "south"}))


def main() -> int:
    """Run the benchmark; return 1 if a goal is missed."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--exchanges", type=int, default=1_000_000)
    parser.add_argument("--database", choices=tuple(SERVERS), default="sqlite")
    parser.add_argument("--only", default="", help="run only commands whose name contains this text")
    parser.add_argument("--concurrent", action="store_true", help="capture 200 exchanges per second at the same time")
    parser.add_argument("--keep", type=Path, help="keep the database in this folder for later runs")
    given = parser.parse_args()
    history = History(given.exchanges * len(SCORERS) * (FAILED - 1) // FAILED, DAYS, last_hour())
    met = []
    with tempfile.TemporaryDirectory(prefix="germane-million-") as temporary:
        folder = (given.keep or Path(temporary)).absolute()
        place = folder / f"{given.database}-{given.exchanges}"
        place.mkdir(parents=True, exist_ok=True)
        with SERVERS[given.database](place) as url:
            mark = folder / f"{place.name}.until"
            # Runs in a separate process, because a child's peak memory includes its parent's memory at its start.
            filling = Process(target=fill, args=(url, history, mark))
            filling.start()
            filling.join()
            if filling.exitcode:
                return 1
            print(f"{'':<36}{'s':>9}{'CPU s':>9}{'rows':>11}{'rows/s':>11}{'MB':>8}{'  concurrent' * given.concurrent}")
            for command in COMMANDS:
                if given.only not in command.name:
                    continue
                with copied(url, Path(temporary), changes=command.changes) as target:
                    text, is_met = line(command, run(command, target, concurrent=given.concurrent))
                print(text, flush=True)
                met.append(is_met)
    return 0 if all(met) else 1


@contextmanager
def copied(url: str, folder: Path, *, changes: bool) -> Iterator[str]:
    """Yield the URL of a copy of an SQLite file for a command that changes it."""
    if not changes or not url.startswith("sqlite"):
        yield url
        return
    copy = folder / "copy.db"
    shutil.copy(url.removeprefix("sqlite:///"), copy)
    yield f"sqlite:///{copy}"
    for file in folder.glob("copy.db*"):
        file.unlink()


if __name__ == "__main__":
    sys.exit(main())
