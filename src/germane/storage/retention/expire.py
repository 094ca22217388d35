"""Old exchanges taken out of the tables, a few in each transaction: writers never wait for long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, and_, delete, func, or_, select

from germane.sanitize import counted
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import batched
from germane.storage.db.tables import arrival, exchange, feedback, mark, score, scoring_task
from germane.storage.queue.candidates import take_out
from germane.storage.queue.erase_text import OPEN, erase, erase_closed, tasks_of
from germane.storage.queue.expired import count_expired, expired

BATCH = 200
"""Exchanges in one transaction."""
Place = tuple[datetime, str]
"""Beginning and id of an exchange: batches go on after the one that was looked at last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was erased or deleted."""

    texts: int = 0
    """Exchanges whose text was erased; they are still there."""
    exchanges: int = 0
    scores: int = 0
    """Of deleted exchanges."""
    expired: int = 0
    """Tasks that waited, and were skipped because text or exchange went."""
    feedback: int = 0
    """Labels of deleted exchanges, and those by a person who is forgotten."""
    comments: int = 0
    """Comments of labels that were older than text may be."""
    counts: int = 0
    """Rows of the tally."""
    workers: int = 0
    """Rows of processes that are gone."""
    marks: int = 0
    """Marks as old as exchanges that are deleted."""
    alerts: int = 0
    """Alerts that are over for as long, what was told of alerts, and silences."""

    def __add__(self, other: Removed) -> Removed:
        return Removed(**{name: getattr(self, name) + getattr(other, name) for name in Removed.__slots__})

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in Removed.__slots__)

    def __str__(self) -> str:
        """Say what went, without what did not."""
        counts = [(getattr(self, name), noun, went) for name, (noun, went) in _SAID.items()]
        return ", ".join(f"{counted(count, noun)} {went}" for count, noun, went in counts if count) or "nothing"


_SAID = {
    "texts": ("text", "erased"),
    "exchanges": ("exchange", "deleted"),
    "scores": ("score", "deleted"),
    "expired": ("task", "expired"),
    "feedback": ("label", "deleted"),
    "comments": ("comment", "erased"),
    "counts": ("row", "of counts deleted"),
    "workers": ("process", "forgotten"),
    "marks": ("mark", "deleted"),
    "alerts": ("row", "of alerts deleted"),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction did, and where the next one goes on; None at the end."""

    removed: Removed
    last: Place | None


def erase_some(connection: Connection, process: str, before: datetime, after: Place | None, now: datetime) -> Batch:
    """Erase the oldest text of exchanges that began before then; what is being scored is left alone."""
    found, last = _oldest(connection, _with_text(), before, after)
    ids, expired = _expire(connection, process, found, now)
    erase(connection, ids, now)
    take_out(connection, ids)
    return Batch(Removed(texts=len(ids), expired=expired), last)


def erase_scored_some(
    connection: Connection, _process: str, before: datetime, after: Place | None, now: datetime
) -> Batch:
    """Erase the text of the oldest exchanges that began before then, as far as nothing of them is to be scored."""
    found, last = _oldest(connection, _with_text(), before, after)
    return Batch(Removed(texts=erase_closed(connection, [row["id"] for row in found], now)), last)


def delete_some(connection: Connection, process: str, before: datetime, after: Place | None, now: datetime) -> Batch:
    """Delete the oldest exchanges that began before then; what is being scored is left alone."""
    found, last = _oldest(connection, _all(), before, after)
    ids, expired = _expire(connection, process, found, now)
    return Batch(delete_exchanges(connection, ids) + Removed(expired=expired), last)


def delete_exchanges(connection: Connection, ids: Sequence[str]) -> Removed:
    """Delete exchanges that are locked, with all that is said of them. Their counts stay."""
    gone = Removed()
    for some in batched(ids):
        scores = _delete_noted(connection, score, score.c.exchange_id.in_(some))
        labels = _delete(connection, feedback, feedback.c.exchange_id.in_(some))
        _delete(connection, scoring_task, scoring_task.c.exchange_id.in_(some))
        _delete(connection, arrival, arrival.c.exchange_id.in_(some))
        exchanges = _delete_noted(connection, exchange, exchange.c.id.in_(some))
        gone += Removed(exchanges=exchanges, scores=scores, feedback=labels)
    return gone


def _delete_noted(connection: Connection, table: Table, condition: Any) -> int:
    """Delete rows, having their hours rolled up again; of scores too, whose exchange may be gone already."""
    moments = connection.execute(delete(table).where(condition).returning(table.c.started_at)).scalars().all()
    dirty_hours.note(connection, moments)
    return len(moments)


