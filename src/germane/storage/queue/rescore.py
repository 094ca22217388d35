"""Rescoring of answers, with a new judge or after an error has been fixed.

An existing score is replaced only when scoring succeeds. For a different fingerprint, a separate task is added and both
scores are kept; they are never averaged. Rescored answers keep their sampling probability. The detectors do not process
them, because they were not chosen at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, RowMapping, and_, bindparam, case, func, select, update

from germane.storage.counts.tally import TallyChanges
from germane.storage.db.mappers import batched, bulk_insert, timestamp_encoder
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.erase_text import lock_tasks
from germane.storage.queue.feedback import is_unsampled

ScoringPair = tuple[str, str]
"""An (exchange id, scorer name) pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreResult:
    """The result of a rescoring request: numbers of (exchange, scorer) pairs by outcome."""

    ready: int = 0
    """Pairs whose task was queued for the workers."""
    waiting: int = 0
    """Pairs whose task was already queued or running. Postponed tasks are retried immediately."""
    erased: int = 0
    """Pairs whose text has been erased."""
    not_sampled: int = 0
    """Pairs that sampling or the budget skipped. Scoring them now would bias the means."""
    unknown: int = 0
    """Pairs whose scorer no process runs, or whose exchange is not stored."""

    def __add__(self, other: RescoreResult) -> RescoreResult:
        """Add each field."""
        return RescoreResult(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )


def queue_rescoring(
    connection: Connection, process: str, asked: Sequence[ScoringPair], scorers: Mapping[str, str], now: datetime
) -> tuple[RescoreResult, set[str]]:
    """Queue tasks for rescoring. Return the result, and the ids of the exchanges for which tasks were queued."""
    names = ("id", "service", "route", "started_at", "erased_at", "sampling_reason")
    is_empty = and_(exchange.c.question.is_(None), exchange.c.answer.is_(None)).label("is_empty")
    query = select(*(exchange.c[name] for name in names), is_empty).order_by(exchange.c.id)
    ready, counts = set[str](), Counter[str]()
    for ids in batched(sorted({exchange_id for exchange_id, _ in asked})):
        # Lock the exchanges, so that no other process erases or deletes them.
        rows = connection.execute(query.where(exchange.c.id.in_(ids)).with_for_update(key_share=True)).mappings()
        exchanges = {row["id"]: row for row in rows}
        tasks, locked = lock_answer_tasks(connection, list(exchanges))
        batch = _Batch(exchanges, tasks, locked, scorers, now)
        counts.update(
            batch.request(exchange_id, scorer)
            for exchange_id, scorer in sorted(set(asked))
            if ids[0] <= exchange_id <= ids[-1]
        )
        batch.write(connection, process)
        ready |= batch.ready
    return RescoreResult(**counts), ready


def lock_answer_tasks(
    connection: Connection, ids: Sequence[str]
) -> tuple[dict[ScoringPair, list[RowMapping]], set[ScoringPair]]:
    """Lock the tasks of exchanges. Return them by (exchange id, scorer), and the pairs that are locked already."""
    free, held = lock_tasks(connection, ids)
    tasks: dict[ScoringPair, list[RowMapping]] = {}
    for row in free:
        tasks.setdefault((row["exchange_id"], row["scorer"]), []).append(row)
    return tasks, held


class _Batch:
    """The changes to write for a batch of locked exchanges."""

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
        self._new: list[tuple[str, str, str]] = []
        self._opened: list[int] = []
        self._sooner: list[int] = []

    def request(self, exchange_id: str, scorer: str) -> str:
        """Request one rescoring. Return the name of the :class:`RescoreResult` field that counts the request."""
        row = self._exchanges.get(exchange_id)
        if row is None or scorer not in self._scorers:
            return "unknown"
        if row["erased_at"] is not None or row["is_empty"]:
            return "erased"
        if (exchange_id, scorer) in self._locked or row["sampling_reason"] is None:
            return "waiting"
        tasks = self._tasks.get((exchange_id, scorer), ())
        own = next((task for task in tasks if task["fingerprint"] == self._scorers[scorer]), None)
        if all(map(is_unsampled, tasks if own is None else [own])):
            return "not_sampled"
        if own is not None and own["state"] in {"pending", "running"}:
            if own["state"] == "pending" and own["due_at"] is not None and own["due_at"] > self._now:
                self._sooner.append(own["id"])
            return "waiting"
        names = (row["service"], row["route"], scorer)
        if own is None:  # only tasks with other fingerprints
            self._new.append((row["id"], scorer, self._scorers[scorer]))
            self._tally_changes.add(row["started_at"], names, "seen")
        elif own["state"] == "done":
            self._opened.append(own["id"])
            self._tally_changes.add(row["started_at"], names, "scored", by=-1)
        else:
            self._opened.append(own["id"])
            self._tally_changes.add(row["started_at"], names, own["state"], own["reason"], by=-1)
        self._tally_changes.add(row["started_at"], names, "pending")
        self.ready.add(row["id"])
        return "ready"

    def write(self, connection: Connection, process: str) -> None:
        """Write the collected changes."""
        for ids in batched(self._opened):
            connection.execute(_OPEN.where(scoring_task.c.id.in_(ids)), {"at": self._now})
        for ids in batched(self._sooner):
            connection.execute(update(scoring_task).where(scoring_task.c.id.in_(ids)).values(due_at=self._now))
        at = timestamp_encoder(connection.dialect.name)(self._now)
        bulk_insert(connection, scoring_task, _NEW_TASK, [(*key, "pending", 0, at, at, "", 0) for key in self._new])
        self._tally_changes.apply(connection, process)


_NEW_TASK = (
    "exchange_id", "scorer", "fingerprint", "state", "claims", "first_pending_at", "due_at", "scored_as", "retries",
)  # fmt: skip
_STANDING = func.coalesce(func.nullif(scoring_task.c.scored_as, ""), scoring_task.c.fingerprint)
"""The fingerprint of a finished task's score; see ``score_key``."""
_OPEN = update(scoring_task).values(
    state="pending",
    reason=None,
    error=None,
    claims=0,
    retries=0,
    first_pending_at=bindparam("at"),
    due_at=bindparam("at"),
    scored_as=case((scoring_task.c.state == "done", _STANDING), else_=""),
)
