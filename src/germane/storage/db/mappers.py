"""Exchanges and scores as rows, and back.

Writing goes past the ORM and past SQLAlchemy's parameter processing: the statement is compiled once, and the values are
made in the form that the driver takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, RowMapping, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from germane.exchange import Context, Exchange, Turn
from germane.score import Score
from germane.storage.db.sanitize import clean, to_json

CHUNK = 500
"""Ids in one statement: every SQLite takes that many."""
Item = TypeVar("Item")
Values = tuple[Any, ...]
Stamp = Callable[[datetime], Any]


def batched(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut a sequence into parts that fit into one statement."""
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def insert(connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[Values]) -> None:
    """Insert the rows, leaving those that are there as they are. Moments and JSON are in the driver's form already."""
    if rows:
        connection.exec_driver_sql(_statement(table, columns, connection.dialect.name), list(rows))


@lru_cache
def _statement(table: Table, columns: tuple[str, ...], dialect: str) -> str:
    on_sqlite = dialect == "sqlite"
    statement = (sqlite if on_sqlite else postgresql).insert(table).on_conflict_do_nothing().inline()
    positional = sqlite.dialect(paramstyle="qmark") if on_sqlite else _psycopg(paramstyle="format")
    return str(statement.compile(dialect=positional, column_keys=list(columns)))


_psycopg: Callable[..., Dialect] = PGDialect_psycopg


def stamp_for(dialect: str) -> Stamp:
    """Return what turns a moment into the form in which the driver takes it."""
    return _as_text if dialect == "sqlite" else _in_utc


def _as_text(moment: datetime) -> str:
    return _in_utc(moment).isoformat(" ", "microseconds")[:26]


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC)


EXCHANGE = (
    "id", "trace_id", "span_id", "service", "route", "question", "answer", "contexts", "history", "model",
    "prompt_version", "session", "user", "attributes", "status", "error", "started_at", "duration", "draw",
    "traced", "capture_probability",
)  # fmt: skip


def exchange_values(exchange: Exchange, stamp: Stamp) -> Values:
    """Return the values of the columns ``EXCHANGE``."""
    return (
        exchange.id,
        exchange.trace_id,
        exchange.span_id,
        clean(exchange.service),
        clean(exchange.route),
        clean(exchange.question),
        clean(exchange.answer),
        _contexts(exchange.contexts) if exchange.contexts else "[]",
        _history(exchange.history) if exchange.history else "[]",
        clean(exchange.model),
        clean(exchange.prompt_version),
        clean(exchange.session),
        clean(exchange.user),
        to_json(exchange.attributes) if exchange.attributes else "{}",
        exchange.status,
        clean(exchange.error),
        stamp(exchange.started_at),
        float(exchange.duration),
        float(exchange.sampling_key),
        bool(exchange.traced),
        float(exchange.capture_probability),
    )


def _contexts(contexts: Iterable[Context]) -> str:
    return to_json([{"text": context.text, "id": context.id, "score": context.score} for context in contexts])


def _history(history: Iterable[Turn]) -> str:
    return to_json([{"role": turn.role, "text": turn.text} for turn in history])


def exchange_of(row: RowMapping) -> Exchange:
    """Return the exchange of a row of the table ``exchange``."""
    plain: dict[str, Any] = {name: row[name] for name in EXCHANGE if name not in {"contexts", "history"}}
    return Exchange(
        contexts=tuple(Context(item["text"], item.get("id"), item.get("score")) for item in row["contexts"]),
        history=tuple(Turn(item["role"], item["text"]) for item in row["history"]),
        **plain,
    )


SCORE = (
    "exchange_id", "scorer", "fingerprint", "service", "route", "started_at", "sampling_probability", "proxy", "value",
    "label", "explanation", "details", "judge", "embedder", "input_tokens", "output_tokens", "cost", "latency",
    "scored_at",
)  # fmt: skip


def score_values(exchange: RowMapping, score: Score, now: datetime, stamp: Stamp) -> Values:
    """Return the values of the columns ``SCORE``, for a score that has a value."""
    return (
        exchange["exchange_id"],
        clean(score.scorer),
        clean(score.fingerprint),
        exchange["service"],
        exchange["route"],
        stamp(exchange["started_at"]),
        exchange["sampling_probability"],
        exchange["proxy"],
        None if score.value is None else float(score.value),
        clean(score.label),
        clean(score.explanation),
        to_json(score.details) if score.details else "{}",
        clean(score.judge),
        clean(score.embedder),
        score.input_tokens,
        score.output_tokens,
        score.cost,
        score.latency,
        stamp(score.scored_at or now),
    )


def score_of(row: RowMapping) -> Score:
    """Return the score of a row of the table ``score``."""
    names = (
        "scorer", "fingerprint", "value", "label", "explanation", "details", "judge", "embedder", "input_tokens",
        "output_tokens", "cost", "latency", "scored_at",
    )  # fmt: skip
    return Score(**{name: row[name] for name in names})
