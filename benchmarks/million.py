"""Commands on one million exchanges: python benchmarks/million.py [--exchanges N] [--keep PATH].

The benchmark fills an SQLite file with sixty days of exchanges and two scorers (benchmarks/history.py), computes the
rollups, and runs each command in a separate process, with warm operating-system caches. The table shows the seconds,
including the start of Python, the CPU time, the rows per second, and the peak memory. Depending on the command, a row
is a line of an export, an erased text, a deleted exchange or score, or a queued task. Commands that change the file
work on a copy. Goals: report, worst and trend within 1.5 s; prune, forget and export at 20,000 rows per second.
The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import Process
from pathlib import Path

from common import database, fill_once
from history import FAILED, SCORERS, History, last_hour
from sqlalchemy import update

from germane.storage import TrackingStore
from germane.storage.db.tables import exchange
from germane.testing import transaction

DAYS = 60
SECONDS_GOAL, RATE_GOAL = 1.5, 20_000


@dataclass(frozen=True)
class Command:
    """A command with its goal."""

    name: str
    arguments: str
    rows: Callable[[str, Path], int] | None = None
    """Function that returns the number of rows, given the output and the exported file."""
    changes: bool = False
    seconds: float | None = None
    rate: float | None = None


def counted(output: str, _file: Path) -> int:
    """Return the sum of the counts that a command prints as JSON."""
    content = json.loads(output)
    return sum((content.get("removed") or content["outcome"]).values())


def lines(_output: str, file: Path) -> int:
    """Return the number of exported lines."""
    with file.open("rb") as content:
        return sum(block.count(b"\n") for block in iter(lambda: content.read(1 << 20), b""))


COMMANDS = (
    *(
        Command(f"{verb}, {window}", f"{verb} --since {window} --json", seconds=SECONDS_GOAL)
        for verb, windows in (("report", ("24h", "60d")), ("worst", ("24h", "60d")), ("trend", ("7d", "60d")))
        for window in windows
    ),
    Command("doctor", "doctor --offline --json"),
    Command("export to JSONL", "export {file} --format jsonl", rows=lines, rate=RATE_GOAL),
    Command("export to CSV", "export {file} --format csv", rows=lines, rate=RATE_GOAL),
    Command(
        "prune: 70% of texts, 15% of exchanges", "prune --text-older-than {texts} --older-than {exchanges} --json",
        counted, changes=True, rate=RATE_GOAL,
    ),
    Command("forget a user", "forget --user u77 --yes --json", counted, changes=True),
    Command("forget a tenant", "forget --attribute tenant=south --yes --json", counted, changes=True, rate=RATE_GOAL),
    Command(
        "rescore, 60 d", f"rescore --since 60d --scorer {SCORERS[0]} --below 0.8 --limit 100000 --yes --json", counted,
        changes=True,
    ),
)  # fmt: skip


def run(command: Command, url: str, folder: Path) -> tuple[str, bool]:
    """Run a command as a process. Return the line of the table, and whether the goal was met."""
    ages = {
        name: datetime.now(UTC) - timedelta(days=DAYS * share) for name, share in (("texts", 0.28), ("exchanges", 0.87))
    }
    file = folder / "export"
    words = [
        word.format(file=file, **{name: at.isoformat() for name, at in ages.items()})
        for word in command.arguments.split()
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OTEL_"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise, Python compiles for a third of its startup
    environment |= {"OPENAI_API_KEY": "unused", "OPENAI_BASE_URL": "http://127.0.0.1:9", "OPENAI_MODEL": "none"}
    environment |= {"GERMANE_EMBEDDER": "none"}
    arguments = [sys.executable, "-m", "germane", *words, "--database", url]
    with (folder / "out").open("w+") as output, (folder / "errors").open("w+") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=output, stderr=errors, env=environment, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in {0, 4}:
            raise RuntimeError(f"{command.name}: {(folder / 'errors').read_text()}")
    rows = command.rows((folder / "out").read_text(), file) if command.rows else 0
    met = not (command.seconds and seconds > command.seconds) and not (command.rate and rows / seconds < command.rate)
    counts = f"{rows:>11,}{rows / seconds:>11,.0f}" if command.rows else " " * 22
    times = f"{seconds:>9.2f}{usage.ru_utime + usage.ru_stime:>9.2f}"
    return f"{command.name:<40}{times}{counts}{usage.ru_maxrss / 1024:>8.0f}{'' if met else '  MISSED'}", met


def fill(url: str, history: History, mark: Path) -> None:
    """Fill a database unless it is already filled, and move some exchanges to another tenant, for ``forget``."""
    if mark.exists():
        return
    fill_once(url, history, mark)
    is_south = (exchange.c.model == "large-1", exchange.c.route.in_(["route-2", "route-3"]))
    with closing(TrackingStore(url)) as store, transaction(store) as connection:
        connection.execute(update(exchange).where(*is_south).values(attributes={"tenant": "south"}))


@contextmanager
def copied(url: str, folder: Path, *, changes: bool) -> Iterator[str]:
    """Yield the URL of a copy for a command that changes the file."""
    if not changes:
        yield url
        return
    yield f"sqlite:///{shutil.copy(url.removeprefix('sqlite:///'), folder / 'copy.db')}"
    for file in folder.glob("copy.db*"):
        file.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--exchanges", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="run only commands whose name contains this text")
    parser.add_argument("--keep", type=Path, help="keep the database in this folder for later runs")
    given = parser.parse_args(arguments)
    history = History(given.exchanges * len(SCORERS) * (FAILED - 1) // FAILED, DAYS, last_hour())
    met = []
    with tempfile.TemporaryDirectory(prefix="germane-million-") as temporary:
        place = (given.keep or Path(temporary)).absolute() / f"million-{given.exchanges}"
        with database("sqlite", place) as url:
            # Runs in a separate process, because a child's peak memory includes its parent's memory at its start.
            filling = Process(target=fill, args=(url, history, place.with_suffix(".until")))
            filling.start()
            filling.join()
            if filling.exitcode:
                return 1
            print(f"{'':<40}{'s':>9}{'CPU s':>9}{'rows':>11}{'rows/s':>11}{'MB':>8}")
            for command in COMMANDS:
                if given.only in command.name:
                    with copied(url, Path(temporary), changes=command.changes) as target:
                        text, is_met = run(command, target, Path(temporary))
                    print(text, flush=True)
                    met.append(is_met)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
