"""The database's records of archived days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from germane.storage.archive.location import ArchiveLocation
from germane.storage.archive.manifest import Manifest
from germane.storage.db.tables import archived_day

ArchiveState = Literal["written", "verified", "removed"]
ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedDay:
    """A UTC day that was copied to the archive."""

    day: datetime
    """Start of the day."""
    location: str
    """Folder or ``s3://`` URL of the archive."""
    state: ArchiveState
    removed_before: datetime
    """The database's rows that started before this time were removed."""
    manifest: Manifest
    dimensions: tuple[str, ...]
    """Dimensions of the rollups, in addition to the route."""
    has_stale_files: bool
    has_lowest: bool | None
    """Whether the database has the positions of the day's lowest scores."""
    labels: int | None
    """Number of archived labels; None if unknown."""
    written_at: datetime
    verified_at: datetime | None
    removed_at: datetime | None

    @property
    def until(self) -> datetime:
        """End of the day."""
        return self.day + ONE_DAY

    @property
    def files(self) -> ArchiveLocation:
        """Access to the archive that contains the day."""
        return ArchiveLocation(self.location)


def load_day(connection: Connection, day: datetime, *, lock: bool = False) -> ArchivedDay | None:
    """Return the record of a day, or None if it has not been archived. With ``lock``, lock the row."""
    query = select(archived_day).where(archived_day.c.day == day)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    return None if row is None else _from_row(row)


def load_days(connection: Connection) -> list[ArchivedDay]:
    """Return the records of all days, oldest first."""
    return [_from_row(row) for row in connection.execute(select(archived_day).order_by(archived_day.c.day)).mappings()]


def _from_row(row: RowMapping) -> ArchivedDay:
    values: dict[str, Any] = dict(row)
    return ArchivedDay(
        **values | {"manifest": Manifest.from_json(row["manifest"]), "dimensions": tuple(row["dimensions"])}
    )


def insert_day(
    connection: Connection, day: datetime, location: str, manifest: Manifest, dimensions: Sequence[str], now: datetime
) -> None:
    """Record a day as written."""
    values = {"day": day, "location": location, "state": "written", "removed_before": day, "has_stale_files": True}
    stored = {"manifest": manifest.to_json(), "dimensions": list(dimensions), "written_at": now}
    connection.execute(insert(archived_day).values(values | stored))


def update_day(connection: Connection, day: datetime, **values: Any) -> None:
    """Change the record of a day."""
    connection.execute(update(archived_day).where(archived_day.c.day == day).values(values))


def delete_day(connection: Connection, day: datetime) -> None:
    """Delete the record of a day, all of whose rows are in the database."""
    connection.execute(delete(archived_day).where(archived_day.c.day == day))
