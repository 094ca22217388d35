"""The manifest of an archived day: its files with their numbers of rows, sizes and checksums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Self

from germane.errors import ArchiveError

VERSION: Final = 1
"""Version of the archive's format."""
NAME: Final = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile:
    """One Parquet file of a day."""

    name: str
    rows: int
    size: int
    """Size in bytes."""
    sha256: str
    """Checksum of the file's bytes."""
    content: str
    """Checksum of the rows, independent of their order: the sum of their 64-bit hashes modulo 2^64, as hexadecimal
    digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The files of one day. The database has a copy, which takes precedence."""

    day: str
    """The UTC day in ISO format."""
    created_at: datetime
    revision: str
    """Revision of the database's tables, such as ``0.1.0``."""
    has_text: bool
    """Whether the files contain questions, answers, contexts, explanations and comments."""
    files: Mapping[str, ArchivedFile]
    """Files by table."""

    @property
    def blank_at(self) -> datetime | None:
        """Time that replaces a missing ``erased_at`` in rows without text; None if the files contain text."""
        return None if self.has_text else self.created_at

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(file.size for file in self.files.values())

    def rows(self, table: str) -> int:
        """Return the number of rows of a table."""
        return self.files[table].rows

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object."""
        return {
            "version": VERSION,
            **asdict(self),
            "created_at": self.created_at.isoformat(),
            "files": {table: asdict(file) for table, file in self.files.items()},
        }

    def dump(self) -> bytes:
        """Return the content of the manifest file."""
        return json.dumps(self.to_json(), indent=1).encode()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Convert a JSON object to a manifest. Raise ArchiveError if it is damaged, or of a newer version."""
        if stored.get("version") != VERSION:
            raise ArchiveError(
                f"the archive has format version {stored.get('version')}, but this version of germane reads version "
                f"{VERSION}: upgrade germane"
            )
        try:
            return cls(
                day=stored["day"],
                created_at=datetime.fromisoformat(stored["created_at"]),
                revision=stored["revision"],
                has_text=stored["has_text"],
                files={table: ArchivedFile(**file) for table, file in stored["files"].items()},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArchiveError(f"the archive's manifest is damaged: {type(error).__name__}: {error}") from None
