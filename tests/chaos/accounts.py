"""What a database holds, added up: rows against the tally, and both against what was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from germane.storage.db.engine import Database
from germane.storage.db.tables import exchange, score, scoring_task, tally

Cell = tuple[datetime, str, str, str, str, str]
"""Minute, service, route, scorer, outcome, reason."""
CLOSED = {"done", "skipped", "failed"}


class Work(NamedTuple):
    """One task with what its exchange says of it."""

    exchange_id: str
    answer: str | None
    started_at: datetime
    service: str
    route: str
    scorer: str
    fingerprint: str
    state: str
    reason: str | None
    error: str | None
    attempts: int

    @property
    def names(self) -> tuple[datetime, str, str, str]:
        """The cell that it is counted in."""
        return (self.started_at.replace(second=0, microsecond=0), self.service, self.route, self.scorer)

    @property
    def outcome(self) -> tuple[str, str]:
        """How it is counted."""
        state = {"done": "scored", "running": "pending"}.get(self.state, self.state)
        return state, self.reason or "" if state in {"skipped", "failed"} else ""


@contextmanager
def reading(url: str) -> Iterator[Connection]:
    """Read from a database in one transaction."""
    with closing(Database(url)) as database, database.read() as connection:
        yield connection


def held_by(url: str, pid: int) -> tuple[str, ...]:
    """Return the answers whose tasks a process has claimed and not finished."""
    owner = scoring_task.c.lease_owner
    query = select(exchange.c.answer).join(scoring_task, scoring_task.c.exchange_id == exchange.c.id)
    with reading(url) as connection:
        found = connection.execute(query.where(owner.contains(f"-{pid}-", autoescape=True)))
        return tuple(found.scalars())


def tally_of(connection: Connection) -> Counter[Cell]:
    """Return the counts of all processes together."""
    columns = (tally.c.minute, tally.c.service, tally.c.route, tally.c.scorer, tally.c.outcome, tally.c.reason)
    query = select(*columns, func.sum(tally.c.count)).where(tally.c.scorer != "").group_by(*columns)
    return Counter({tuple(row[:-1]): int(row[-1]) for row in connection.execute(query) if row[-1]})


def unbalanced(counts: Counter[Cell]) -> list[str]:
    """Return the cells in which seen is not scored + skipped + failed + pending, or something is below nothing."""
    seen, parts = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for (*names, outcome, _), count in counts.items():
        (seen if outcome == "seen" else parts)[tuple(names)] += count
    wrong = [
        f"{names}: seen {seen[names]}, parts {parts[names]}" for names in seen | parts if seen[names] != parts[names]
    ]
    return wrong + [f"{cell}: {count}" for cell, count in counts.items() if count < 0]


def unbalanced_now(url: str) -> list[str]:
    """Return the same for a database that is being written to: one query sees one moment."""
    with reading(url) as connection:
        return unbalanced(tally_of(connection))


def works_of(connection: Connection) -> list[Work]:
    """Return all tasks."""
    columns = [(exchange if name in _OF_EXCHANGE else scoring_task).c[name] for name in Work._fields]
    query = select(*columns).join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    return [Work(*row) for row in connection.execute(query)]


_OF_EXCHANGE = {"answer", "started_at", "service", "route"}


class Accounts:
    """All that a drained database holds."""

    def __init__(self, url: str) -> None:
        with reading(url) as connection:
            self.works = works_of(connection)
            self.tally = tally_of(connection)
            self.exchanges = set(connection.execute(select(exchange.c.id)).scalars())
            keys = select(score.c.exchange_id, score.c.scorer)
            self.scores = Counter(tuple(row) for row in connection.execute(keys))

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """How many tasks ended how, and why."""
        return Counter(work.outcome for work in self.works)

    def faults(self, committed: set[str]) -> list[str]:
        """Return in what it breaks a promise: nothing, if all is well."""
        return [*self._lost(committed), *self._open(), *self._twice(), *unbalanced(self.tally), *self._miscounted()]

    def _lost(self, committed: set[str]) -> Iterator[str]:
        yield from (f"lost: exchange {id_}" for id_ in committed - self.exchanges)
        yield from (f"never decided on: {id_}" for id_ in self.exchanges - {work.exchange_id for work in self.works})

    def _open(self) -> Iterator[str]:
        for work in self.works:
            if work.state not in CLOSED:
                yield f"left open: {work}"
            elif work.state != "done" and not work.reason:
                yield f"without a reason: {work}"

    def _twice(self) -> Iterator[str]:
        yield from (f"scored {count} times: {key}" for key, count in self.scores.items() if count > 1)
        done = Counter((work.exchange_id, work.scorer) for work in self.works if work.state == "done")
        yield from (f"done and without its score: {key}" for key in done - self.scores)
        yield from (f"a score without its task: {key}" for key in self.scores - done)

    def _miscounted(self) -> Iterator[str]:
        counted = Counter[Cell]()
        for work in self.works:
            counted[(*work.names, "seen", "")] += 1
            counted[(*work.names, *work.outcome)] += 1
        for cell in sorted(counted.keys() | self.tally.keys()):
            if counted[cell] != self.tally[cell]:
                yield f"{cell}: {counted[cell]} rows, {self.tally[cell]} in the tally"
