"""The Parquet files of a day: writing them, and verifying that the stored bytes contain what was written."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import IO, TYPE_CHECKING, Any, Final

from germane.errors import ArchiveError
from germane.storage.archive.location import ArchiveLocation, FileVersion, describe_error, require
from germane.storage.archive.manifest import NAME, ArchivedFile, Manifest
from germane.storage.archive.rows import Row, arrow_schema, from_batch, hash_rows, sum_hashes, to_batch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Contents = Mapping[str, "NDArray[Any]"]
"""Sorted hashes of the rows by table."""

ROW_GROUP_ROWS: Final = 10_000
"""Number of rows for which a file has minimum and maximum values. To read one row, DuckDB reads as many."""
_READ_ROWS: Final = 20_000
_RARELY_REPEATED: Final = frozenset(
    {"id", "exchange_id", "trace_id", "span_id"}
    | {"started_at", "scored_at", "first_pending_at", "created_at"}
    | {"duration", "latency", "sampling_key", "proxy", "value"}
)
"""Columns of ids, times and numbers whose values rarely repeat. A dictionary would add about 1.7 bytes to most values.

Texts are not among them, because 1.7 bytes are little of a text.
"""


def day_folder(day: str) -> str:
    """Return the name of a day's folder, from which DuckDB and other readers derive the column ``day``."""
    return f"day={day}"


def new_generation() -> str:
    """Return a random part of file names. A new version of a day never overwrites files that are being read."""
    return secrets.token_hex(4)


class _HashingFile:
    """Writes to a file, and computes the checksum of the written bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = sha256()
        self.size = 0
        self.closed = False

    def write(self, content: Any) -> int:
        self.hash.update(content)
        self.size += len(content)
        self._file.write(content)
        return len(content)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: the location flushes the file."""

    def close(self) -> None:
        self.closed = True


def write_table(
    location: ArchiveLocation, day: str, generation: str, table: str, batches: Iterable[list[Row]]
) -> ArchivedFile:
    """Write a table's rows to a new file."""
    name = f"{table}-{generation}.parquet"
    count, total = 0, 0
    with location.writing(day_folder(day), name) as file:
        target = _HashingFile(file)
        with open_writer(target, table) as writer:
            waiting: list[Any] = []
            for rows in batches:
                waiting.append(to_batch(table, rows))
                count += len(rows)
                total += int(hash_rows(rows).sum(dtype="u8"))
                if sum(map(len, waiting)) >= ROW_GROUP_ROWS:
                    _write_row_group(writer, waiting)
            _write_row_group(writer, waiting)
    return ArchivedFile(
        name=name, rows=count, size=target.size, sha256=target.hash.hexdigest(), content=f"{total % 2**64:016x}"
    )


def open_writer(file: Any, table: str) -> Any:
    """Return a ``pyarrow.parquet.ParquetWriter`` for a table's rows, with the archive's compression."""
    schema = arrow_schema(table)
    return require("pyarrow.parquet").ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=[name for name in schema.names if name not in _RARELY_REPEATED],
        write_page_index=True,
    )


def _write_row_group(writer: Any, batches: list[Any]) -> None:
    if batches:
        writer.write_table(require("pyarrow").Table.from_batches(batches), row_group_size=ROW_GROUP_ROWS)
        batches.clear()


def write_manifest(location: ArchiveLocation, manifest: Manifest) -> None:
    """Write the manifest file, which is for other readers: germane reads the manifest in the database."""
    with location.writing(day_folder(manifest.day), NAME) as file:
        file.write(manifest.dump())


def verify_manifest(location: ArchiveLocation, manifest: Manifest) -> None:
    """Raise ArchiveError if a day's manifest file is missing, or differs from the manifest in the database."""
    try:
        stored = json.loads(location.read(day_folder(manifest.day), NAME).to_pybytes())
    except FileNotFoundError:
        raise ArchiveError(f"{manifest.day}: {NAME} is missing") from None
    except ValueError:
        raise ArchiveError(f"{manifest.day}: {NAME} is not valid JSON") from None
    if stored != manifest.to_json():
        raise ArchiveError(f"{manifest.day}: {NAME} does not match the manifest in the database")


