"""``germane import``: brings back what was exported, or takes in a data set to be scored."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from germane.annotation import Mark
from germane.cli.commands.score import Columns
from germane.cli.core.output import database, harmless
from germane.cli.core.store import opened, settings_for
from germane.errors import UsageError
from germane.exchange import draw_of

if TYPE_CHECKING:
    from germane.exchange import Exchange
    from germane.storage import Dropped, Record, Store

STDIN = Path("-")
PAGE = 500
"""Exchanges in one transaction, at most."""
LARGE = 4_000_000
"""Bytes of lines after which a transaction ends before that: whoever captures waits for it on SQLite."""
LONGEST = 64_000_000
"""Bytes of one line."""
_LINES = {".jsonl", ".ndjson"}


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Leave out broken lines of an export, and say which.")
@click.option("--columns", type=Columns(), help="Your names of a data set's columns, such as question=q,answer=a.")
@database
def command(
    file: Path,
    skip_bad: bool,  # noqa: FBT001 - click passes it by name
    columns: dict[str, str] | None,
    database: str | None,
) -> None:
    """Bring back what `germane export` wrote. Once, however often the file is imported: it is JSONL.

    Of other files each row is a new exchange, which is scored as if an application had captured it.
    """
    exported = file == STDIN or (file.suffix.lower() in _LINES and _is_export(file))
    if exported and columns:
        raise click.UsageError("--columns is for data sets: an export has its own names")
    if skip_bad and not exported:
        raise click.UsageError("--skip-bad is for exports: of a data set each row needs a question and an answer")
    with opened(database) as store:
        if exported:
            _restore(store, file, skip_bad=skip_bad)
            return
        count = _take_in(store, _new_exchanges(file, columns, settings_for(database).service))
    click.echo(f"exchanges read from {file}: {count}; those that are new wait to be scored")


def _is_export(file: Path) -> bool:
    with file.open("rb") as lines:
        try:
            first = json.loads(next(lines, b""))
        except (ValueError, RecursionError):
            return True  # where the line is called broken
    return (
        isinstance(first, dict) and "version" in first and not first.keys().isdisjoint({"exchange", "dropped", "mark"})
    )


def _restore(store: Store, file: Path, *, skip_bad: bool) -> None:
    taken = _Taken(store)
    with _source(file) as lines:
        for number, line in enumerate(_lines(lines), 1):
            try:
                taken.add(_read(line), len(line))
            except UsageError as error:
                place = f"{'standard input' if file == STDIN else file}, line {number}"
                if not skip_bad:
                    taken.flush()
                    raise UsageError(
                        f"{place} {error}. The lines before it are in; mend it and import again: nothing comes twice. "
                        "Or leave such lines out with --skip-bad"
                    ) from None
                click.echo(f"left out: {place} {harmless(str(error))}", err=True)
    taken.flush()
    click.echo(f"exchanges read: {taken.seen}, of them new: {taken.exchanges}; new tasks: {taken.tasks}")


class _Taken:
    """Writes what comes in by pages, and counts."""

    def __init__(self, store: Store) -> None:
        self.seen = self.exchanges = self.tasks = 0
        self._store = store
        self._records: list[Record] = []
        self._dropped: list[Dropped] = []
        self._marks: list[Mark] = []
        self._bytes = 0

    def add(self, one: Record | Dropped | Mark | None, size: int) -> None:
        """Take what one line of so many bytes says; None for an empty line."""
        from germane.storage import Record

        if isinstance(one, Record):
            self._records.append(one)
        elif isinstance(one, Mark):
            self._marks.append(one)
        elif one is not None:
            self._dropped.append(one)
        self._bytes += size
        if len(self._records) + len(self._dropped) + len(self._marks) >= PAGE or self._bytes >= LARGE:
            self.flush()

    def flush(self) -> None:
        """Write what is there."""
        restored = self._store.restore(self._records)
        self._store.restore_dropped(self._dropped)
        self._store.add_marks(self._marks)
        self.seen += len(self._records)
        self.exchanges += restored.exchanges
        self.tasks += restored.tasks
        self._records, self._dropped, self._marks, self._bytes = [], [], [], 0


@contextmanager
def _source(file: Path) -> Iterator[IO[bytes]]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with file.open("rb") as lines:
            yield lines
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    """Return lines, and of one that is too long its parts: it is never in memory as a whole."""
    return iter(lambda: source.readline(LONGEST), b"")


def _read(line: bytes) -> Record | Dropped | Mark | None:
    from germane.storage import read

    if len(line) >= LONGEST:
        raise UsageError(f"is longer than {LONGEST // 1_000_000} MB")
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8") from None
    return read(text) if text.strip() else None


def _new_exchanges(file: Path, columns: Mapping[str, str] | None, service: str) -> Iterator[Exchange]:
    from germane.evaluation import read_rows

    for row in read_rows(file, columns):
        if {"exchange_id", "fingerprint"} <= row.exchange.attributes.keys():
            raise UsageError(f"{file} is a flat export, which cannot be brought back: export as JSONL")
        found = row.exchange
        route = file.stem if found.route == found.service else found.route
        yield replace(found, service=service, route=route, draw=draw_of(found.id), traced=False)


def _take_in(store: Store, exchanges: Iterator[Exchange]) -> int:
    count = 0
    while page := list(islice(exchanges, PAGE)):
        store.add(page)
        count += len(page)
    return count
