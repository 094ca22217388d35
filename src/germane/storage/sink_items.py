"""The queue of exchanges whose scores and labels are to be written to sinks.

Each exchange has one item per sink, which contains nothing but its id: scores, labels and texts are read when it is
sent, so that the newest value is written, and nothing that has been erased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, bindparam, case, delete, select, text

from germane.storage.db.engine import get_pending, pop_pending
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import batched
from germane.storage.db.tables import delivery
from germane.storage.db.upsert import insert_into
from germane.storage.outbox import DeliveryStatus, TargetQueue, is_kind

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert

SINK: Final = "sink"
RETRY_TIMEOUT: Final = timedelta(days=7)
"""Time for which an exchange is sent again while the sink is unreachable."""
_KEPT: Final = frozenset[DeliveryStatus]({"undelivered"})
_PENDING: Final = "sink_exchanges"


def sink_queue(sink: str, *, batch_size: int) -> TargetQueue:
    """Return the queue of the exchanges for a sink."""
    return TargetQueue(SINK, sink, batch_size=batch_size, retry_timeout=RETRY_TIMEOUT, kept=_KEPT, is_ordered=False)


def mark_for_sinks(connection: Connection, exchange_ids: Iterable[str]) -> None:
    """Mark exchanges whose scores or labels this transaction changes."""
    get_pending(connection, _PENDING, set[str]).update(exchange_ids)


def write_pending(connection: Connection, sinks: Sequence[str], clock: Callable[[Connection], datetime]) -> None:
    """Queue the exchanges that this transaction has marked. An exchange that waits already is not queued again."""
    ids = sorted(pop_pending(connection, _PENDING, set[str]))
    if not ids or not sinks:
        return
    dialect, now = connection.dialect.name, clock(connection)
    if dialect != "sqlite":  # lock in the order of all other transactions, so that none waits for another in a circle
        for batch in batched(ids):
            connection.execute(_LOCK, {"sinks": sinks, "ids": batch})
    rows = [{"target": sink, "exchange_id": id_, "at": now} for sink in sorted(sinks) for id_ in ids]
    connection.execute(_upsert(dialect), rows)


def delete_items(connection: Connection, exchange_ids: Sequence[str]) -> None:
    """Delete the items of exchanges that are deleted."""
    has_id = is_one_of(delivery.c.exchange_id, exchange_ids, connection.dialect.name)
    locked = select(delivery.c.id).where(is_kind(SINK), has_id).order_by(delivery.c.id).with_for_update()
    connection.execute(delete(delivery).where(delivery.c.id.in_(locked)))


@lru_cache
def _upsert(dialect: str) -> Insert:
    """Return the statement that queues an exchange.

    A waiting item is reused. One that is being sent is marked, so that it is sent once more, and one that was given up
    starts again. The item is locked in any case: a process that claims it afterwards reads this transaction's scores.
    """
    insert = insert_into(delivery, dialect).values(
        kind=SINK,
        target=bindparam("target"),
        exchange_id=bindparam("exchange_id"),
        payload={},
        created_at=bindparam("at"),
        due_at=bindparam("at"),
    )
    was_given_up, new = delivery.c.status == "undelivered", insert.excluded
    restarted: dict[str, Any] = {"due_at": new.due_at, "created_at": new.created_at, "attempt": 0, "error": None}
    restarted |= {"status": "waiting", "settled_at": None}
    values = {name: case((was_given_up, value), else_=delivery.c[name]) for name, value in restarted.items()}
    return insert.on_conflict_do_update(
        index_elements=[delivery.c.target, delivery.c.exchange_id],
        index_where=text("kind = 'sink'"),
        set_={**values, "changes": delivery.c.changes + 1},
    )


_LOCK: Final = (
    select(delivery.c.id)
    .where(
        is_kind(SINK),
        delivery.c.target.in_(bindparam("sinks", expanding=True)),
        delivery.c.exchange_id.in_(bindparam("ids", expanding=True)),
    )
    .order_by(delivery.c.id)
    .with_for_update()
)
