"""Calibrations of embedders. All are kept; the newest of each embedder and scorer is in effect."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from germane.calibration import Calibration
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.sanitize import clean_text
from germane.storage.db.tables import calibration

COLUMNS = ("embedder", "scorer", "fingerprint", "floor", "high", "n", "made_at")


def insert_calibrations(connection: Connection, calibrations: Sequence[Calibration]) -> None:
    """Write calibrations; older ones are kept."""
    stamp = timestamp_encoder(connection.dialect.name)
    rows = [
        (clean_text(one.embedder), one.scorer, one.fingerprint, one.floor, one.high, one.n, stamp(one.made_at))
        for one in calibrations
    ]
    bulk_insert(connection, calibration, COLUMNS, rows)


def list_newest_calibrations(connection: Connection) -> list[Calibration]:
    """Return the newest calibration of each embedder and scorer."""
    query = select(*(calibration.c[name] for name in COLUMNS)).order_by(calibration.c.made_at, calibration.c.id)
    rows = connection.execute(query).mappings()
    latest = {(row["embedder"], row["scorer"]): Calibration(**row) for row in rows}
    return [latest[key] for key in sorted(latest)]
