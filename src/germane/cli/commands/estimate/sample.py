"""What a forecast goes by: how many exchanges a day, and what they are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from germane.errors import DatabaseNotMigrated, StorageError
from germane.exchange import Exchange
from germane.settings import Settings

if TYPE_CHECKING:
    from germane.storage import Store, Usage

SAMPLE = 50
"""Exchanges that are looked at."""
AMONG = 10_000
"""They are taken from about so many of the newest: to draw them from millions would take longer than it is worth."""
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
LEAST = timedelta(hours=1)
"""A shorter time says nothing of a day; it is taken for an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a forecast goes by."""

    per_day: float
    """Exchanges."""
    traffic: str
    """Where that number is from, for people."""
    sample: Sequence[Exchange]
    source: Literal["store", "file", "typical"]
    """Where the sample is from."""
    usages: Mapping[str, Usage] = field(default_factory=dict)
    """What earlier scores took, by scorer."""

    @property
    def measured_on(self) -> str:
        """The sample, for people."""
        if self.source == "typical":
            return "one typical exchange, built in: your own may be longer or shorter"
        place = "the stored exchanges" if self.source == "store" else "the file"
        return f"{len(self.sample)} of {place}, as a sample"


def basis_of(
    settings: Settings, *, per_day: float | None, file: Path | None, columns: Mapping[str, str] | None
) -> Basis | None:
    """Return what to go by: the file if there is one, else the database; None where neither tells of any exchange.

    Raises:
        UsageError: the file cannot be read.
        StorageError: the database cannot, and there is no ``per_day`` to do without it.
    """
    if file is not None:
        return _of_file(file, columns, per_day)
    from germane.storage import Store

    store = Store(settings.database)
    try:
        store.check()
        return _of_store(store, per_day) or _typical(per_day)
    except StorageError as error:
        if per_day is None and not isinstance(error, DatabaseNotMigrated):
            raise
        return _typical(per_day)
    finally:
        store.close()


def _of_file(file: Path, columns: Mapping[str, str] | None, per_day: float | None) -> Basis | None:
    from germane.evaluation import read_rows

    rows = [row.exchange for row in read_rows(file, columns)]
    if not rows:
        return _typical(per_day)
    count = len(rows) if per_day is None else per_day
    traffic = "the file once a day" if per_day is None else "as you say"
    return Basis(per_day=count, traffic=traffic, sample=rows[:: -(-len(rows) // SAMPLE)], source="file")


def _of_store(store: Store, per_day: float | None) -> Basis | None:
    from germane.cli.commands.estimate.forecast import TYPICAL
    from germane.scorers import NAMES

    now = datetime.now(UTC)
    traffic = store.traffic(since=now - DAY)
    if traffic.first is None:
        return None
    began_earlier = bool(store.exchanges(until=now - DAY, limit=1))
    covered = DAY if began_earlier else max(now - traffic.first, LEAST)
    newest = covered * min(1.0, AMONG / traffic.exchanges)
    sample = store.sample(since=now - newest, limit=SAMPLE) or store.sample(since=now - DAY, limit=SAMPLE)
    usages = {usage.scorer: usage for usage in store.usage(since=now - WEEK) if usage.scorer in NAMES}
    told = "as in the last 24 hours" if covered == DAY else f"as in {_hours(covered)}, all day"
    return Basis(
        per_day=traffic.exchanges * (DAY / covered) if per_day is None else per_day,
        traffic=told if per_day is None else "as you say",
        sample=sample or [TYPICAL],  # all of them may be erased
        source="store" if sample else "typical",
        usages=usages,
    )


def _hours(span: timedelta) -> str:
    hours = round(span / timedelta(hours=1))
    return "the last hour" if hours == 1 else f"the last {hours} hours, since the first one"


def _typical(per_day: float | None) -> Basis | None:
    from germane.cli.commands.estimate.forecast import TYPICAL

    if per_day is None:
        return None
    return Basis(per_day=per_day, traffic="as you say", sample=[TYPICAL], source="typical")
