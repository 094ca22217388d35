"""Rescoring answers, with the current judge or after an error was fixed.

An existing score stays until the new one replaces it, and stays if scoring fails. With another fingerprint there is a
separate task, and both scores stay; they are never averaged. Rescored answers keep their sampling probability and are
not reported to the detectors, because a person chose them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.counts.tally import TallyChanges
from germane.storage.db.mappers import batched, score_key
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.feedback_requeue import RECOVERABLE_REASONS

ScoringPair = tuple[str, str]
"""Exchange id and scorer name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreResult:
    """Result of a rescoring request, counted per exchange and scorer."""

    ready: int = 0
    """Queued for the workers."""
    waiting: int = 0
    """Already queued or running. Postponed tasks are retried at once."""
    erased: int = 0
    """Text has been erased."""
    not_sampled: int = 0
    """Skipped by sampling or the budget: scoring them now would bias the means."""
    unknown: int = 0
    """No process runs the scorer, or the exchange is not stored."""

    def __add__(self, other: RescoreResult) -> RescoreResult:
        """Return the sums."""
        return RescoreResult(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )


def queue_rescoring(
    connection: Connection, process: str, asked: Sequence[ScoringPair], scorers: Mapping[str, str], now: datetime
) -> tuple[RescoreResult, set[str]]:
    """Queue tasks; return the result, and the exchanges that have a queued task now."""
    ready, total = set[str](), RescoreResult()
    for ids in batched(sorted({exchange_id for exchange_id, _ in asked})):
        exchanges = _held(connection, ids)
        tasks, locked = _tasks(connection, list(exchanges))
        batch = _Batch(exchanges, tasks, locked, scorers, now)
        for exchange_id, scorer in sorted(set(asked)):
            if ids[0] <= exchange_id <= ids[-1]:
                batch.request(exchange_id, scorer)
        total += batch.write(connection, process)
        ready |= batch.ready
    return total, ready


def _held(connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    """Lock exchanges, so that no process erases or deletes them."""
    names = ("id", "service", "route", "started_at", "erased_at", "question", "answer", "sampling_reason")
    query = select(*(exchange.c[name] for name in names)).where(exchange.c.id.in_(ids)).order_by(exchange.c.id)
    found = connection.execute(query.with_for_update(key_share=True))
    return {row["id"]: row for row in found.mappings()}


_TASK = ("id", "exchange_id", "scorer", "fingerprint", "state", "reason", "not_before", "scored_as")


def _tasks(connection: Connection, ids: Sequence[str]) -> tuple[dict[ScoringPair, list[RowMapping]], set[ScoringPair]]:
    """Lock the tasks of exchanges; return them, and the pairs with a task locked by another process.

    Does not wait for locks: the holder of a task may wait for its exchange.
    """
    query = select(*(scoring_task.c[name] for name in _TASK)).where(scoring_task.c.exchange_id.in_(ids))
    query = query.order_by(scoring_task.c.id)
    free = list(connection.execute(query.with_for_update(skip_locked=True)).mappings())
    known, found = {row["id"] for row in free}, dict[ScoringPair, list[RowMapping]]()
    for row in free:
        found.setdefault((row["exchange_id"], row["scorer"]), []).append(row)
    rest = [row for row in connection.execute(query).mappings() if row["id"] not in known]
    return found, {(row["exchange_id"], row["scorer"]) for row in rest}


class _Batch:
    """Changes to write for locked exchanges."""

    def __init__(
        self,
        exchanges: Mapping[str, RowMapping],
        tasks: Mapping[ScoringPair, Sequence[RowMapping]],
        locked: set[ScoringPair],
        scorers: Mapping[str, str],
        now: datetime,
    ) -> None:
        self.ready: set[str] = set()
        self._exchanges, self._tasks, self._locked, self._scorers, self._now = exchanges, tasks, locked, scorers, now
        self._tally_changes = TallyChanges()
        self._new: list[dict[str, Any]] = []
        self._opened: list[dict[str, Any]] = []
        self._sooner: list[int] = []
        self._counts = dict.fromkeys((field.name for field in fields(RescoreResult)), 0)

    def request(self, exchange_id: str, scorer: str) -> None:
        """Handle one request and count its result."""
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
        if own is None and all(_is_unsampled(task) for task in tasks):
            return "not_sampled"
        return self._add(row, scorer) if own is None else self._open(row, own)

    def _add(self, row: RowMapping, scorer: str) -> str:
        """Add a task with a new fingerprint."""
        names = {"exchange_id": row["id"], "scorer": scorer, "fingerprint": self._scorers[scorer]}
        times = {"first_pending_at": self._now, "not_before": self._now}
        self._new.append({**names, **times, "state": "pending", "claims": 0, "retries": 0, "scored_as": ""})
        return self._count(row, scorer, "seen", "")

    def _open(self, row: RowMapping, task: RowMapping) -> str:
        """Reopen a task with an existing fingerprint."""
        if _is_unsampled(task):
            return "not_sampled"
        if task["state"] in {"pending", "running"}:
            put_off = task["state"] == "pending" and task["not_before"] is not None
            self._sooner += [task["id"]] if put_off and task["not_before"] > self._now else []
            return "waiting"
        done = task["state"] == "done"
        self._opened.append({"task_id": task["id"], "standing": score_key(dict(task))[1] if done else ""})
        names = (row["service"], row["route"], task["scorer"])
        self._tally_changes.add(
            row["started_at"], names, "scored" if done else task["state"], "" if done else task["reason"], by=-1
        )
        return self._count(row, task["scorer"])

    def _count(self, row: RowMapping, scorer: str, *more: Any) -> str:
        names = (row["service"], row["route"], scorer)
        self._tally_changes.add(row["started_at"], names, "pending")
        if more:
            self._tally_changes.add(row["started_at"], names, *more)
        self.ready.add(row["id"])
        return "ready"

    def write(self, connection: Connection, process: str) -> RescoreResult:
        """Write the changes."""
        if self._opened:
            connection.execute(_OPEN, [{**values, "at": self._now} for values in self._opened])
        for ids in batched(self._sooner):
            connection.execute(update(scoring_task).where(scoring_task.c.id.in_(ids)).values(not_before=self._now))
        make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        if self._new:
            connection.execute(make(scoring_task), self._new)
        self._tally_changes.apply(connection, process)
        return RescoreResult(**self._counts)


_OPEN = (
    update(scoring_task)
    .where(scoring_task.c.id == bindparam("task_id"))
    .values(
        state="pending",
        reason=None,
        error=None,
        claims=0,
        retries=0,
        first_pending_at=bindparam("at"),
        not_before=bindparam("at"),
        scored_as=bindparam("standing"),
    )
)


def _is_unsampled(task: RowMapping) -> bool:
    waits_in_pool = task["state"] == "pending" and task["not_before"] is None
    return waits_in_pool or (task["state"] == "skipped" and task["reason"] in RECOVERABLE_REASONS)
