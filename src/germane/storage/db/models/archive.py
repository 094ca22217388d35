"""The tables of archived days."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base
from germane.storage.db.types import Json, UtcDateTime


class ArchivedDayRow(Base, table=True):
    """A UTC day whose rows have been copied to the archive.

    Every row belongs either to the database or to the archive: rows that started before ``removed_before`` are read
    from the archive, and the others from the database.
    """

    __tablename__ = "archived_day"
    __table_args__ = ({"sqlite_with_rowid": False},)

    day: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    """Start of the day."""
    location: str = Field(sa_type=Text)
    """Folder or ``s3://`` URL of the archive."""
    state: str = Field(sa_type=Text)
    """One of ``written``, ``verified`` and ``removed``."""
    removed_before: datetime = Field(sa_type=UtcDateTime)
    """The database's rows that started before this time were removed: at first the start of the day, and in the end
    its end."""
    manifest: dict[str, Any] = Field(sa_type=Json)
    """The day's files, with their numbers of rows, sizes and checksums."""
    dimensions: list[str] = Field(sa_type=Json)
    """Dimensions by which the day's rollups are broken down, in addition to the route."""
    has_stale_files: bool = Field(sa_type=Boolean)
    """Whether the folder may contain files of an earlier or interrupted write, which must be deleted."""
    has_lowest: bool | None = Field(default=None, sa_type=Boolean)
    """Whether the day's lowest scores are in ``archived_lowest``. Otherwise, searches read all of the day's scores."""
    labels: int | None = Field(default=None, sa_type=BigInteger)
    """Number of archived labels; null if ``has_lowest`` is."""
    written_at: datetime = Field(sa_type=UtcDateTime)
    verified_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    removed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class ArchivedLowestRow(Base, table=True):
    """The positions of one day's lowest scores in a group of archived scores.

    A search for the lowest scores of a window looks here for the days that it has to read.
    """

    __tablename__ = "archived_lowest"
    __table_args__ = ({"sqlite_with_rowid": False},)

    dimension: str = Field(primary_key=True, sa_type=Text)
    """``route``, or empty for the scores of all routes, whose ``route`` is empty."""
    day: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    fingerprint: str = Field(primary_key=True, sa_type=Text)
    entries: bytes = Field(sa_type=LargeBinary)
    """Packed positions, as ``germane.storage.answers.archived_lowest`` describes them."""
