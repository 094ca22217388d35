"""Floors of cosines: every one that was ever found, of which the newest counts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from germane.calibration import Calibration
from germane.storage.db.mappers import insert, stamp_for
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import calibration

COLUMNS = ("embedder", "scorer", "fingerprint", "floor", "high", "n", "made_at")


def add(connection: Connection, found: Sequence[Calibration]) -> None:
    """Write calibrations beside the older ones."""
    stamp = stamp_for(connection.dialect.name)
    rows = [
        (clean(one.embedder), one.scorer, one.fingerprint, one.floor, one.high, one.n, stamp(one.made_at))
        for one in found
    ]
    insert(connection, calibration, COLUMNS, rows)


def newest(connection: Connection) -> list[Calibration]:
    """Return the newest of each embedder and scorer."""
    query = select(*(calibration.c[name] for name in COLUMNS)).order_by(calibration.c.made_at, calibration.c.id)
    found = [Calibration(**row) for row in connection.execute(query).mappings()]
    latest = {(one.embedder, one.scorer): one for one in found}
    return [latest[key] for key in sorted(latest)]