def verify_files(location: ArchiveLocation, manifest: Manifest) -> Contents:
    """Read all files of a day, and compare their bytes and rows with the manifest.

    Returns:
        The hashes of the rows in the files.

    Raises:
        ArchiveError: A file is missing or differs from the manifest.
    """
    return {table: _verify_file(location, manifest, table) for table in manifest.files}


def _verify_file(location: ArchiveLocation, manifest: Manifest, table: str) -> NDArray[Any]:
    expected = manifest.files[table]
    folder = day_folder(manifest.day)
    where = f"{manifest.day}: {expected.name}"
    try:
        buffer = location.read(folder, expected.name)
    except FileNotFoundError:
        raise ArchiveError(f"{where} is missing") from None
    if len(buffer) != expected.size:
        raise ArchiveError(f"{where} has {len(buffer):,} bytes instead of {expected.size:,}")
    if sha256(buffer).hexdigest() != expected.sha256:
        raise ArchiveError(f"{where} has changed since it was written")
    hashes = sort_hashes([hash_rows(rows) for rows in _read_buffer(buffer)])
    if (len(hashes), sum_hashes(hashes)) != (expected.rows, expected.content):
        raise ArchiveError(f"the rows of {where} have changed since it was written")
    return hashes


def sort_hashes(batches: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the hashes of all batches, sorted."""
    import numpy as np

    return np.sort(np.concatenate(batches)) if batches else np.zeros(0, "u8")


def contains_all(hashes: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Return whether sorted hashes contain all of the others."""
    import numpy as np

    if not len(hashes):
        return not len(wanted)
    positions = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
    return bool((hashes[positions] == wanted).all())


def _read_buffer(buffer: Any) -> Iterable[list[Row]]:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    try:
        for batch in parquet.ParquetFile(arrow.BufferReader(buffer)).iter_batches(_READ_ROWS):
            yield from_batch(batch)
    except (arrow.ArrowInvalid, OSError) as error:
        raise ArchiveError(f"a file of the archive is damaged: {describe_error(error)}") from None


def delete_stale_files(location: ArchiveLocation, day: str, current: Collection[str]) -> None:
    """Delete the files in a day's folder that are not current, left by an earlier or interrupted write."""
    folder = day_folder(day)
    location.delete(folder, [name for name in location.list_names(folder) if name not in current])


def find_damaged(
    days: Iterable[tuple[ArchiveLocation, Manifest]],
    *,
    table: str | None = None,
    by_listing: bool = False,
    has_content: bool = False,
) -> list[str]:
    """Return a description for each file that is missing or has another size or content than the manifest states.

    Pass ``by_listing`` to list all files of the archives, which takes fewer requests than looking up most of them, and
    ``has_content`` to also compare checksums, once per process for each version of a file.
    """
    by_location: dict[str, tuple[ArchiveLocation, list[tuple[str, str, ArchivedFile]]]] = {}
    for location, manifest in days:
        _, expected = by_location.setdefault(location.url, (location, []))
        for name, file in manifest.files.items():
            if table is None or name == table:
                expected.append((location.path(day_folder(manifest.day), file.name), manifest.day, file))
    problems: list[str] = []
    for location, expected in by_location.values():
        if has_content and not location.is_local:  # files on S3 cannot be changed, and each would take a request
            expected = [item for item in expected if item[0] not in _verified]
        paths = [path for path, _, _ in expected]
        found = map(location.list_versions().get, paths) if by_listing else location.stat(paths)
        for (path, day, file), version in zip(expected, found, strict=True):
            if version is None:
                problems.append(f"{day}: {file.name} is missing")
            elif version[0] != file.size:
                problems.append(f"{day}: {file.name} has {version[0]:,} bytes instead of {file.size:,}")
            elif has_content and not _is_unchanged(location, path, version, file):
                problems.append(f"{day}: {file.name} has changed since it was written")
    return problems


_verified: dict[str, tuple[FileVersion, str]] = {}
"""The version and the checksum of each file whose content this process has verified, by path."""


def _is_unchanged(location: ArchiveLocation, path: str, version: FileVersion, file: ArchivedFile) -> bool:
    """Return whether a file has the content that was written. DuckDB does not verify the checksums of Parquet."""
    if _verified.get(path) != (version, file.sha256):
        if location.checksum(path) != file.sha256:
            return False
        _verified[path] = version, file.sha256
    return True
