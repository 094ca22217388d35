"""The location of an archive: a local folder or a prefix in an S3 bucket. Files are written atomically.

A file in its top folder names the database to which the archive belongs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import file_digest
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from germane.errors import ArchiveError, UsageError
from germane.installation import install_command

S3: Final = "s3://"
_TEMPORARY: Final = ".tmp-"
"""Prefix of a local file that is being written."""
FileVersion = tuple[int, int]
"""Size in bytes and time of the last change in nanoseconds: a file whose version is the same has the same content."""
_S3_TIMEOUT: Final = 30
"""Timeout in seconds for a connection or a request to S3."""


def require(module: str) -> Any:
    """Import pyarrow, DuckDB or one of their modules. Raise UsageError without the ``archive`` extra."""
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(f"the archive requires DuckDB and pyarrow; run: {install_command('archive')}") from None


class ArchiveLocation:
    """Reads and writes the files of an archive.

    S3 is accessed with the credentials, the region and the endpoint that AWS's tools use: ``AWS_ACCESS_KEY_ID``,
    ``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``, ``AWS_ENDPOINT_URL_S3`` and ``AWS_ENDPOINT_URL``, or its configuration
    files. They are neither stored nor shown.

    All methods raise:
        ArchiveError: The folder or the bucket cannot be accessed.

    Args:
        url: The folder, or the ``s3://`` URL without a slash at the end.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_local = not url.startswith(S3)

    def __repr__(self) -> str:
        return f"ArchiveLocation({self.url!r})"

    @cached_property
    def filesystem(self) -> Any:
        """The pyarrow file system in which :meth:`path` is valid."""
        fs = require("pyarrow.fs")
        if self.is_local:
            return fs.LocalFileSystem()
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        scheme, _, host = endpoint.rpartition("://")
        options: dict[str, Any] = {"connect_timeout": _S3_TIMEOUT, "request_timeout": _S3_TIMEOUT}
        if host:
            options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
        if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
            options["region"] = region
        elif host:
            options["region"] = "us-east-1"  # other servers ignore it, and looking it up would need the network
        return fs.S3FileSystem(**options)

    def path(self, *names: str) -> str:
        """Return a path for :attr:`filesystem`, given names below the archive's root. Empty names are left out."""
        return "/".join([self.url.removeprefix(S3), *filter(None, names)])

    @contextmanager
    def writing(self, folder: str, name: str) -> Iterator[IO[bytes]]:
        """Open a file for writing, in a new folder if needed. After the context, it is on the disk or on S3."""
        with _translated(self.url):
            if not self.is_local:
                with self.filesystem.open_output_stream(self.path(folder, name)) as stream:
                    yield stream
                return
            directory = Path(self.path(folder))
            directory.mkdir(parents=True, exist_ok=True)
            temporary = directory / f"{_TEMPORARY}{name}"
            with open(temporary, "wb", opener=_open_private) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(directory / name)
            for changed in (directory, directory.parent):
                _sync_directory(changed)

    def read(self, folder: str, name: str) -> Any:
        """Return the content of a file as a pyarrow buffer. Raise FileNotFoundError if it is missing."""
        with (
            _translated(self.url, missing_ok=True),
            self.filesystem.open_input_stream(self.path(folder, name)) as stream,
        ):
            return stream.read_buffer()

    def list_names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted. A missing folder has none."""
        selector = require("pyarrow.fs").FileSelector(self.path(folder), allow_not_found=True)
        with _translated(self.url):
            return sorted(info.base_name for info in self.filesystem.get_file_info(selector))

    def checksum(self, path: str) -> str:
        """Return the SHA-256 checksum of a file's bytes. ``path`` is from :meth:`path`."""
        with _translated(self.url), self.filesystem.open_input_stream(path) as stream:
            return file_digest(stream, "sha256").hexdigest()

    def list_versions(self) -> dict[str, FileVersion]:
        """Return the versions of all files of the archive, by path as in :meth:`path`."""
        selector = require("pyarrow.fs").FileSelector(self.path(), recursive=True, allow_not_found=True)
        with _translated(self.url):
            return {info.path: _version(info) for info in self.filesystem.get_file_info(selector) if info.is_file}

    def stat(self, paths: Sequence[str]) -> list[FileVersion | None]:
        """Return the versions of files, None for each that is missing. ``paths`` are from :meth:`path`."""
        with _translated(self.url):
            return [_version(info) if info.is_file else None for info in self.filesystem.get_file_info(list(paths))]

    def delete(self, folder: str, names: Iterable[str]) -> None:
        """Delete files. Missing ones are ignored."""
        for name in names:
            with suppress(FileNotFoundError), _translated(self.url, missing_ok=True):
                self.filesystem.delete_file(self.path(folder, name))


def _version(info: Any) -> FileVersion:
    return info.size, info.mtime_ns


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, like the database's file."""
    return os.open(path, flags, 0o600)


def _sync_directory(directory: Path) -> None:
    """Make sure that the names in a directory survive a power failure. Windows cannot and need not do this."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _translated(url: str, *, missing_ok: bool = False) -> Iterator[None]:
    """Raise an :class:`ArchiveError` instead of an :class:`OSError`, whose text on S3 may contain the request.

    With ``missing_ok``, the caller handles a :class:`FileNotFoundError`.
    """
    try:
        yield
    except OSError as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            raise
        raise ArchiveError(f"the archive {url} cannot be accessed: {describe_error(error)}") from None


def describe_error(error: BaseException) -> str:
    """Return the first line of an error, in at most 200 characters."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


NAME: Final = "germane-archive.json"


def claim(location: ArchiveLocation, archive_id: str, *, is_used: bool) -> None:
    """Make sure that an archive belongs to a database. The first database that uses a location owns it.

    ``is_used`` states whether the database has moved rows to this location.

    Raises:
        ArchiveError: The archive belongs to another database, cannot be accessed, or is used but empty, as the folder
            of a file system that is not mounted.
    """
    owner = _read_owner(location)
    if owner is None and is_used:
        raise ArchiveError(
            f"the archive {location.url} has no file {NAME}, although days were moved to it: mount the file system, or "
            "restore the archive from a backup"
        )
    if owner is None:
        with location.writing("", NAME) as file:
            file.write(json.dumps({"id": archive_id}).encode())
        owner = _read_owner(location)  # another database may have written the file at the same time
    if owner != archive_id:
        raise ArchiveError(
            f"the archive {location.url} belongs to another database: set archive.location to a folder or prefix that "
            "no other database uses"
        )


def _read_owner(location: ArchiveLocation) -> str | None:
    """Return the id in the file; None if there is no file."""
    try:
        content = json.loads(location.read("", NAME).to_pybytes())
    except FileNotFoundError:
        return None
    except ValueError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("id"), str):
        raise ArchiveError(f"{location.url}/{NAME} is damaged: restore it from a backup")
    owner: str = content["id"]
    return owner
