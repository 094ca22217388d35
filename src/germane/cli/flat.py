"""Exchanges and scores as a table: one row for each exchange and scorer, as in the view ``answers``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import IO, Any, Self

from germane.errors import UsageError
from germane.shown import cell
from germane.storage import Record, made_by

Row = Mapping[str, Any]
_OF_EXCHANGE = (
    "trace_id", "service", "route", "model", "prompt_version", "started_at", "duration", "question", "answer", "status",
)  # fmt: skip
_OF_SCORE = ("value", "label", "explanation", "judge", "cost", "scored_at")
COLUMNS = (
    "exchange_id", "trace_id", "service", "route", "model", "prompt_version", "started_at", "duration", "question",
    "answer", "contexts", "status", "scorer", "fingerprint", "state", "reason", "value", "label", "explanation",
    "judge", "cost", "scored_at", "weight",
)  # fmt: skip
_NUMBERS, _MOMENTS = {"duration", "value", "cost", "weight"}, {"started_at", "scored_at"}


def flattened(record: Record) -> Iterator[Row]:
    """Return one row for each scorer that was to look at the exchange, whatever came of it."""
    exchange = record.exchange
    shared = {name: exchange[name] for name in _OF_EXCHANGE}
    contexts = json.dumps([context["text"] for context in exchange["contexts"]], ensure_ascii=False)
    scores = {(score["scorer"], score["fingerprint"]): score for score in record.scores}
    for task in record.tasks:
        scorer, fingerprint = made_by(task)
        score = scores.get((scorer, fingerprint), dict.fromkeys([*_OF_SCORE, "sampling_probability"]))
        probability = score["sampling_probability"] or exchange["sampling_probability"]
        yield {
            **shared,
            "exchange_id": exchange["id"],
            "contexts": contexts,
            "scorer": scorer,
            "fingerprint": fingerprint,
            "state": task["state"],
            "reason": task["reason"],
            **{name: score[name] for name in _OF_SCORE},
            "weight": 1.0 / probability if probability else None,
        }


class CsvFile:
    """CSV in UTF-8, in which no cell is a formula: questions and answers are hostile text."""

    def __init__(self, target: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True)
        self._writer = csv.writer(self._text)

    def __enter__(self) -> Self:
        self._writer.writerow(COLUMNS)
        return self

    def __exit__(self, *_: object) -> None:
        self._text.detach()  # it is not ours to close

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        self._writer.writerows([_shown(row[name]) for name in COLUMNS] for row in rows)


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return cell(value) if isinstance(value, str) else value


class ParquetFile:
    """Parquet, one row group for each page.

    Raises:
        UsageError: pyarrow is not installed.
    """

    def __init__(self, target: IO[bytes]) -> None:
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            raise UsageError("Parquet needs pyarrow; install it with: pip install 'germane[pandas]'") from None
        kinds = dict.fromkeys(_NUMBERS, arrow.float64()) | dict.fromkeys(_MOMENTS, arrow.timestamp("us", tz="UTC"))
        self._schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in COLUMNS])
        self._table = arrow.Table
        self._writer = parquet.ParquetWriter(target, self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        if rows:
            self._writer.write_table(self._table.from_pylist(list(rows), schema=self._schema))
