"""Parquet data sets, read in batches, and score files. Memory does not depend on the size of a data set."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self
from uuid import uuid4

from germane.errors import UsageError
from germane.evaluation.summary import RowScores
from germane.installation import install_command
from germane.sanitize import clean_text
from germane.storage import clean_json

PANDAS: Final = "pandas"
"""The extra that contains pyarrow."""
SCHEMA_VERSION: Final = 1
"""Version of the columns of score files, in their metadata as ``germane.schema_version``."""
READ_ROWS: Final = 500
"""Number of rows to decode at a time."""
READ_BUFFER: Final = 1 << 20
"""Number of bytes of a column to read from a file at a time."""
SCORE_COLUMNS: Final[Mapping[str, str]] = {
    "row": "string", "id": "string", "scorer": "string", "fingerprint": "string", "value": "float64",
    "label": "string", "reason": "string", "explanation": "string", "details": "string", "judge": "string",
    "embedder": "string", "input_tokens": "int64", "output_tokens": "int64", "cost": "float64",
}  # fmt: skip
"""Columns of score files and their Arrow types. There is one row for each row of the data set and each scorer."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file."""

    file: str
    """Absolute path of the file."""
    name: str
    """Path of the file for display, as the caller gave it."""
    index: int
    rows: int
    first_row: int
    """Number of rows in the file before this group."""
    folder_columns: tuple[tuple[str, Any], ...] = ()
    """Columns whose values come from the names of the folders, such as ``day=2026-03-01``."""


def list_files(path: Path) -> list[Path]:
    """Return a file, or the files in a folder whose row groups :func:`list_row_groups` yields, in the same order."""
    return [Path(file) for file in sorted(_open_dataset(path).files)]


def list_row_groups(path: Path) -> Iterator[RowGroup]:
    """Yield the row groups of a file, or of all files in a folder and its partitions such as ``day=2026-03-01``.

    Raises:
        UsageError: pyarrow is not installed, or a file cannot be read.
    """
    datasets = _import_pyarrow(path, "pyarrow.dataset")
    for fragment in sorted(_open_dataset(path).get_fragments(), key=lambda fragment: fragment.path):
        name = str(path) if path.is_file() else fragment.path
        with _named_errors(name):
            groups = fragment.row_groups
        columns = tuple(datasets.get_partition_keys(fragment.partition_expression).items())
        first_row = 0
        for group in groups:
            yield RowGroup(str(Path(name).absolute()), name, group.id, group.num_rows, first_row, columns)
            first_row += group.num_rows


