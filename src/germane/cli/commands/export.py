"""``germane export``: exchanges with all that is known of them, to a file."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import click

from germane.cli.core.output import Since, database
from germane.cli.core.store import opened
from germane.errors import UsageError
from germane.sanitize import cell, counted
from germane.storage import Record, made_by

if TYPE_CHECKING:
    from germane.storage import Record, Selection, Store


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


STDOUT = Path("-")
PAGE = 100
"""Exchanges in memory at once: each may hold some hundred kilobytes."""


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=STDOUT)
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv", "parquet"]), help="By default the file's ending.")
@click.option("--since", type=Since(), help="Answers given since then.")
@click.option("--until", type=Since(), help="Answers given before.")
@click.option("--route", help="Only this route.")
@click.option("--scorer", help="Only what this scorer looked at, and its scores.")
@database
def command(
    file: Path,
    kind: str | None,
    since: datetime | None,
    until: datetime | None,
    route: str | None,
    scorer: str | None,
    database: str | None,
) -> None:
    """Write exchanges, scores and feedback to a file, or to stdout.

    JSONL holds all that is known, and `germane import` brings it back. CSV and Parquet hold one row for each exchange
    and scorer, for a spreadsheet or a notebook.
    """
    from germane.storage import Selection

    kind = kind or _kind_of(file)
    chosen = Selection(since=since, until=until, route=route, scorer=scorer)
    with opened(database) as store, _target(file) as target:
        told = _WRITERS[kind](store, chosen, target)
    if file != STDOUT:
        click.echo(f"{told} in {file}", err=True)


def _kind_of(file: Path) -> str:
    kind = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}.get(file.suffix.lower())
    if kind is None and file != STDOUT:
        raise click.UsageError(f"{file}: say --format, or let the name end in .jsonl, .csv or .parquet")
    return kind or "jsonl"


@contextmanager
def _target(file: Path) -> Iterator[IO[bytes]]:
    """Open what is written to.

    Raises:
        UsageError: it cannot be written, or the disk is full.
    """
    try:
        with _piped() if file == STDOUT else _opened(file) as target:
            yield target
    except BrokenPipeError:  # whoever read it has gone: that is the end without a word, as with other commands
        raise click.exceptions.Exit(1) from None
    except OSError as error:
        name = "standard output" if file == STDOUT else file
        raise UsageError(f"{name} cannot be written: {error.strerror or error}") from None


def _piped() -> IO[bytes]:
    """Return stdout with a buffer of our own: an unbuffered one may take a part of what is written, unnoticed."""
    return open(sys.stdout.fileno(), "wb", closefd=False)


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its name when it is whole: half an export is none. Pipes and devices stay."""
    if file.exists() and not file.is_file():
        with file.open("wb") as pipe:
            yield pipe
        return
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("wb") as opened_file:
            yield opened_file
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def pages(store: Store, chosen: Selection) -> Iterator[list[Record]]:
    """Return what was chosen, page by page: never all of it is in memory."""
    page = store.records(chosen, limit=PAGE)
    while page:
        yield page
        page = store.records(chosen, after=page[-1], limit=PAGE)


def _jsonl(store: Store, chosen: Selection, target: IO[bytes]) -> str:
    from germane.storage import dumped

    count = 0
    for page in pages(store, chosen):
        target.write("".join(f"{dumped(record)}\n" for record in page).encode())
        count += len(page)
    marks = store.marks(since=chosen.since, until=chosen.until, limit=None)
    lines = [dumped(one) for one in store.dropped(chosen)] + [dumped(one) for one in marks]
    target.write("".join(f"{line}\n" for line in lines).encode())
    return counted(count, "exchange")


def _csv(store: Store, chosen: Selection, target: IO[bytes]) -> str:

    return _flat(store, chosen, CsvFile(target))


def _parquet(store: Store, chosen: Selection, target: IO[bytes]) -> str:

    return _flat(store, chosen, ParquetFile(target))


def _flat(store: Store, chosen: Selection, table: Any) -> str:

    count = written = 0
    with table:
        for page in pages(store, chosen):
            rows = [row for record in page for row in flattened(record)]
            table.write(rows)
            count, written = count + len(page), written + len(rows)
    return f"{counted(written, 'row')} of {counted(count, 'exchange')}"


_WRITERS = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}
