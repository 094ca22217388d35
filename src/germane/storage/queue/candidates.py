"""The sampling decisions of exchanges, and the pool of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, exists, func, literal_column, update

from germane.score import UnscoredReason
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task

CANDIDATE: Final = "candidate"
# A literal, because SQLite does not use a partial index with a bound parameter.
IS_CANDIDATE: Final = exchange.c.sampling_reason == literal_column(f"'{CANDIDATE}'")
# Only candidates have pending tasks without a due time.
IS_WAITING: Final = (scoring_task.c.state == "pending", scoring_task.c.due_at.is_(None))
_REMOVE: Final = (
    update(exchange)
    .where(IS_CANDIDATE, ~exists().where(scoring_task.c.exchange_id == exchange.c.id, *IS_WAITING))
    .values(sampling_reason=UnscoredReason.NOT_SAMPLED.value)
)


def remove_from_pool(connection: Connection, ids: Sequence[str]) -> None:
    """Remove exchanges without a waiting task from the candidate pool. The caller must have locked them."""
    if ids:
        connection.execute(_REMOVE.where(is_one_of(exchange.c.id, ids, connection.dialect.name)))


def decide(
    connection: Connection, decisions: Iterable[tuple[str, float | None, str, float | None, float | None]]
) -> None:
    """Write decisions: the id, probability and reason of each, and the proxy score and its probability, if any."""
    groups: dict[tuple[float | str | None, ...], list[str]] = {}
    for id_, *values in decisions:
        groups.setdefault(tuple(values), []).append(id_)
    others: list[dict[str, float | str | None]] = []
    for key, ids in groups.items():
        shared = dict(zip(("probability", "why", "free_score", "free_probability"), key, strict=True))
        if len(ids) < _MANY_ALIKE:
            others += [{"decided": id_, **shared} for id_ in ids]
            continue
        for some in batched(ids):
            connection.execute(_DECIDE.where(is_one_of(exchange.c.id, some, connection.dialect.name)), shared)
    if others:
        connection.execute(_DECIDE.where(exchange.c.id == bindparam("decided")), others)


_MANY_ALIKE: Final = 10
"""Number of equal decisions that one statement writes faster than a statement for each."""
_DECIDE: Final = update(exchange).values(
    sampling_probability=bindparam("probability"),
    sampling_reason=bindparam("why"),
    proxy=func.coalesce(bindparam("free_score"), exchange.c.proxy),
    proxy_probability=func.coalesce(bindparam("free_probability"), exchange.c.proxy_probability),
)
