"""The file at an archive's root that names the database to which the archive belongs."""

from __future__ import annotations

import json
from typing import Final

from germane.errors import ArchiveError
from germane.storage.archive.location import ArchiveLocation

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
