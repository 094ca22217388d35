"""Tables of counts and sums: the tally, and the rollups that trends read."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Float, Index, Integer, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base
from germane.storage.db.types import Key, UtcDateTime


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
