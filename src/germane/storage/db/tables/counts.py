"""How many, and sums: the tally, and what trends are read from."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Float, Index, Integer, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.tables.base import Base, Key, UtcDateTime


class TallyRow(Base, table=True):
    """What became of the exchanges of one minute: each process counts in rows of its own, readers sum them.

    A process that finishes what another one began has negative counts of pending.
    """

    __tablename__ = "tally"
    __table_args__ = ({"sqlite_with_rowid": False},)

    minute: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    process: str = Field(primary_key=True, sa_type=Text)
    outcome: str = Field(primary_key=True, sa_type=Text)
    """seen, pending, scored, skipped or failed."""
    reason: str = Field(primary_key=True, sa_type=Text)
    """Empty unless skipped or failed."""
    count: int = Field(sa_type=BigInteger)


class RollupRow(Base, table=True):
    """Sums over the scores of one hour, day or week (UTC): trends read them instead of the scores.

    With weights w = 1 / sampling probability, values y, and x the proxies of those scores whose exchange has one;
    ``zero`` sums are of the scores with y = 0.
    """

    __tablename__ = "rollup"
    __table_args__ = ({"sqlite_with_rowid": False},)

    span: int = Field(primary_key=True, sa_type=Integer)
    """Seconds: of an hour, a day or a week."""
    dimension: str = Field(primary_key=True, sa_type=Text)
    """By what the row is one of several: ``route``; one of ``trend_by``, the route beside; empty where all routes are
    together."""
    start: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    fingerprint: str = Field(primary_key=True, sa_type=Text)
    label: str = Field(primary_key=True, sa_type=Text)
    """Such as the model's name; empty where an exchange has none, and where it does not matter."""
    n: int = Field(sa_type=BigInteger)
    n_zero: int = Field(sa_type=BigInteger)
    w: float = Field(sa_type=Float)
    w_zero: float = Field(sa_type=Float)
    ww: float = Field(sa_type=Float)
    ww_zero: float = Field(sa_type=Float)
    wy: float = Field(sa_type=Float)
    wyy: float = Field(sa_type=Float)
    wwy: float = Field(sa_type=Float)
    wwyy: float = Field(sa_type=Float)
    w_low: float = Field(sa_type=Float)
    w_noncommittal: float = Field(sa_type=Float)
    n_x: int = Field(sa_type=BigInteger)
    w_x: float = Field(sa_type=Float)
    ww_x: float = Field(sa_type=Float)
    wx: float = Field(sa_type=Float)
    wy_x: float = Field(sa_type=Float)
    wxx: float = Field(sa_type=Float)
    wxy: float = Field(sa_type=Float)
    wyy_x: float = Field(sa_type=Float)
    wwx: float = Field(sa_type=Float)
    wwy_x: float = Field(sa_type=Float)
    wwxx: float = Field(sa_type=Float)
    wwxy: float = Field(sa_type=Float)
    latest: datetime = Field(sa_type=UtcDateTime)
    """When the latest of the answers was given."""
    histogram: bytes = Field(sa_type=LargeBinary)
    """Weights in 100 bins over [0, 1], as :mod:`germane.storage.stats.histogram` packs them."""


class RollupCountRow(Base, table=True):
    """What became of the exchanges of one hour, day or week (UTC): sums over the tally."""

    __tablename__ = "rollup_count"
    __table_args__ = ({"sqlite_with_rowid": False},)

    span: int = Field(primary_key=True, sa_type=Integer)
    dimension: str = Field(primary_key=True, sa_type=Text)
    """``route``; empty where all routes are together."""
    start: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    outcome: str = Field(primary_key=True, sa_type=Text)
    reason: str = Field(primary_key=True, sa_type=Text)
    count: int = Field(sa_type=BigInteger)


class RollupProxyRow(Base, table=True):
    """Sums over the proxies x of one hour, day or week (UTC), with weights v = 1 / probability of having one."""

    __tablename__ = "rollup_proxy"
    __table_args__ = ({"sqlite_with_rowid": False},)

    span: int = Field(primary_key=True, sa_type=Integer)
    dimension: str = Field(primary_key=True, sa_type=Text)
    """``route``; empty where all routes are together."""
    start: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    n: int = Field(sa_type=BigInteger)
    v: float = Field(sa_type=Float)
    vv: float = Field(sa_type=Float)
    vx: float = Field(sa_type=Float)
    vxx: float = Field(sa_type=Float)
    vvx: float = Field(sa_type=Float)
    vvxx: float = Field(sa_type=Float)


class RollupDueRow(Base, table=True):
    """An hour of which something changed that is not rolled up yet: one row per transaction that changed it."""

    __tablename__ = "rollup_due"
    __table_args__ = (
        Index("ix_rollup_due_hour", "hour"),
        {"sqlite_autoincrement": True},  # an id that is used again would be taken for the old one
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    hour: datetime = Field(sa_type=UtcDateTime)


class RollupDimensionRow(Base, table=True):
    """One of the dimensions that the rollups have, as ``trend_by`` named it when they were begun."""

    __tablename__ = "rollup_dimension"
    __table_args__ = ({"sqlite_with_rowid": False},)

    name: str = Field(primary_key=True, sa_type=Text)
