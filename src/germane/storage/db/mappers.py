"""Conversion of exchanges and scores to rows and back.

Inserts bypass the ORM and SQLAlchemy's parameter processing: each statement is compiled once, and the values are
encoded for the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Dialect, Float, RowMapping, Table

from germane.exchange import Context, Exchange, Message
from germane.sanitize import clean_text
from germane.score import Score
from germane.storage.db.sanitize import to_json
from germane.storage.db.upsert import insert_into

Item = TypeVar("Item")
Values = tuple[Any, ...]
TimestampEncoder = Callable[[datetime], Any]

MAX_IDS_PER_STATEMENT: Final = 500
"""Maximum number of ids in one statement. Every version of SQLite accepts this many parameters."""
MAX_CHARACTERS_PER_STATEMENT: Final = 16_000_000
"""Texts are copied several times on their way into a statement. PostgreSQL accepts up to 1 GB per array."""
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
    """Insert rows, ignoring rows with an existing key. Timestamps and JSON must be encoded for the driver.

    PostgreSQL gets an array per column, because a statement per row takes its server four times as long.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_insert_row(table, columns), list(rows))
        return
    are_floats = [isinstance(table.c[name].type, Float) for name in columns]
    for batch in _batched_by_length(rows):
        # Numbers may also be integers, but the elements of an array must have one type.
        arrays = tuple(
            [None if value is None else float(value) for value in column] if is_float else list(column)
            for is_float, column in zip(are_floats, zip(*batch, strict=True), strict=True)
        )
        connection.exec_driver_sql(_insert_arrays(table, columns), arrays)


@lru_cache
def _insert_row(table: Table, columns: tuple[str, ...]) -> str:
    """Return SQLite's statement for one row."""
    from sqlalchemy.dialects import sqlite

    statement = insert_into(table, "sqlite").on_conflict_do_nothing().inline()
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="qmark"), column_keys=list(columns)))


@lru_cache
def _insert_arrays(table: Table, columns: tuple[str, ...]) -> str:
    """Return PostgreSQL's statement for an array per column."""
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    make_dialect: Callable[[], Dialect] = PGDialect_psycopg
    dialect = make_dialect()
    preparer, chosen = dialect.identifier_preparer, [table.c[name] for name in columns]
    target = f"{preparer.format_table(table)} ({', '.join(map(preparer.format_column, chosen))})"
    arrays = ", ".join(f"%b::{column.type.compile(dialect)}[]" for column in chosen)
    return f"INSERT INTO {target} SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608 - names of columns and types


def _batched_by_length(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """Split rows into batches that fit into one statement of PostgreSQL."""
    batch: list[Values] = []
    length = 0
    for row in rows:
        batch.append(row)
        length += sum(len(value) for value in row if isinstance(value, str | bytes))
        if length > MAX_CHARACTERS_PER_STATEMENT:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


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
