"""Conversion of exchanges and scores to rows and back.

Inserts bypass the ORM and SQLAlchemy's parameter processing: each statement is compiled once, and the values are
encoded for the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Dialect, RowMapping, Table

from germane.exchange import Context, Exchange, Message
from germane.score import Score
from germane.storage.db.sanitize import clean_text, to_json
from germane.storage.db.upsert import insert_into

Item = TypeVar("Item")
Values = tuple[Any, ...]
TimestampEncoder = Callable[[datetime], Any]

MAX_IDS_PER_STATEMENT: Final = 500
"""Maximum number of ids in one statement. Every version of SQLite accepts this many parameters."""
EXCHANGE_COLUMNS: Final = (
    "id", "trace_id", "span_id", "service", "route", "question", "answer", "contexts", "history", "model",
    "prompt_version", "session", "user", "attributes", "status", "error", "started_at", "duration", "sampling_key",
    "traced", "capture_probability", "span_holder",
)  # fmt: skip
SCORE_COLUMNS: Final = (
    "exchange_id", "scorer", "fingerprint", "service", "route", "started_at", "sampling_probability", "proxy", "value",
    "label", "explanation", "details", "judge", "embedder", "input_tokens", "output_tokens", "cost", "latency",
    "scored_at",
)  # fmt: skip
_SCORE_FIELDS: Final = (
    "scorer", "fingerprint", "value", "label", "explanation", "details", "judge", "embedder", "input_tokens",
    "output_tokens", "cost", "latency", "scored_at",
)  # fmt: skip


def batched(items: Sequence[Item], size: int = MAX_IDS_PER_STATEMENT) -> Iterator[Sequence[Item]]:
    """Split a sequence into batches, which by default fit into one statement."""
    return (items[start : start + size] for start in range(0, len(items), size))


def bulk_insert(connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[Values]) -> None:
    """Insert rows, ignoring rows with an existing key. Timestamps and JSON must be encoded for the driver."""
    if rows:
        connection.exec_driver_sql(_insert_statement(table, columns, connection.dialect.name), list(rows))


@lru_cache
def _insert_statement(table: Table, columns: tuple[str, ...], dialect: str) -> str:
    if dialect == "sqlite":
        from sqlalchemy.dialects import sqlite

        positional: Dialect = sqlite.dialect(paramstyle="qmark")
    else:
        from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

        psycopg: Callable[..., Dialect] = PGDialect_psycopg
        positional = psycopg(paramstyle="format")
    statement = insert_into(table, dialect).on_conflict_do_nothing().inline()
    return str(statement.compile(dialect=positional, column_keys=list(columns)))


def timestamp_encoder(dialect: str) -> TimestampEncoder:
    """Return a function that encodes a datetime for the dialect's driver."""
    if dialect == "sqlite":
        return lambda moment: _in_utc(moment).isoformat(" ", "microseconds")[:26]
    return _in_utc


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC)


def exchange_values(exchange: Exchange, encode: TimestampEncoder) -> Values:
    """Return an exchange's values for ``EXCHANGE_COLUMNS``, encoded for the driver."""
    contexts = [{"text": context.text, "id": context.id, "score": context.score} for context in exchange.contexts]
    history = [{"role": message.role, "content": message.content} for message in exchange.history]
    return (
        exchange.id,
        exchange.trace_id,
        exchange.span_id,
        clean_text(exchange.service),
        clean_text(exchange.route),
        clean_text(exchange.question),
        clean_text(exchange.answer),
        to_json(contexts) if contexts else "[]",
        to_json(history) if history else "[]",
        clean_text(exchange.model),
        clean_text(exchange.prompt_version),
        clean_text(exchange.session),
        clean_text(exchange.user),
        to_json(exchange.attributes) if exchange.attributes else "{}",
        exchange.status,
        clean_text(exchange.error),
        encode(exchange.started_at),
        float(exchange.duration),
        float(exchange.sampling_key),
        bool(exchange.traced),
        float(exchange.capture_probability),
        exchange.span_holder,
    )


def exchange_from_row(row: RowMapping) -> Exchange:
    """Convert a row of the ``exchange`` table to an exchange."""
    fields: dict[str, Any] = {name: row[name] for name in EXCHANGE_COLUMNS if name not in {"contexts", "history"}}
    return Exchange(
        contexts=tuple(Context(item["text"], item.get("id"), item.get("score")) for item in row["contexts"]),
        history=tuple(Message(item["role"], item["content"]) for item in row["history"]),
        **fields,
    )


def score_values(exchange: Mapping[Any, Any], score: Score, now: datetime, encode: TimestampEncoder) -> Values:
    """Return a score's values for ``SCORE_COLUMNS``, encoded for the driver."""
    return (
        exchange["exchange_id"],
        clean_text(score.scorer),
        clean_text(score.fingerprint),
        exchange["service"],
        exchange["route"],
        encode(exchange["started_at"]),
        exchange["sampling_probability"],
        exchange["proxy"],
        None if score.value is None else float(score.value),
        clean_text(score.label),
        clean_text(score.explanation),
        to_json(score.details) if score.details else "{}",
        clean_text(score.judge),
        clean_text(score.embedder),
        score.input_tokens,
        score.output_tokens,
        score.cost,
        score.latency,
        encode(score.scored_at or now),
    )


def score_from_row(row: RowMapping) -> Score:
    """Convert a row of the ``score`` table to a score."""
    return Score(**{name: row[name] for name in _SCORE_FIELDS})


def score_key(task: Mapping[str, Any]) -> tuple[str, str]:
    """Return the (scorer, fingerprint) key of a finished task's score."""
    return task["scorer"], task["scored_as"] or task["fingerprint"]
