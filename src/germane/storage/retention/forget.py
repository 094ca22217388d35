"""Whose exchanges are whose: what must be found when a person is to be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    RowMapping,
    Table,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
)

from germane.errors import UsageError
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.erase_text import OPEN, tasks_of
from germane.storage.retention.expire import BATCH, Batch, Place, Removed, close, delete_exchanges, later

BEGINNING: Place = (datetime(1, 1, 1, tzinfo=UTC), "")
"""Before any exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What tells exchanges of one person, or of one conversation or tenant, from others: exactly one of these.

    Raises:
        UsageError: none is given, more than one is, or it is empty.
    """

    user: str | None = None
    session: str | None = None
    attribute: tuple[str, str] | None = None
    """Name and value; numbers and flags as JSON writes them."""

    def __post_init__(self) -> None:
        given = [one for one in (self.user, self.session, self.attribute) if one is not None]
        if len(given) != 1 or "" in {self.user, self.session, *(self.attribute or ())[:1]}:
            raise UsageError("name one user, session or attribute, that is not empty")

    def said(self, dialect: str) -> ColumnElement[bool]:
        """Return the condition of this person's exchanges."""
        if self.user is not None:
            return exchange.c.user == clean(self.user)
        if self.session is not None:
            return exchange.c.session == clean(self.session)
        name, value = (clean(part) for part in self.attribute or ("", ""))
        return _on_sqlite(name, value) if dialect == "sqlite" else _on_postgresql(name, value)


def _on_sqlite(name: str, value: str) -> ColumnElement[bool]:
    # By each pair, and not by a path: a name may hold any character.
    pairs = func.json_each(exchange.c.attributes).table_valued("key", "value", "type")
    flag = pairs.c.type.in_(["true", "false"])
    written = case((flag, pairs.c.type), else_=cast(pairs.c.value, Text))
    return exists(select(1).select_from(pairs).where(pairs.c.key == name, written == value))


def _on_postgresql(name: str, value: str) -> ColumnElement[bool]:
    return func.jsonb_extract_path_text(exchange.c.attributes, name) == value


def forget_some(connection: Connection, process: str, person: Person, after: Place | None) -> Batch:
    """Delete the oldest of a person's exchanges after that one, also those that are being scored now.

    Where somebody else has locked a task to change it, the next batch begins at the same place.
    """
    found = _found(connection, person, after)
    locked = _locked(connection, sorted(row["id"] for row in found))
    exchanges = {row["id"]: row for row in found if row["id"] in locked}
    free, held = tasks_of(connection, list(exchanges))
    waiting = [(exchanges[of], row) for row in free if (of := row["exchange_id"]) not in held and row["state"] in OPEN]
    close(connection, process, waiting)
    removed = delete_exchanges(connection, sorted(exchanges.keys() - held)) + Removed(expired=len(waiting))
    return Batch(removed, after or BEGINNING) if held else Batch(removed, _end(found))


def _locked(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Return those that are still there, locked: the sampler is kept away, and whoever erases.

    Whoever scores holds tasks, and may wait for this: these are not.
    """
    locked = set[str]()
    for some in batched(ids):
        query = select(exchange.c.id).where(exchange.c.id.in_(some)).order_by(exchange.c.id)
        locked |= set(connection.execute(query.with_for_update()).scalars())
    return locked


def _end(found: Sequence[RowMapping]) -> Place | None:
    return (found[-1]["started_at"], found[-1]["id"]) if len(found) == BATCH else None


def _found(connection: Connection, person: Person, after: Place | None) -> list[RowMapping]:
    columns = (exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at)
    query = select(*columns).where(person.said(connection.dialect.name))
    if after is not None:
        query = query.where(later(after))
    return list(connection.execute(query.order_by(exchange.c.started_at, exchange.c.id).limit(BATCH)).mappings())


def forget_labels(connection: Connection, user: str, after: Place | None) -> Batch:
    """Delete the oldest labels that a user gave, after that one."""
    found = _labels(connection, user, after)
    ids = [row.id for row in found]
    gone = connection.execute(delete(feedback).where(feedback.c.id.in_(ids))).rowcount if ids else 0
    return Batch(Removed(feedback=gone), (found[-1].created_at, found[-1].id) if len(found) == BATCH else None)


def _labels(connection: Connection, user: str, after: Place | None) -> Sequence[Row[Any]]:
    moment, key, theirs = feedback.c.created_at, feedback.c.id, (exchange.c.user == clean(user)).label("theirs")
    query = select(moment, key, theirs).where(feedback.c.user == clean(user))
    query = query.outerjoin_from(feedback, exchange, exchange.c.id == feedback.c.exchange_id)
    if after is not None:
        query = query.where(moment >= after[0], or_(moment > after[0], and_(moment == after[0], key > after[1])))
    return connection.execute(query.order_by(moment, key).limit(BATCH)).all()


def count_some(connection: Connection, person: Person, after: Place | None) -> Batch:
    """Return what :func:`forget_some` would delete."""
    found = _found(connection, person, after)
    ids = [row["id"] for row in found]
    if not ids:
        return Batch(Removed(), None)
    states = select(scoring_task.c.state).where(scoring_task.c.exchange_id.in_(ids))
    removed = Removed(
        exchanges=len(ids),
        scores=_count(connection, score, ids),
        feedback=_count(connection, feedback, ids),
        expired=sum(state in OPEN for state in connection.execute(states).scalars()),
    )
    return Batch(removed, _end(found))


def count_labels(connection: Connection, user: str, after: Place | None) -> Batch:
    """Return what :func:`forget_labels` would delete of other people's exchanges."""
    found = _labels(connection, user, after)
    removed = Removed(feedback=sum(not row.theirs for row in found))
    return Batch(removed, (found[-1].created_at, found[-1].id) if len(found) == BATCH else None)


def _count(connection: Connection, table: Table, ids: Sequence[str]) -> int:
    query = select(func.count()).select_from(table).where(table.c.exchange_id.in_(ids))
    return int(connection.execute(query).scalar_one())
