"""``germane export``: write exchanges, scores and feedback to a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Final, Self

import click

from germane import sanitize, storage
from germane.cli.core.command import DATABASE, Command
from germane.cli.core.output import EXIT_ERROR
from germane.cli.core.params import SINCE
from germane.cli.core.store import open_store
from germane.errors import UsageError
from germane.installation import install_command

if TYPE_CHECKING:
    from germane.storage import ExportSelection, FlatRows, StoredRecord, TrackingStore

STDOUT: Final = Path("-")
PAGE_SIZE: Final = 500
"""Maximum number of exchanges to hold in memory. Each may take several hundred kilobytes."""
NUMBER_COLUMNS: Final = {"duration", "value", "cost", "weight"}
TIME_COLUMNS: Final = {"started_at", "scored_at"}
_FORMATS: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


@click.command("export", cls=Command, shared=(DATABASE,))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=STDOUT)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "csv", "parquet"]),
    help="Output format. By default, derived from the file extension.",
)
@click.option("--since", type=SINCE, help="Only answers given since this time.")
@click.option("--until", type=SINCE, help="Only answers given before this time.")
@click.option("--route", help="Only this route.")
@click.option("--scorer", help="Only this scorer's scores, and the exchanges assigned to it.")
def command(
    file: Path,
    format_: str | None,
    since: datetime | None,
    until: datetime | None,
    route: str | None,
    scorer: str | None,
) -> None:
    """Export exchanges, scores and feedback.

    Writes to FILE or standard output. JSONL contains everything, and `germane import` restores it. CSV and Parquet
    contain one row per exchange and scorer, for spreadsheets and notebooks.
    """
    format_ = format_ or _FORMATS.get(file.suffix.lower()) or ("jsonl" if file == STDOUT else None)
    if format_ is None:
        raise click.UsageError(f"cannot determine the format of {file}; pass --format, or use .jsonl, .csv or .parquet")
    selection = storage.ExportSelection(since=since, until=until, route=route, scorer=scorer)
    with open_store() as store, _open_output(file) as target:
        exchange_count = row_count = 0
        if format_ == "jsonl":
            for page in iter_pages(store, selection):
                target.write("".join(f"{record.dump()}\n" for record in page).encode())
                exchange_count += len(page)
            target.write("".join(f"{line}\n" for line in store.transfer.load_other_lines(selection)).encode())
            written = sanitize.count_noun(exchange_count, "exchange")
        else:
            with CsvWriter(target) if format_ == "csv" else ParquetWriter(target) as writer:
                for page in iter_pages(store, selection):
                    flat = [record.flatten() for record in page]
                    writer.write(flat)
                    exchange_count, row_count = (
                        exchange_count + len(page),
                        row_count + sum(len(rows) for _, rows in flat),
                    )
            exchanges = sanitize.count_noun(exchange_count, "exchange")
            written = f"{sanitize.count_noun(row_count, 'row')} for {exchanges}"
    if file != STDOUT:
        click.echo(f"Wrote {written} to {file}.", err=True)


@contextmanager
def _open_output(file: Path) -> Iterator[IO[bytes]]:
    """Open standard output, a pipe or a file. A regular file is renamed to its final name once it is complete."""
    part = file.with_name(f"{file.name}.part") if file != STDOUT and (file.is_file() or not file.exists()) else None
    try:
        if file == STDOUT:
            # Use a separate buffer, because an unbuffered standard output may silently write less than it is given.
            with open(sys.stdout.fileno(), "wb", closefd=False) as target:
                yield target
        else:
            with (part or file).open("wb") as target:
                yield target
            if part is not None:
                part.replace(file)
    except BrokenPipeError:  # the reader has closed the pipe: exit silently, as other command-line tools do
        raise click.exceptions.Exit(EXIT_ERROR) from None
    except OSError as error:
        name = "standard output" if file == STDOUT else file
        raise UsageError(f"cannot write {name}: {error.strerror or error}") from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def iter_pages(store: TrackingStore, selection: ExportSelection) -> Iterator[list[StoredRecord]]:
    """Yield the selected records page by page, so that only one page is in memory."""
    page = store.transfer.load_stored(selection, limit=PAGE_SIZE)
    while page:
        yield page
        page = store.transfer.load_stored(selection, after=page[-1], limit=PAGE_SIZE)


class CsvWriter:
    """Writes CSV in UTF-8. Captured text is escaped, so that spreadsheets do not interpret it as a formula."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._lines: list[str] = []
        self._writer = csv.writer(SimpleNamespace(write=self._lines.append))

    def __enter__(self) -> Self:
        self._writer.writerow(storage.FLAT_COLUMNS)
        self._target.write(self._lines.pop().encode())
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because the caller closes the target."""

    def write(self, page: Sequence[FlatRows]) -> None:
        """Write the rows of a page of exchanges. The cells that an exchange's rows share are encoded once."""
        cell = sanitize.csv_cell
        for exchange, rows in page:
            for values in (exchange, *rows):
                self._writer.writerow([cell(value) if type(value) is str else value for value in values])
            shared, *own = self._lines
            self._lines.clear()
            beginning = f"{shared[:-2]},"  # without the line break
            self._target.write("".join([beginning + line for line in own]).encode())


class ParquetWriter:
    """Writes Parquet, with one row group per page. Raises UsageError if pyarrow is not installed."""

    def __init__(self, target: IO[bytes]) -> None:
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            raise UsageError(f"Parquet requires pyarrow; run: {install_command('pandas')}") from None
        types = dict.fromkeys(NUMBER_COLUMNS, arrow.float64())
        types |= dict.fromkeys(TIME_COLUMNS, arrow.timestamp("us", tz="UTC"))
        self._schema = arrow.schema([(name, types.get(name, arrow.string())) for name in storage.FLAT_COLUMNS])
        self._table = arrow.Table
        self._writer = parquet.ParquetWriter(target, self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, page: Sequence[FlatRows]) -> None:
        """Write the rows of a page of exchanges."""
        if rows := [(*exchange, *row) for exchange, more in page for row in more]:
            columns = [
                [value and datetime.fromisoformat(value) for value in values] if name in TIME_COLUMNS else values
                for name, values in zip(storage.FLAT_COLUMNS, zip(*rows, strict=True), strict=True)
            ]
            self._writer.write_table(self._table.from_arrays(columns, schema=self._schema))
