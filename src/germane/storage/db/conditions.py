"""SQL conditions from optional arguments (None selects all rows), and counts of the rows that meet conditions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, and_, func, or_, select

from germane.score import GRADES, LOW_SCORE, LOWEST_BAND

Conditions = list[ColumnElement[bool]]
LOW_SQL: Final = f"label = '{LOWEST_BAND}' OR value < {LOW_SCORE} AND (label IS NULL OR label NOT IN {GRADES})"
"""The same as ``Score.is_low``. Databases would not use the index of low scores if the condition had parameters."""


def matching(table: FromClause, **values: Any) -> Conditions:
    """Return the conditions that the columns with these names have these values."""
    return [table.c[name] == value for name, value in values.items() if value is not None]


def within(moment: ColumnElement[Any], since: datetime | None, until: datetime | None) -> Conditions:
    """Return the conditions of ``since <= moment < until``."""
    start = [] if since is None else [moment >= since]
    return start if until is None else [*start, moment < until]


def following(moment: ColumnElement[Any], key: ColumnElement[Any], position: tuple[datetime, str] | None) -> Conditions:
    """Return the conditions for rows that follow a position in the order of time and key."""
    if position is None:
        return []
    at, id_ = position
    # The first condition can use an index.
    return [moment >= at, or_(moment > at, and_(moment == at, key > id_))]


def count_rows(connection: Connection, source: FromClause, *conditions: ColumnElement[bool]) -> int:
    """Return the number of rows that meet the conditions."""
    return int(connection.execute(select(func.count()).select_from(source).where(*conditions)).scalar_one())
