"""Readers for data sets in files (JSONL, JSON, CSV, TSV, Parquet), data frames and other iterables."""

from __future__ import annotations

import csv
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from germane.errors import UsageError
from germane.evaluation.parquet import list_row_groups, read_row_group

_BOM = b"\xef\xbb\xbf"
_csv_limit_lock = threading.Lock()
"""Protects the csv module's field size limit, which is global to the process."""
_MAX_CSV_FIELD = min(sys.maxsize, 2**31 - 1)

Record = tuple[str, Any]
"""A record's location, such as ``answers.csv, line 2``, and its content."""


def iterate_records(rows: Any) -> Iterator[Record]:
    """Yield the location and content of each record in a file, a data frame, a mapping of columns, or an iterable.

    Raises:
        UsageError: the object contains no records, or the file cannot be read.
    """
    if isinstance(rows, (str, os.PathLike)):
        return read_file_records(Path(rows))
    if isinstance(rows, Mapping):
        names = [str(name) for name in rows]
        if names and all(hasattr(part, "column_names") for part in rows.values()):
            raise UsageError(
                f"rows must be one split, such as rows[{names[0]!r}], "
                f"not a {type(rows).__name__} with the splits {', '.join(names)}"
            )
        return _iterate_columns(rows)
    records: Iterable[Any]
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):  # pandas
        records = rows.to_dict("records")
    elif isinstance(rows, Iterable):
        records = rows
    else:
        raise UsageError(
            f"rows must be mappings, a pandas data frame, a data set or a file name, not {type(rows).__name__}"
        )
    return ((f"row {number}", record) for number, record in enumerate(records))


def _iterate_columns(columns: Mapping[Any, Any]) -> Iterator[Record]:
    """Yield the location and content of each row in a mapping of column names to lists, arrays or series of cells."""
    lists = {name: _to_cells(name, cells) for name, cells in columns.items()}
    if len({len(cells) for cells in lists.values()}) > 1:
        counts = ", ".join(f"{str(name)!r} has {len(cells)}" for name, cells in lists.items())
        raise UsageError(f"the columns of rows have different lengths: {counts}. Pass one cell per row in each column")
    for number, cells in enumerate(zip(*lists.values(), strict=True)):
        yield f"row {number}", dict(zip(lists, cells, strict=True))


def _to_cells(name: Any, cells: Any) -> list[Any]:
    """Return a column's cells as a list. Raise a usage error if they are a single value, or have no order."""
    if isinstance(cells, (set, frozenset, Mapping)) or hasattr(cells, "columns"):
        raise UsageError(
            f"the column {str(name)!r} of rows must be a list with one cell for each row, not a {type(cells).__name__}"
        )
    is_single = isinstance(cells, (str, bytes)) or getattr(cells, "shape", (1,)) == ()
    if is_single or not isinstance(cells, Iterable):
        raise UsageError(
            "rows must be a list of mappings, one for each row, or a mapping of columns to lists, not a single mapping "
            f"(the column {str(name)!r} is a {type(cells).__name__})"
        )
    to_pylist = getattr(cells, "to_pylist", None)  # Arrow's own cells are not Python values
    return list(cells if to_pylist is None else to_pylist())


def read_file_records(path: Path) -> Iterator[Record]:
    """Yield the location and content of each record in a file, or in all Parquet files in a folder.

    The suffix of the file name determines the format.

    Raises:
        UsageError: the file cannot be read. The message names the file, the line, and the fix.
    """
    read = _read_parquet if path.is_dir() else _FORMATS.get(path.suffix.lower())
    if read is None:
        raise UsageError(
            f"{path} has an unsupported suffix: use one of {', '.join(_FORMATS)}, or pass the rows instead"
        )
    try:
        yield from read(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _read_jsonl(path: Path) -> Iterator[Record]:
    for number, line in _read_lines(path):
        if line.strip():
            location = _location(path, number)
            yield location, _parse_json(line, location, "one JSON object per line")


def _read_json(path: Path) -> Iterator[Record]:
    text = "".join(line for _, line in _read_lines(path))
    content = _parse_json(text, str(path), "a list of objects; for JSON Lines, use the suffix .jsonl")
    if not isinstance(content, list):
        raise UsageError(f"{path} contains a {type(content).__name__}, not a list of objects")
    yield from ((f"{path}, row {number}", record) for number, record in enumerate(content, 1))


def _read_csv(path: Path) -> Iterator[Record]:
    lines = (line for _, line in _read_lines(path))
    header = next(lines, "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=header.count)
    reader = csv.reader(itertools.chain([header], lines), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in _next_cells(reader) or []]
        if not any(names):
            raise UsageError(f"{path} is empty: the first line must name the columns")
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise UsageError(f"{path} has duplicate columns {', '.join(map(repr, duplicates))}: rename them")
        while (cells := _next_cells(reader)) is not None:
            if not cells:
                continue
            location = _location(path, reader.line_num)
            if len(cells) != len(names):
                raise UsageError(
                    f"{location} has {len(cells)} fields, but the header has {len(names)}: quote fields that contain "
                    "commas or line breaks"
                )
            yield location, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise UsageError(
            f"{_location(path, reader.line_num)} is not CSV: {error}; quote fields that contain quotes, commas or line "
            'breaks, and double the quotes in them ("")'
        ) from None


def _next_cells(reader: Iterator[list[str]]) -> list[str] | None:
    """Return the cells of the next row, which may have any length; None at the end."""
    # The limit is raised only here, because other code may use the csv module before the next row is requested.
    with _csv_limit_lock:
        previous_limit = csv.field_size_limit(_MAX_CSV_FIELD)
        try:
            return next(reader, None)
        finally:
            csv.field_size_limit(previous_limit)


def _read_parquet(path: Path) -> Iterator[Record]:
    for group in list_row_groups(path):
        yield from read_row_group(group)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line in a UTF-8 file. Only ``\\n`` ends a line."""
    start = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            content = line.removeprefix(_BOM) if number == 1 else line
            try:
                yield number, content.decode()
            except UnicodeDecodeError as error:
                position = start + len(line) - len(content) + error.start
                raise UsageError(
                    f"{_location(path, number)} is not UTF-8: byte {position} of the file is "
                    f"0x{content[error.start]:02x}; save the file as UTF-8"
                ) from None
            start += len(line)


def _parse_json(text: str, location: str, expected: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise UsageError(f"{location} is not JSON: {error.msg} at {where}; expected {expected}") from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or deeply nested lists
        raise UsageError(f"{location} cannot be read as JSON: {error}; expected {expected}") from None


def _location(path: Path, line: int) -> str:
    return f"{path}, line {line}"


_FORMATS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}
