"""What the database keeps of an archived day, so that most queries need no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Connection

from germane.storage.answers.archived_lowest import compute_lowest, write_lowest
from germane.storage.archive.days import update_day
from germane.storage.db.conditions import count_rows
from germane.storage.db.tables import feedback
from germane.storage.trends.rollup import RollupRows, combine_parts, write_rollups
from germane.storage.trends.time_ranges import ARCHIVED_DAY, DAY, HOUR


@dataclass(frozen=True, slots=True)
class DaySummary:
    """The rollups and the lowest scores of a day, and the number of its labels."""

    day: datetime
    dimensions: Sequence[str]
    rollups: RollupRows
    lowest: Sequence[dict[str, Any]]
    labels: int

    @classmethod
    def load(cls, archive: Connection, day: datetime, names: Sequence[str]) -> Self:
        """Compute the summary from the day's files, whose rollups are broken down by ``names``."""
        rollups, lowest = combine_parts(archive, (HOUR, DAY), day, names), compute_lowest(archive)
        return cls(day, names, rollups, lowest, count_rows(archive, feedback))

    def write(self, connection: Connection) -> None:
        """Replace the day's summary in the database."""
        write_rollups(connection, ARCHIVED_DAY, self.day, self.dimensions, self.rollups)
        write_lowest(connection, self.day, self.lowest)
        update_day(connection, self.day, has_lowest=True, labels=self.labels)