def read_row_group(group: RowGroup, columns: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location and content of each row of a row group.

    ``columns`` may contain names of nested fields such as ``meta.history``; None reads all columns. Columns that the
    file lacks are ignored. The file's other columns are None.

    Raises:
        UsageError: the file cannot be read, or has duplicate columns.
    """
    parquet = _import_pyarrow(Path(group.file), "pyarrow.parquet")
    with _named_errors(group.name), parquet.ParquetFile(group.file, buffer_size=READ_BUFFER, pre_buffer=False) as file:
        existing = file.schema_arrow.names
        if duplicates := sorted({name for name in existing if existing.count(name) > 1}):
            raise UsageError(f"{group.name} has duplicate columns {', '.join(map(repr, duplicates))}: rename them")
        names = None
        if columns is not None:
            wanted = {name.partition(".")[0] for name in columns} | set(columns)
            names = [name for name in existing if name in wanted]
        # A column of the file takes precedence over a folder, whose name is only text.
        defaults = {**dict.fromkeys(existing), **dict(group.folder_columns)}
        number = group.first_row
        for batch in file.iter_batches(READ_ROWS, row_groups=[group.index], columns=names, use_threads=False):
            for record in batch.to_pylist():
                number += 1
                yield f"{group.name}, row {number}", {**defaults, **record}


class ScoreFileWriter:
    """Writes a score file under a temporary name. :meth:`finish` renames the file; without it, no file is left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}{_TEMPORARY}")
        self._arrow = _import_pyarrow(path, "pyarrow")
        fields = [(name, getattr(self._arrow, kind)()) for name, kind in SCORE_COLUMNS.items()]
        metadata = {"germane.schema_version": str(SCHEMA_VERSION)}
        self._schema = self._arrow.schema(fields, metadata=metadata)
        self._writer = _import_pyarrow(path, "pyarrow.parquet").ParquetWriter(
            str(self._temporary), self._schema, compression="zstd"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._temporary.unlink(missing_ok=True)

    def write(self, rows: Sequence[RowScores]) -> None:
        """Write the scores of some rows, as one row group."""
        records = []
        for row in rows:
            for name, score in row.scores.items():
                details = clean_json(score.details)
                record = {
                    "row": row.location,
                    "id": row.exchange.id if row.has_id else None,
                    "scorer": name,
                    "reason": None if score.reason is None else str(score.reason),
                    "details": json.dumps(details, ensure_ascii=False, allow_nan=False) if details else None,
                    **{column: getattr(score, column) for column in _COPIED_COLUMNS},
                }
                # Judges and scorers may return lone surrogates, which cannot be encoded.
                records.append(
                    {column: clean_text(cell) if isinstance(cell, str) else cell for column, cell in record.items()}
                )
        self._writer.write_table(self._arrow.Table.from_pylist(records, schema=self._schema))

    def finish(self, metadata: Mapping[str, str] | None = None) -> None:
        """Add the metadata, and rename the file to its final name."""
        self._writer.add_key_value_metadata(dict(metadata or {}))
        self._writer.close()
        self._temporary.replace(self._path)


def remove_partial_files(folder: Path) -> None:
    """Remove the score files that processes were writing when they were killed."""
    for file in folder.glob(f".*.parquet.*{_TEMPORARY}"):
        file.unlink(missing_ok=True)


_TEMPORARY: Final = ".tmp"
_COPIED_COLUMNS: Final = tuple(
    name for name in SCORE_COLUMNS if name not in {"row", "id", "scorer", "reason", "details"}
)


def read_metadata(path: Path, key: str) -> str | None:
    """Return a value from a score file's metadata; None if the file does not have the key, or is not a Parquet file."""
    arrow, parquet = _import_pyarrow(path, "pyarrow"), _import_pyarrow(path, "pyarrow.parquet")
    try:
        content = parquet.read_metadata(str(path)).metadata or {}
    except (OSError, ValueError, arrow.ArrowException):
        return None
    value = content.get(key.encode())
    return None if value is None else value.decode()


def _open_dataset(path: Path) -> Any:
    """Open a file or a folder. The result's only columns are those of the folders' names, which files may repeat with
    another type.
    """
    datasets, filesystems = _import_pyarrow(path, "pyarrow.dataset"), _import_pyarrow(path, "pyarrow.fs")
    partitioning, files = None, [path.as_posix()]
    if path.is_dir():
        partitioning = datasets.HivePartitioning.discover()
        files = filesystems.FileSelector(path.as_posix(), recursive=True)
    options = datasets.FileSystemFactoryOptions(partitioning=partitioning)
    with _named_errors(str(path)):
        if not path.exists():
            raise FileNotFoundError(2, os.strerror(2))
        factory = datasets.FileSystemDatasetFactory(
            filesystems.LocalFileSystem(), files, datasets.ParquetFileFormat(), options
        )
        return factory.finish(factory.inspect_schemas()[-1])  # the last schema is that of the folders' names


@contextmanager
def _named_errors(name: str) -> Iterator[None]:
    """Raise pyarrow's errors as usage errors with the name of the file."""
    arrow = _import_pyarrow(Path(name), "pyarrow")
    try:
        yield
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{name} is not a Parquet file: {error}") from None
    except arrow.ArrowException as error:  # not all of pyarrow's errors are value errors
        raise UsageError(f"{name} cannot be read: {error}") from None


def _import_pyarrow(path: Path, module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(f"{path}: Parquet needs pyarrow; install it with: {install_command(PANDAS)}") from None


def write_scores(path: Path, rows: Sequence[RowScores]) -> None:
    """Write a score file. Raise a usage error if pyarrow is not installed."""
    with ScoreFileWriter(path) as file:
        for start in range(0, len(rows), READ_ROWS):
            file.write(rows[start : start + READ_ROWS])
        file.finish()
