"""Data sets in files: JSONL, JSON, CSV and Parquet."""

from __future__ import annotations

import csv
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from germane.errors import UsageError

Record = tuple[str, Any]
PANDAS = "install it with: pip install 'germane[pandas]'"
_BOM = b"\xef\xbb\xbf"
_csv_limit = threading.Lock()
"""The longest field that the csv module takes is a setting of the whole process."""


def records_in(path: Path) -> Iterator[Record]:
    """Return the records of a file, each with its place; the name's ending says of what kind the file is.

    Raises:
        UsageError: the file cannot be read; names it, the line, and the fix.
    """
    read = _KINDS.get(path.suffix.lower())
    if read is None:
        raise UsageError(f"{path} has none of the endings {', '.join(_KINDS)}: rename it, or pass its rows themselves")
    try:
        yield from read(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _jsonl(path: Path) -> Iterator[Record]:
    for number, line in _lines(path):
        if line.strip():
            yield _place(path, number), _json(line, _place(path, number), "one JSON object for each line")


def _json_list(path: Path) -> Iterator[Record]:
    found = _json("".join(line for _, line in _lines(path)), str(path), "a list of objects; JSON lines end in .jsonl")
    if not isinstance(found, list):
        raise UsageError(f"{path} holds a {type(found).__name__}, not a list of objects")
    yield from ((f"{path}, row {number}", record) for number, record in enumerate(found, 1))


def _csv(path: Path) -> Iterator[Record]:
    with _csv_limit:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            records = list(_csv_records(path))
        finally:
            csv.field_size_limit(before)
    yield from records


def _csv_records(path: Path) -> Iterator[Record]:
    lines = (line for _, line in _lines(path))
    header = next(lines, "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=header.count)
    reader = csv.reader(_again(header, lines), delimiter=delimiter, strict=True)
    try:
        names = _names(next(reader, []), path)
        for cells in reader:
            if cells:
                yield _place(path, reader.line_num), _record(names, cells, _place(path, reader.line_num))
    except csv.Error as error:
        raise UsageError(
            f"{_place(path, reader.line_num)} is not CSV: {error}; a field that holds a quote, a comma or a line end "
            'stands in quotes, and a quote in it is doubled ("")'
        ) from None


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _names(header: list[str], path: Path) -> list[str]:
    names = [name.strip() for name in header]
    if not any(names):
        raise UsageError(f"{path} is empty: its first line must name the columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{path} has two columns {', '.join(map(repr, twice))}: each needs a name of its own")
    return names


def _record(names: list[str], cells: list[str], place: str) -> Mapping[str, str]:
    if len(cells) != len(names):
        raise UsageError(
            f"{place} has {len(cells)} fields, and the header {len(names)}: put fields that hold commas or line ends "
            "into quotes"
        )
    return dict(zip(names, cells, strict=True))


def _parquet(path: Path) -> Iterator[Record]:
    try:
        pandas = import_module("pandas")
        with path.open("rb") as file:
            frame = pandas.read_parquet(file)
    except ImportError:
        raise UsageError(f"{path}: Parquet needs pandas and pyarrow; {PANDAS}") from None
    except ValueError as error:  # pyarrow's errors are ones
        raise UsageError(f"{path} is no Parquet file: {error}") from None
    yield from ((f"{path}, row {number}", record) for number, record in enumerate(frame.to_dict("records"), 1))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a UTF-8 file with their numbers; only ``\\n`` ends a line."""
    start = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(_BOM) if number == 1 else line
            try:
                yield number, text.decode()
            except UnicodeDecodeError as error:
                at = start + len(line) - len(text) + error.start
                raise UsageError(
                    f"{_place(path, number)} is not UTF-8: byte {at} of the file is 0x{text[error.start]:02x}; "
                    "save the file as UTF-8"
                ) from None
            start += len(line)


def _json(text: str, place: str, wanted: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise UsageError(f"{place} is not JSON: {error.msg} at {where}; needed is {wanted}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list in a list in a list ...
        raise UsageError(f"{place} cannot be read as JSON: {error}; needed is {wanted}") from None


def _place(path: Path, number: int) -> str:
    return f"{path}, line {number}"


_KINDS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json_list,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
}


def records_of(rows: Any) -> Iterator[tuple[str, Any]]:
    """Return the records of whatever holds some, each with its place.

    Raises:
        UsageError: it holds none, or a file cannot be read.
    """
    if isinstance(rows, (str, os.PathLike)):
        return records_in(Path(rows))
    return ((f"row {number}", record) for number, record in enumerate(_records(rows)))


def _records(rows: Any) -> Iterable[Any]:
    if isinstance(rows, Mapping):
        raise UsageError(_refusal(rows))
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):  # pandas
        records: Iterable[Any] = rows.to_dict("records")
        return records
    if not isinstance(rows, Iterable):
        raise UsageError(f"rows is a {type(rows).__name__}: give mappings, a pandas frame, a data set or a file's name")
    return rows


def _refusal(rows: Mapping[Any, Any]) -> str:
    names = [str(name) for name in rows]
    if names and all(hasattr(part, "column_names") for part in rows.values()):
        return f"rows is a {type(rows).__name__} of the splits {', '.join(names)}: give one, such as rows[{names[0]!r}]"
    return (
        "rows is one mapping: give a list of mappings, one for each row. A mapping of columns to lists becomes that "
        "by pandas.DataFrame(rows)"
    )
