"""Tables of counts and sums: the tally, and the rollups that trends read, and the archived days."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base
from germane.storage.db.types import Json, Key, UtcDateTime


class TallyRow(Base, table=True):
    """A count of exchanges in one minute by outcome. Each process has its own rows, and readers add them up.

    A process that finishes another process's tasks has negative counts of pending exchanges.
    """

    __tablename__ = "tally"
    __table_args__ = ({"sqlite_with_rowid": False},)

    minute: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    process: str = Field(primary_key=True, sa_type=Text)
    outcome: str = Field(primary_key=True, sa_type=Text)
    """One of ``seen``, ``pending``, ``scored``, ``skipped`` and ``failed``."""
    reason: str = Field(primary_key=True, sa_type=Text)
    """Empty unless the outcome is ``skipped`` or ``failed``."""
    count: int = Field(sa_type=BigInteger)


class WatchedTraceRow(Base, table=True):
    """A count of watched traces in one UTC hour by service, instrumentation scope and outcome."""

    __tablename__ = "watched_trace"
    __table_args__ = ({"sqlite_with_rowid": False},)

    hour: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    scope: str = Field(primary_key=True, sa_type=Text)
    outcome: str = Field(primary_key=True, sa_type=Text)
    """``recognized``, or the reason why the traces are unreadable."""
    count: int = Field(sa_type=BigInteger)


class RollupKey(Base):
    """The key columns that all rollup tables share: time range, dimension, service and route."""

    span: int = Field(primary_key=True, sa_type=Integer)
    """Length of the time range in seconds: an hour, a day or a week."""
    dimension: str = Field(primary_key=True, sa_type=Text)
    """``route`` in rows by route; empty in rows for all routes. Scores also have rows by route and a dimension from the
    ``breakdowns`` setting.
    """
    start: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)


class RollupRow(RollupKey, table=True):
    """Sums over the scores in one UTC hour, day or week. Trends read these sums instead of the scores.

    Each score has a value y, a weight w = 1 / sampling probability, and possibly the proxy score x of its exchange:

    ========================  =====================================  ======================  ======================
    column                    sum over all scores                    column                  over scores with x
    ========================  =====================================  ======================  ======================
    ``n``                     1                                      ``n_with_x``            1
    ``n_zero``                1 if y = 0
    ``sum_w``                 w                                      ``sum_w_with_x``        w
    ``sum_w_zero``            w if y = 0                             ``sum_wx``              w x
    ``sum_w2``                w^2                                    ``sum_w2_with_x``       w^2
    ``sum_w2_zero``           w^2 if y = 0                           ``sum_wx2``             w x^2
    ``sum_wy``                w y                                    ``sum_wy_with_x``       w y
    ``sum_wy2``               w y^2                                  ``sum_wy2_with_x``      w y^2
    ``sum_w2y``               w^2 y                                  ``sum_w2y_with_x``      w^2 y
    ``sum_w2y2``              w^2 y^2                                ``sum_wxy``             w x y
    ``sum_w_low``             w if the score is low                  ``sum_w2x``             w^2 x
    ``sum_w_noncommittal``    w if the label is ``noncommittal``     ``sum_w2x2``            w^2 x^2
    ..                        ..                                     ``sum_w2xy``            w^2 x y
    ========================  =====================================  ======================  ======================
    """

    __tablename__ = "rollup"
    __table_args__ = ({"sqlite_with_rowid": False},)

    scorer: str = Field(primary_key=True, sa_type=Text)
    fingerprint: str = Field(primary_key=True, sa_type=Text)
    label: str = Field(primary_key=True, sa_type=Text)
    """The dimension's value, such as a model name; empty if the exchange has none, and in rows without a breakdown."""
    n: int = Field(sa_type=BigInteger)
    n_zero: int = Field(sa_type=BigInteger)
    sum_w: float = Field(sa_type=Float)
    sum_w_zero: float = Field(sa_type=Float)
    sum_w2: float = Field(sa_type=Float)
    sum_w2_zero: float = Field(sa_type=Float)
    sum_wy: float = Field(sa_type=Float)
    sum_wy2: float = Field(sa_type=Float)
    sum_w2y: float = Field(sa_type=Float)
    sum_w2y2: float = Field(sa_type=Float)
    sum_w_low: float = Field(sa_type=Float)
    sum_w_noncommittal: float = Field(sa_type=Float)
    n_with_x: int = Field(sa_type=BigInteger)
    sum_w_with_x: float = Field(sa_type=Float)
    sum_w2_with_x: float = Field(sa_type=Float)
    sum_wx: float = Field(sa_type=Float)
    sum_wy_with_x: float = Field(sa_type=Float)
    sum_wx2: float = Field(sa_type=Float)
    sum_wxy: float = Field(sa_type=Float)
    sum_wy2_with_x: float = Field(sa_type=Float)
    sum_w2x: float = Field(sa_type=Float)
    sum_w2y_with_x: float = Field(sa_type=Float)
    sum_w2x2: float = Field(sa_type=Float)
    sum_w2xy: float = Field(sa_type=Float)
    latest: datetime = Field(sa_type=UtcDateTime)
    """Start time of the latest exchange."""
    histogram: bytes = Field(sa_type=LargeBinary)
    """Sums of the weights in 100 bins over [0, 1], packed by :mod:`germane.statistics.histogram`."""


class RollupCountRow(RollupKey, table=True):
    """A count of exchanges by outcome in one UTC hour, day or week: a sum over the tally."""

    __tablename__ = "rollup_count"
    __table_args__ = ({"sqlite_with_rowid": False},)

    scorer: str = Field(primary_key=True, sa_type=Text)
    outcome: str = Field(primary_key=True, sa_type=Text)
    reason: str = Field(primary_key=True, sa_type=Text)
    count: int = Field(sa_type=BigInteger)


class RollupProxyRow(RollupKey, table=True):
    """Sums over the proxy scores x in one UTC hour, day or week, with weights v = 1 / probability of having x.

    Columns are named as in :class:`RollupRow`; for example, ``sum_v2x`` is the sum of v^2 x.
    """

    __tablename__ = "rollup_proxy"
    __table_args__ = ({"sqlite_with_rowid": False},)

    n: int = Field(sa_type=BigInteger)
    sum_v: float = Field(sa_type=Float)
    sum_v2: float = Field(sa_type=Float)
    sum_vx: float = Field(sa_type=Float)
    sum_vx2: float = Field(sa_type=Float)
    sum_v2x: float = Field(sa_type=Float)
    sum_v2x2: float = Field(sa_type=Float)


class RollupDirtyHourRow(Base, table=True):
    """An hour whose rows have changed since it was rolled up. Each transaction that changes an hour adds a row."""

    __tablename__ = "rollup_dirty_hour"
    __table_args__ = (
        Index("ix_rollup_dirty_hour_hour", "hour"),
        {"sqlite_autoincrement": True},  # a reused id would be mistaken for the old row
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    hour: datetime = Field(sa_type=UtcDateTime)


class RollupDimensionRow(Base, table=True):
    """A dimension that the rollups include, from the ``breakdowns`` setting."""

    __tablename__ = "rollup_dimension"
    __table_args__ = ({"sqlite_with_rowid": False},)

    name: str = Field(primary_key=True, sa_type=Text)


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
