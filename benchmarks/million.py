"""Commands on one million exchanges: python benchmarks/million.py [--exchanges N] [--database KIND] [--keep PATH].

The benchmark fills SQLite and PostgreSQL with sixty days of exchanges and two scorers (benchmarks/history.py), computes
the rollups, and runs each command in a separate process, with warm operating-system caches. The table shows the
seconds, including the start of Python, the CPU time, including that of PostgreSQL's server, the rows per second, and
the peak memory of the command. The last columns show the seconds and the CPU time of bare SQL statements that do about
the same work, which are the limit. Depending on the command, a row is a line of an export, an imported exchange, task
or score, an erased text, a deleted exchange or score, or a queued task. Commands that change the database work on a
copy. Goals: report, worst and trend within 1.5 s; prune, forget, export and import at 20,000 rows per second in at most
120 MB. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from common import KINDS, cpu_seconds, database, fill_once
from history import FAILED, SCORERS, History, last_hour
from sqlalchemy import make_url, update

from germane.storage import TrackingStore
from germane.storage.db.tables import exchange, score, scoring_task
from germane.testing import transaction

DAYS = 60
SECONDS_GOAL, RATE_GOAL, MEMORY_GOAL = 1.5, 20_000, 120


@dataclass(frozen=True)
class Command:
    """A command with its goal, and the bare SQL statements that do about the same work."""

    name: str
    arguments: str
    rows: Callable[[str, Path], int] | None = None
    """Function that returns the number of rows, given the output and the exported file."""
    source: str = "history"
    """The database on which the command works: ``history``, a ``copy`` of it, or an ``empty`` one."""
    seconds: float | None = None
    rate: float | None = None
    bare: tuple[str, ...] = ()


def counted(output: str, _file: Path) -> int:
    """Return the sum of the counts that a command prints as JSON."""
    content = json.loads(output)
    return sum((content.get("removed") or content["outcome"]).values())


def occurrences(file: Path, *texts: bytes) -> int:
    """Return how often the texts occur in an exported file, line by line."""
    with file.open("rb") as content:
        return sum(line.count(text) for line in content for text in texts)


def lines(_output: str, file: Path) -> int:
    """Return the number of exported lines."""
    return occurrences(file, b"\n")


def imported(_output: str, file: Path) -> int:
    """Return the number of exchanges, tasks and scores in an export."""
    return occurrences(file, b"\n", b'"scorer":')


OBJECTS = {
    "sqlite": {
        table.name: "json_object({})".format(
            ", ".join(f"'{column.name}', \"{column.name}\"" for column in table.columns)
        )
        for table in (exchange, scoring_task, score)
    },
    "postgresql": {table.name: f"to_json({table.name})" for table in (exchange, scoring_task, score)},
}
"""The expression for a row as JSON."""
LISTS = {"sqlite": "json_group_array", "postgresql": "json_agg"}
COPY_STATUS = "import atexit, runpy, shutil; atexit.register(shutil.copy, '/proc/self/status', 'status')"
GERMANE = f"{COPY_STATUS}; runpy.run_module('germane', run_name='__main__', alter_sys=True)"
"""Runs the command line, and keeps the peak memory. The operating system's figure includes that of this process."""
AS_JSON = """
SELECT {exchange}, (SELECT {list}({scoring_task}) FROM scoring_task WHERE exchange_id = exchange.id),
    (SELECT {list}({score}) FROM score WHERE exchange_id = exchange.id)
FROM exchange ORDER BY started_at
"""
ERASE = """
UPDATE exchange SET question = NULL, answer = NULL, contexts = '[]', history = '[]', erased_at = started_at
WHERE started_at >= '{exchanges}' AND started_at < '{texts}'
"""
PRUNE = (
    ERASE,
    "UPDATE score SET explanation = NULL WHERE started_at >= '{exchanges}' AND started_at < '{texts}'",
    *(f"DELETE FROM {table} WHERE started_at < '{{exchanges}}'" for table in ("exchange", "score")),
    "DELETE FROM scoring_task WHERE first_pending_at < '{exchanges}'",
)
OF_SOUTH = "(SELECT id FROM exchange WHERE attributes ->> 'tenant' = 'south')"
FORGET = (
    f"DELETE FROM score WHERE exchange_id IN {OF_SOUTH}",
    f"DELETE FROM scoring_task WHERE exchange_id IN {OF_SOUTH}",
    f"DELETE FROM exchange WHERE id IN {OF_SOUTH}",
)
RESCORE = f"""
UPDATE scoring_task SET state = 'pending', due_at = first_pending_at, scored_as = fingerprint
WHERE scorer = '{SCORERS[0]}' AND exchange_id IN (
    SELECT exchange_id FROM score WHERE scorer = '{SCORERS[0]}' AND value < 0.8 ORDER BY started_at DESC LIMIT 100000)
"""
COMMANDS = (
    *(
        Command(f"{verb}, {window}", f"{verb} --since {window} --json", seconds=SECONDS_GOAL)
        for verb, windows in (("report", ("24h", "60d")), ("worst", ("24h", "60d")), ("trend", ("7d", "60d")))
        for window in windows
    ),
    Command("doctor", "doctor --offline --json"),
    Command("export to JSONL", "export {jsonl}", rows=lines, rate=RATE_GOAL, bare=(AS_JSON,)),
    Command(
        "export to CSV", "export {csv}", rows=lines, rate=RATE_GOAL, bare=("SELECT * FROM answers ORDER BY started_at",)
    ),
    Command("import from JSONL", "import {jsonl}", imported, "empty", rate=RATE_GOAL, bare=("IMPORT",)),
    Command(
        "prune: 70% of texts, 15% of exchanges", "prune --text-older-than {texts} --older-than {exchanges} --json",
        counted, "copy", rate=RATE_GOAL, bare=PRUNE,
    ),
    Command("forget a user", "forget --user u77 --yes --json", counted, "copy"),
    Command(
        "forget a tenant", "forget --attribute tenant=south --yes --json", counted, "copy", rate=RATE_GOAL, bare=FORGET
    ),
    Command(
        "rescore, 60 d", f"rescore --since 60d --scorer {SCORERS[0]} --below 0.8 --limit 100000 --yes --json", counted,
        "copy", bare=(RESCORE,),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A filled database."""

    kind: str
    url: str
    folder: Path
    place: Path

    def ages(self) -> dict[str, str]:
        """Return the times before which ``prune`` erases texts and deletes exchanges."""
        shares = {"texts": 0.28, "exchanges": 0.87}
        return {name: (datetime.now(UTC) - timedelta(days=DAYS * share)).isoformat() for name, share in shares.items()}

    def server_seconds(self) -> float:
        """Return the CPU time of all processes of PostgreSQL's server so far."""
        if self.kind == "sqlite":
            return 0.0
        pid = int((self.place / "postmaster.pid").read_text().split()[0])
        while True:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
            with suppress(FileNotFoundError, ProcessLookupError):  # a process has ended since
                return cpu_seconds([pid, *map(int, children)]) + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def target(self, source: str) -> Iterator[str]:
        """Yield the URL of the database on which a command works."""
        if source == "history":
            yield self.url
            return
        if self.kind == "sqlite":
            file = self.folder / "target.db"
            if source == "copy":
                shutil.copy(make_url(self.url).database or "", file)
            url = f"sqlite:///{file}"
        else:
            url = make_url(self.url).set(database="target").render_as_string(hide_password=False)
            self._administer(f"CREATE DATABASE target TEMPLATE {'history' if source == 'copy' else 'template0'}")
        if source == "empty":
            with closing(TrackingStore(url)) as store:
                store.migrate()
        yield url
        if self.kind == "postgresql":
            self._administer("DROP DATABASE target WITH (FORCE)")
        for file in self.folder.glob("target.db*"):
            file.unlink()

    def _administer(self, statement: str) -> None:
        administration = make_url(self.url).set(database="postgres").render_as_string(hide_password=False)
        with psycopg.connect(administration, autocommit=True) as connection:
            connection.execute(statement.encode())


def run(command: Command, source: Source, url: str) -> tuple[str, bool]:
    """Run a command as a process. Return the start of its line in the table, and whether the goal was met."""
    files = {"jsonl": source.folder / "export.jsonl", "csv": source.folder / "export.csv"}
    words = [word.format(**files, **source.ages()) for word in command.arguments.split()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OTEL_"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise, Python compiles for a third of its startup
    environment |= {"OPENAI_API_KEY": "unused", "OPENAI_BASE_URL": "http://127.0.0.1:9", "OPENAI_MODEL": "none"}
    environment |= {"GERMANE_EMBEDDER": "none"}
    arguments = [sys.executable, "-c", GERMANE, *words, "--database", url]
    out, error = source.folder / "out", source.folder / "errors"
    with out.open("w") as output, error.open("w") as errors:
        began, server = time.perf_counter(), source.server_seconds()
        process = subprocess.Popen(arguments, stdout=output, stderr=errors, env=environment, cwd=source.folder)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in {0, 4}:
            raise RuntimeError(f"{command.name}: {error.read_text()}")
    cpu = usage.ru_utime + usage.ru_stime + source.server_seconds() - server
    rows = command.rows(out.read_text(), files["csv" if "csv" in command.arguments else "jsonl"]) if command.rows else 0
    peak = source.folder / "status"
    megabytes = int(peak.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    peak.unlink()
    met = not (command.seconds and seconds > command.seconds)
    if command.rate:
        met = rows / seconds >= command.rate and megabytes <= MEMORY_GOAL
    counts = f"{rows:>11,}{rows / seconds:>11,.0f}" if command.rows else " " * 22
    return f"{command.name:<40}{seconds:>9.2f}{cpu:>9.2f}{counts}{megabytes:>8.0f}", met


def run_bare(command: Command, source: Source, url: str) -> str:
    """Run the bare SQL statements of a command, and return the end of its line in the table."""
    began, cpu = time.perf_counter(), time.process_time() + source.server_seconds()
    copied = [exchange.name, scoring_task.name, score.name] if command.bare == ("IMPORT",) else []
    texts = {**OBJECTS[source.kind], "list": LISTS[source.kind], **source.ages()}
    statements = [] if copied else [text.format(**texts) for text in command.bare]
    if source.kind == "sqlite":
        statements += [f"ATTACH '{make_url(source.url).database}' AS history"] if copied else []
        statements += [f"INSERT INTO {table} SELECT * FROM history.{table}" for table in copied]
        with closing(sqlite3.connect(make_url(url).database or "", isolation_level=None)) as database:
            for statement in statements:
                for _ in database.execute(statement):
                    pass
    else:
        with psycopg.connect(url) as target, psycopg.connect(source.url) as history:
            for statement in statements:
                if "SELECT" in statement[:10]:
                    with target.cursor().copy(f"COPY ({statement}) TO STDOUT".encode()) as rows:
                        for _ in rows:
                            pass
                else:
                    target.execute(statement.encode())
            for table in copied:
                names = (f"COPY {table} TO STDOUT (FORMAT binary)", f"COPY {table} FROM STDIN (FORMAT binary)")
                with history.cursor().copy(names[0].encode()) as rows, target.cursor().copy(names[1].encode()) as copy:
                    for block in rows:
                        copy.write(block)
    cpu = time.process_time() + source.server_seconds() - cpu
    return f"{time.perf_counter() - began:>9.2f}{cpu:>9.2f}"


def fill(url: str, history: History, mark: Path) -> None:
    """Fill a database unless it is already filled, and move some exchanges to another tenant, for ``forget``."""
    if mark.exists():
        return
    fill_once(url, history, mark)
    is_south = (exchange.c.model == "large-1", exchange.c.route.in_(["route-2", "route-3"]))
    with closing(TrackingStore(url)) as store, transaction(store) as connection:
        connection.execute(update(exchange).where(*is_south).values(attributes={"tenant": "south"}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--exchanges", type=int, default=1_000_000)
    parser.add_argument("--database", choices=KINDS, default="both")
    parser.add_argument("--only", default="", help="run only commands whose name contains this text")
    parser.add_argument("--keep", type=Path, help="keep the databases in this folder for later runs")
    given = parser.parse_args(arguments)
    history = History(given.exchanges * len(SCORERS) * (FAILED - 1) // FAILED, DAYS, last_hour())
    met = []
    for kind in KINDS[given.database]:
        with tempfile.TemporaryDirectory(prefix="germane-million-") as temporary:
            place = (given.keep or Path(temporary)).absolute() / f"million-{kind}-{given.exchanges}"
            with database(kind, place) as url:
                fill(url, history, place.with_suffix(".until"))
                print(f"{kind:<40}{'s':>9}{'CPU s':>9}{'rows':>11}{'rows/s':>11}{'MB':>8}{'SQL s':>9}{'CPU s':>9}")
                met += measure(Source(kind, url, Path(temporary), place), given.only)
    return 0 if all(met) else 1


def measure(source: Source, only: str) -> list[bool]:
    """Run the commands whose name contains a text. Return for each whether it met its goals."""
    export = next(command for command in COMMANDS if command.name == "export to JSONL")
    met = []
    for command in COMMANDS:
        if only in command.name:
            if command.source == "empty" and not (source.folder / "export.jsonl").exists():
                run(export, source, source.url)
            with source.target(command.source) as target:
                text, is_met = run(command, source, target)
            if command.bare:
                with source.target(command.source) as target:
                    text += run_bare(command, source, target)
            print(f"{text}{'' if is_met else '  MISSED'}", flush=True)
            met.append(is_met)
    return met


if __name__ == "__main__":
    sys.exit(main())
