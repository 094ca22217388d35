"""``germane import``: restore an export, or add a data set to be scored."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from germane import evaluation, sanitize, storage
from germane.annotation import RecordedScore
from germane.cli.core.command import DATABASE, Command
from germane.cli.core.params import COLUMN_NAMES
from germane.cli.core.store import load_command_settings, open_store
from germane.errors import UsageError
from germane.exchange import sampling_key_for
from germane.registry import BUILTIN_SCORER_NAMES

if TYPE_CHECKING:
    from germane.exchange import Exchange
    from germane.storage import TrackingStore

STDIN: Final = Path("-")
MAX_ITEMS_PER_TRANSACTION: Final = 500
SCORES_COLUMN: Final = "scores"
MISSING: Final = frozenset({"", "nan", "null", "none", "<na>", "na", "n/a"})
"""Texts that stand for missing values in CSV files written by pandas, R and others, in lowercase."""
_FIX_IDS: Final = (
    "An id identifies one exchange in the whole database: correct the ids, name another column with --columns "
    "id=COLUMN, or remove the column to have ids generated"
)


@click.command("import", cls=Command, shared=(DATABASE,))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Skip invalid lines in an export, and report them.")
@click.option("--columns", type=COLUMN_NAMES, help="Names of a data set's columns, such as question=q,answer=a.")
@click.option("--ignore-scores", is_flag=True, help="Score all rows of a data set, even if it contains scores.")
def command(
    file: Path,
    skip_bad: bool,  # noqa: FBT001 - click passes it by name
    columns: dict[str, str] | None,
    ignore_scores: bool,  # noqa: FBT001
) -> None:
    """Restore a JSONL export, or add a data set to be scored.

    Importing a file twice has no effect, because items that exist already are skipped. Each row of a file that is not
    an export becomes a new exchange and is sampled and scored as if an application had captured it. If a row is
    invalid, nothing is imported. Columns named after a built-in scorer, and all fields of a "scores" column, are stored
    as scores. These scorers do not score the row again.
    """
    is_export = file == STDIN or (file.suffix.lower() in {".jsonl", ".ndjson"} and _is_export(file))
    if is_export and columns:
        raise click.UsageError("--columns applies to data sets, not to exports")
    if ignore_scores and is_export:
        raise click.UsageError("--ignore-scores applies to data sets; an export is restored with its scores")
    if skip_bad and not is_export:
        raise click.UsageError(
            "--skip-bad applies only to exports; each row of a data set needs a question and an answer"
        )
    with open_store() as store:
        if is_export:
            _restore_export(store, file, skip_bad=skip_bad)
            return
        service = load_command_settings().service
        # Check all rows before writing any, so that a file with an invalid row leaves nothing behind. The file is read
        # twice, so that only the ids of a large file are held in memory.
        try:
            known = _find_known(store, _read_data_set(file, columns, service, ignore_scores=ignore_scores))
        except UsageError as error:
            raise UsageError(f"{error}. Nothing was imported") from None
        rows = _read_data_set(file, columns, service, ignore_scores=ignore_scores)
        count = count_of_scores = 0
        while page := list(islice(rows, MAX_ITEMS_PER_TRANSACTION)):
            # An archived exchange is no longer in the database, where it would be added a second time.
            store.exchanges.add([row.exchange for row in page if row.exchange.id not in known])
            scores = [score for row in page for score in row.scores]
            store.exchanges.record_scores(scores)  # ignores the scores of archived exchanges
            count, count_of_scores = count + len(page), count_of_scores + len(scores)
    read = sanitize.count_noun(count, "exchange")
    with_scores = f" with {sanitize.count_noun(count_of_scores, 'score')}" if count_of_scores else ""
    skipped = f" {len(known)} {'was' if len(known) == 1 else 'were'} imported before." if known else ""
    click.echo(f"Read {read}{with_scores} from {file}.{skipped} New exchanges will be sampled and scored.")


def _is_export(file: Path) -> bool:
    with file.open("rb") as lines:
        return storage.is_export_line(next(lines, b""))


def _restore_export(store: TrackingStore, file: Path, *, skip_bad: bool) -> None:
    batch = store.transfer.open_import()
    with _open_input(file) as source:
        # Reading at most max_line_bytes keeps longer lines out of memory.
        lines = iter(lambda: source.readline(batch.max_line_bytes), b"")
        for number, line in enumerate(lines, 1):
            try:
                batch.add_line(line)
            except UsageError as error:
                place = f"{'standard input' if file == STDIN else file}, line {number}"
                if not skip_bad:
                    batch.flush()
                    raise UsageError(
                        f"{place}: {error}. Earlier lines were imported; fix the line and import again, or skip "
                        "invalid lines with --skip-bad"
                    ) from None
                click.echo(f"skipped: {place}: {sanitize.line(str(error))}", err=True)
    batch.flush()
    click.echo(f"exchanges read: {batch.read}, new: {batch.new_exchanges}; new tasks: {batch.new_tasks}")


@contextmanager
def _open_input(file: Path) -> Iterator[IO[bytes]]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with file.open("rb") as lines:
            yield lines
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from None


@dataclass(frozen=True, slots=True)
class _DataSetRow:
    """A row of a data set, as it is imported."""

    location: str
    """Location of the row, such as ``answers.csv, line 2``."""
    exchange: Exchange
    scores: list[RecordedScore]


def _find_known(store: TrackingStore, rows: Iterator[_DataSetRow]) -> set[str]:
    """Return the ids of rows that are already in the database or the archive. All rows are validated."""
    ids, known = set[str](), set[str]()
    while page := list(islice(rows, MAX_ITEMS_PER_TRANSACTION)):
        stored = store.answers.get_exchanges([row.exchange.id for row in page])
        for row in page:
            id_ = row.exchange.id
            if id_ in ids:
                raise UsageError(f"{row.location} has the id {id_!r:.60} of an earlier row. {_FIX_IDS}")
            ids.add(id_)
            if id_ not in stored:
                continue
            known.add(id_)
            texts = (stored[id_].question, stored[id_].answer)
            is_erased = texts == (None, None)
            if not is_erased and texts != (row.exchange.question, row.exchange.answer):
                raise UsageError(
                    f"{row.location} has the id {id_!r:.60} of a stored exchange with a different question or answer. "
                    f"{_FIX_IDS}"
                )
    return known


def _read_data_set(
    file: Path, columns: Mapping[str, str] | None, service: str, *, ignore_scores: bool
) -> Iterator[_DataSetRow]:
    """Yield each row as an exchange, with its scores."""
    modified_at = file.stat().st_mtime_ns
    for number, row in enumerate(evaluation.read_rows(file, columns)):
        exchange = row.exchange
        if not row.has_id:
            # A row gets the same id in every import of a file, so an interrupted import can be repeated. If the same
            # rows are written to a new file, they get new ids. The time comes first, as in new_exchange_id().
            content = repr((modified_at, number, exchange.question, exchange.answer)).encode("utf-8", "replace")
            id_ = f"{modified_at // 1_000_000:012x}"[-12:] + sha256(content).hexdigest()[:20]
            exchange = replace(exchange, id=id_)
        if {"exchange_id", "fingerprint"} <= exchange.attributes.keys():
            raise UsageError(f"{file} is a flat export, which cannot be restored; export as JSONL")
        route = file.stem if exchange.route == exchange.service else exchange.route
        attributes, scores = dict(exchange.attributes), []
        if not ignore_scores:
            try:
                values = _parse_scores(row.other_columns)
            except UsageError as error:
                raise UsageError(f"{row.location} {error}") from None
            attributes = {name: value for name, value in attributes.items() if name not in {*values, SCORES_COLUMN}}
            now = datetime.now(UTC)
            scores = [
                RecordedScore(exchange_id=exchange.id, name=name, value=value, recorded_at=now)
                for name, value in values.items()
            ]
        exchange = replace(
            exchange,
            service=service,
            route=route,
            attributes=attributes,
            sampling_key=sampling_key_for(exchange.id),
            traced=False,
        )
        yield _DataSetRow(row.location, exchange, scores)


def _parse_scores(cells: Mapping[str, Any]) -> dict[str, float]:
    """Return a row's scores by name, from columns named after built-in scorers, and from the field ``scores``."""
    given: dict[str, Any] = {name: cell for name, cell in cells.items() if name in BUILTIN_SCORER_NAMES}
    nested = cells.get(SCORES_COLUMN)
    if not _is_missing(nested):
        try:
            nested = json.loads(nested) if isinstance(nested, str) else nested
        except (ValueError, RecursionError):
            nested = None
        if not isinstance(nested, Mapping):
            raise UsageError(
                f"has a {SCORES_COLUMN} cell that is not a JSON object mapping scorer names to numbers. Correct it, "
                "leave it empty, or import without scores: --ignore-scores"
            )
        given |= nested
    return {name: _parse_score(name, cell) for name, cell in given.items() if not _is_missing(cell)}


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is empty, or contains a text or value that data frames use for missing values."""
    return not isinstance(cell, Mapping) and str(cell).strip().casefold() in MISSING


def _parse_score(name: str, cell: Any) -> float:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = math.nan
    if not -1 <= value <= 1:
        raise UsageError(
            f"has the score {sanitize.line(name, 60)} = {sanitize.line(repr(cell), 60)}, which is not a number from -1 "
            "to 1. Correct it, leave it empty, or import without scores: --ignore-scores"
        )
    return value