def _delete(connection: Connection, table: Table, condition: Any) -> int:
    return connection.execute(delete(table).where(condition)).rowcount


_COLUMNS = (exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at)


def _all() -> Select[Any]:
    return select(*_COLUMNS)


def _with_text() -> Select[Any]:
    return select(*_COLUMNS).where(exchange.c.erased_at.is_(None))


def _oldest(
    connection: Connection, query: Select[Any], before: datetime, after: Place | None
) -> tuple[Sequence[RowMapping], Place | None]:
    """Return the next exchanges, locked, oldest first; those that somebody else has locked are left out."""
    query = query.where(exchange.c.started_at < before)
    if after is not None:
        query = query.where(later(after))
    query = query.order_by(exchange.c.started_at, exchange.c.id).limit(BATCH)
    found = connection.execute(query.with_for_update(skip_locked=True)).mappings().all()
    return found, (found[-1]["started_at"], found[-1]["id"]) if len(found) == BATCH else None


def later(after: Place) -> Any:
    """Return the condition of exchanges that come after that one; the first half of it can use the index."""
    moment, exchange_id = after
    place = or_(exchange.c.started_at > moment, and_(exchange.c.started_at == moment, exchange.c.id > exchange_id))
    return and_(exchange.c.started_at >= moment, place)


def _expire(connection: Connection, process: str, found: Sequence[RowMapping], now: datetime) -> tuple[list[str], int]:
    """Skip the tasks of these exchanges that wait; return the exchanges of which none is at work, and how many tasks.

    A task that somebody else has locked is about to change: its exchange is left for the next time.
    """
    exchanges = {row["id"]: row for row in found}
    free, held = tasks_of(connection, list(exchanges))
    open_ = [row for row in free if row["state"] in OPEN]
    running = [row for row in open_ if row["state"] == "running" and not _ended(row["lease_until"], now)]
    busy = held | {row["exchange_id"] for row in running}
    closed = [row for row in open_ if row["exchange_id"] not in busy]
    close(connection, process, [(exchanges[row["exchange_id"]], row) for row in closed])
    return [one for one in exchanges if one not in busy], len(closed)


def _ended(until: datetime | None, now: datetime) -> bool:
    return until is None or until <= now


def close(connection: Connection, process: str, tasks: Sequence[tuple[RowMapping, RowMapping]]) -> None:
    """Skip open tasks that are locked, each given with its exchange, and count them so."""
    deltas = Deltas()
    for row, task in tasks:
        names = (row["service"], row["route"], task["scorer"])
        deltas.count(row["started_at"], names, "pending", by=-1)
        count_expired(deltas, row["started_at"], names, task["scored_as"])
    for ids in batched([task["id"] for _, task in tasks]):
        connection.execute(_CLOSE.where(scoring_task.c.id.in_(ids)))
    deltas.write(connection, process)


_CLOSE = expired(None)


def count_old(connection: Connection, texts_before: datetime | None, before: datetime | None) -> Removed:
    """Return what erasing and deleting would do now, if nothing were being scored."""
    found = Removed()
    if before is not None:
        found += _count_deleted(connection, before)
    if texts_before is not None:
        text = [exchange.c.erased_at.is_(None), exchange.c.started_at < texts_before]
        still = [] if before is None else [exchange.c.started_at >= before]
        found += Removed(texts=_count(connection, exchange, *text, *still))
    last = max((moment for moment in (texts_before, before) if moment is not None), default=None)
    return found if last is None else found + Removed(expired=_count_open(connection, last))


def _count_deleted(connection: Connection, before: datetime) -> Removed:
    of_gone = feedback.join(exchange, exchange.c.id == feedback.c.exchange_id)
    later_ones = (exchange.c.started_at < before, feedback.c.created_at >= before)
    return Removed(
        exchanges=_count(connection, exchange, exchange.c.started_at < before),
        scores=_count(connection, score, score.c.started_at < before),
        feedback=_count(connection, feedback, feedback.c.created_at < before)
        + _count(connection, of_gone, *later_ones),
        marks=_count(connection, mark, mark.c.at < before),
    )


def _count_open(connection: Connection, before: datetime) -> int:
    tasks = scoring_task.join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    return _count(connection, tasks, scoring_task.c.state.in_(OPEN), exchange.c.started_at < before)


def _count(connection: Connection, source: Any, *conditions: Any) -> int:
    return int(connection.execute(select(func.count()).select_from(source).where(*conditions)).scalar_one())
