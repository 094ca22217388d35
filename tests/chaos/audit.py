"""An audit of a database, which checks the rows against the tally, and the rows and tally against the guarantees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from germane.storage.db.engine import Database
from germane.storage.db.tables import exchange, score, scoring_task, tally

TallyKey = tuple[datetime, str, str, str, str, str]
"""Minute, service, route, scorer, outcome, reason."""
FINAL_STATES = {"done", "skipped", "failed"}
_EXCHANGE_COLUMNS = {"answer", "started_at", "service", "route"}


class TaskRow(NamedTuple):
    """One scoring task, with columns of its exchange."""

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
    claims: int

    @property
    def tally_labels(self) -> tuple[datetime, str, str, str]:
        """The first part of the task's tally key."""
        return (self.started_at.replace(second=0, microsecond=0), self.service, self.route, self.scorer)

    @property
    def outcome(self) -> tuple[str, str]:
        """The task's outcome and reason in the tally."""
        state = {"done": "scored", "running": "pending"}.get(self.state, self.state)
        return state, self.reason or "" if state in {"skipped", "failed"} else ""


class DatabaseAudit:
    """All tasks, scores and counts of a drained database."""

    def __init__(self, url: str) -> None:
        with read_database(url) as connection:
            columns = [(exchange if name in _EXCHANGE_COLUMNS else scoring_task).c[name] for name in TaskRow._fields]
            query = select(*columns).join(exchange, exchange.c.id == scoring_task.c.exchange_id)
            self.tasks = [TaskRow(*row) for row in connection.execute(query)]
            self.tally = load_tally(connection)
            self.exchanges = set(connection.execute(select(exchange.c.id)).scalars())
            keys = select(score.c.exchange_id, score.c.scorer)
            self.scores = Counter(tuple(row) for row in connection.execute(keys))

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """The number of tasks by outcome and reason."""
        return Counter(task.outcome for task in self.tasks)

    def violations(self, committed: set[str]) -> list[str]:
        """Return every violated guarantee.

        Args:
            committed: The ids of exchanges that an application has confirmed as stored.
        """
        return [*self._lost(committed), *self._unfinished(), *self._duplicates(), *find_imbalances(self.tally),
                *self._miscounted()]  # fmt: skip

    def _lost(self, committed: set[str]) -> Iterator[str]:
        yield from (f"lost: exchange {id_}" for id_ in committed - self.exchanges)
        yield from (
            f"without a sampling decision: {id_}" for id_ in self.exchanges - {t.exchange_id for t in self.tasks}
        )

    def _unfinished(self) -> Iterator[str]:
        for task in self.tasks:
            if task.state not in FINAL_STATES:
                yield f"unfinished: {task}"
            elif task.state != "done" and not task.reason:
                yield f"without a reason: {task}"

    def _duplicates(self) -> Iterator[str]:
        yield from (f"scored {count} times: {key}" for key, count in self.scores.items() if count > 1)
        done = Counter((task.exchange_id, task.scorer) for task in self.tasks if task.state == "done")
        yield from (f"done task without a score: {key}" for key in done - self.scores)
        yield from (f"score without a task: {key}" for key in self.scores - done)

    def _miscounted(self) -> Iterator[str]:
        expected = Counter[TallyKey]()
        for task in self.tasks:
            expected[(*task.tally_labels, "seen", "")] += 1
            expected[(*task.tally_labels, *task.outcome)] += 1
        for key in sorted(expected.keys() | self.tally.keys()):
            if expected[key] != self.tally[key]:
                yield f"{key}: {expected[key]} rows, {self.tally[key]} in the tally"


@contextmanager
def read_database(url: str) -> Iterator[Connection]:
    """Read from a database in one transaction."""
    with closing(Database(url)) as database, database.read() as connection:
        yield connection


def answers_held_by(url: str, pid: int) -> tuple[str, ...]:
    """Return the answers whose tasks a process has claimed but not finished."""
    owner = scoring_task.c.lease_owner
    query = select(exchange.c.answer).join(scoring_task, scoring_task.c.exchange_id == exchange.c.id)
    with read_database(url) as connection:
        rows = connection.execute(query.where(owner.contains(f"-{pid}-", autoescape=True)))
        return tuple(rows.scalars())


def load_tally(connection: Connection) -> Counter[TallyKey]:
    """Return the counts of all processes together."""
    columns = (tally.c.minute, tally.c.service, tally.c.route, tally.c.scorer, tally.c.outcome, tally.c.reason)
    query = select(*columns, func.sum(tally.c.count)).where(tally.c.scorer != "").group_by(*columns)
    return Counter({tuple(row[:-1]): int(row[-1]) for row in connection.execute(query) if row[-1]})


def find_imbalances(counts: Counter[TallyKey]) -> list[str]:
    """Return the counts in which seen differs from scored + skipped + failed + pending, and negative counts."""
    seen, parts = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for (*labels, outcome, _), count in counts.items():
        (seen if outcome == "seen" else parts)[tuple(labels)] += count
    imbalances = [
        f"{labels}: seen {seen[labels]}, parts {parts[labels]}"
        for labels in seen | parts
        if seen[labels] != parts[labels]
    ]
    return imbalances + [f"{key}: {count}" for key, count in counts.items() if count < 0]


def find_current_imbalances(url: str) -> list[str]:
    """Return the imbalances in a database that is being written to. A single query reads a consistent snapshot."""
    with read_database(url) as connection:
        return find_imbalances(load_tally(connection))
