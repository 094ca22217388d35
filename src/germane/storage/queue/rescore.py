"""Answers that are scored again: by the judge of today, or after what stood in the way is mended.

A score that is there stands until the new one comes, and takes its place; where none comes about it stays. Of another
fingerprint there is a task of its own, and both scores stay: they are never averaged together. What is scored again
keeps its sampling probability, and is no news to the detector: somebody chose it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.feedback_requeue import LEFT_OUT
from germane.storage.transfer.record import made_by

Pair = tuple[str, str]
"""Exchange and scorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What became of the wish to have answers scored again, each counted once for every scorer."""

    ready: int = 0
    """Are scored by whoever scores next."""
    waiting: int = 0
    """Wait already, or are being scored; what had been put off is tried at once."""
    erased: int = 0
    """Have no text any more."""
    left_out: int = 0
    """The draw or the budget left them out: scored now, they would stand for answers that they do not."""
    unknown: int = 0
    """No process has their scorer, or the exchange is not here."""

    def __add__(self, other: Rescored) -> Rescored:
        """Return the sums."""
        return Rescored(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})


def rescore(
    connection: Connection, process: str, asked: Sequence[Pair], scorers: Mapping[str, str], now: datetime
) -> tuple[Rescored, set[str]]:
    """Make tasks ready; return what became of them, and the exchanges that have one that is ready now."""
    ready, total = set[str](), Rescored()
    for ids in batched(sorted({exchange_id for exchange_id, _ in asked})):
        exchanges = _held(connection, ids)
        tasks, locked = _tasks(connection, list(exchanges))
        batch = _Batch(exchanges, tasks, locked, scorers, now)
        for exchange_id, scorer in sorted(set(asked)):
            if ids[0] <= exchange_id <= ids[-1]:
                batch.take(exchange_id, scorer)
        total += batch.write(connection, process)
        ready |= batch.ready
    return total, ready


def _held(connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    """Return exchanges, held, so that nobody erases or deletes them meanwhile."""
    names = ("id", "service", "route", "started_at", "erased_at", "question", "answer", "sampling_reason")
    query = select(*(exchange.c[name] for name in names)).where(exchange.c.id.in_(ids)).order_by(exchange.c.id)
    found = connection.execute(query.with_for_update(key_share=True))
    return {row["id"]: row for row in found.mappings()}


_TASK = ("id", "exchange_id", "scorer", "fingerprint", "state", "reason", "not_before", "scored_as")


def _tasks(connection: Connection, ids: Sequence[str]) -> tuple[dict[Pair, list[RowMapping]], set[Pair]]:
    """Return the tasks of exchanges, locked, and what has one that somebody else has locked: that is at work.

    Nobody is waited for: whoever holds a task may wait for its exchange.
    """
    query = select(*(scoring_task.c[name] for name in _TASK)).where(scoring_task.c.exchange_id.in_(ids))
    query = query.order_by(scoring_task.c.id)
    free = list(connection.execute(query.with_for_update(skip_locked=True)).mappings())
    known, found = {row["id"] for row in free}, dict[Pair, list[RowMapping]]()
    for row in free:
        found.setdefault((row["exchange_id"], row["scorer"]), []).append(row)
    rest = [row for row in connection.execute(query).mappings() if row["id"] not in known]
    return found, {(row["exchange_id"], row["scorer"]) for row in rest}


class _Batch:
    """What is to be written for exchanges that are held."""

    def __init__(
        self,
        exchanges: Mapping[str, RowMapping],
        tasks: Mapping[Pair, Sequence[RowMapping]],
        locked: set[Pair],
        scorers: Mapping[str, str],
        now: datetime,
    ) -> None:
        self.ready: set[str] = set()
        self._exchanges, self._tasks, self._locked, self._scorers, self._now = exchanges, tasks, locked, scorers, now
        self._deltas = Deltas()
        self._new: list[dict[str, Any]] = []
        self._opened: list[dict[str, Any]] = []
        self._sooner: list[int] = []
        self._counts = dict.fromkeys((one.name for one in fields(Rescored)), 0)

    def take(self, exchange_id: str, scorer: str) -> None:
        """Decide on one, and count it."""
        self._counts[self._decided(exchange_id, scorer)] += 1

    def _decided(self, exchange_id: str, scorer: str) -> str:
        row = self._exchanges.get(exchange_id)
        if row is None or scorer not in self._scorers:
            return "unknown"
        if row["erased_at"] is not None or (row["question"] is None and row["answer"] is None):
            return "erased"
        tasks = self._tasks.get((exchange_id, scorer), ())
        if (exchange_id, scorer) in self._locked or row["sampling_reason"] is None:
            return "waiting"
        own = next((task for task in tasks if task["fingerprint"] == self._scorers[scorer]), None)
        if own is None and all(_is_left_out(task) for task in tasks):
            return "left_out"
        return self._add(row, scorer) if own is None else self._open(row, own)

    def _add(self, row: RowMapping, scorer: str) -> str:
        """Have it scored with a fingerprint that it has no task of yet."""
        names = {"exchange_id": row["id"], "scorer": scorer, "fingerprint": self._scorers[scorer]}
        times = {"first_pending_at": self._now, "not_before": self._now}
        self._new.append({**names, **times, "state": "pending", "attempts": 0, "tries": 0, "scored_as": ""})
        return self._count(row, scorer, "seen", "")

    def _open(self, row: RowMapping, task: RowMapping) -> str:
        """Have it scored with a fingerprint that it has a task of."""
        if _is_left_out(task):
            return "left_out"
        if task["state"] in {"pending", "running"}:
            put_off = task["state"] == "pending" and task["not_before"] is not None
            self._sooner += [task["id"]] if put_off and task["not_before"] > self._now else []
            return "waiting"
        done = task["state"] == "done"
        self._opened.append({"task_id": task["id"], "standing": made_by(dict(task))[1] if done else ""})
        names = (row["service"], row["route"], task["scorer"])
        self._deltas.count(
            row["started_at"], names, "scored" if done else task["state"], "" if done else task["reason"], by=-1
        )
        return self._count(row, task["scorer"])

    def _count(self, row: RowMapping, scorer: str, *more: Any) -> str:
        names = (row["service"], row["route"], scorer)
        self._deltas.count(row["started_at"], names, "pending")
        if more:
            self._deltas.count(row["started_at"], names, *more)
        self.ready.add(row["id"])
        return "ready"

    def write(self, connection: Connection, process: str) -> Rescored:
        """Write all of it."""
        if self._opened:
            connection.execute(_OPEN, [{**one, "at": self._now} for one in self._opened])
        for ids in batched(self._sooner):
            connection.execute(update(scoring_task).where(scoring_task.c.id.in_(ids)).values(not_before=self._now))
        make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        if self._new:
            connection.execute(make(scoring_task), self._new)
        self._deltas.write(connection, process)
        return Rescored(**self._counts)


_OPEN = (
    update(scoring_task)
    .where(scoring_task.c.id == bindparam("task_id"))
    .values(
        state="pending",
        reason=None,
        error=None,
        attempts=0,
        tries=0,
        first_pending_at=bindparam("at"),
        not_before=bindparam("at"),
        scored_as=bindparam("standing"),
    )
)


def _is_left_out(task: RowMapping) -> bool:
    waits_in_pool = task["state"] == "pending" and task["not_before"] is None
    return waits_in_pool or (task["state"] == "skipped" and task["reason"] in LEFT_OUT)
