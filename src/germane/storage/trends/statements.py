"""The statements that add up rows and rollups for trends.

Each statement is built once, and then executed with different times and filter values. Building the statements of a
page would take about as long as executing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, Label, Select, and_, bindparam, func, literal_column, null, or_, select

from germane.storage.db.functions import EpochSeconds, Unindexed
from germane.storage.db.tables import exchange, rollup, rollup_count, rollup_proxy, score, tally
from germane.storage.trends import dimensions
from germane.storage.trends.aggregates import (
    BIN,
    PROXIES,
    ROLLED_PROXIES,
    ROLLED_SCORES,
    SCORES,
    WEIGHT,
    labeled,
)
from germane.storage.trends.dimensions import ROUTE
from germane.storage.trends.time_ranges import TimeRange

MAX_STATEMENTS: Final = 128
"""Maximum number of statements to keep of each kind. Each takes up to 50 kB."""
_NO_HISTOGRAM: Final = null().label("histogram")
_BIN: Final = BIN.label("bin")


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """The sums over rows, and over the rollups of these rows. Instances are compared by identity."""

    moment: Any
    """Column with the time of a row."""
    sums: Sequence[Any]
    """Sums over rows."""
    rollup: Any
    """Table with the rollups."""
    rolled_sums: Sequence[Any]
    """Sums over rollups."""
    rolled: Sequence[Any]
    """Columns of a single rollup."""
    condition: ColumnElement[bool] | None = None
    """Condition on rows."""
    more_keys: Sequence[Label[Any]] = ()
    """Expressions by which rows are grouped in addition to the columns of the grouping."""


_SCORE_SUMS: Final = [*labeled(SCORES), func.max(score.c.started_at).label("latest"), _NO_HISTOGRAM]
_ROLLED_SCORE_SUMS: Final = [*labeled(ROLLED_SCORES), func.max(rollup.c.latest).label("latest"), _NO_HISTOGRAM]
_OF_ROLLUP: Final = [*(rollup.c[name] for name in SCORES), rollup.c.latest]
SCORE_SUMS: Final = Measure(score.c.started_at, _SCORE_SUMS, rollup, _ROLLED_SCORE_SUMS, [*_OF_ROLLUP, _NO_HISTOGRAM])
"""Sums over scores: the columns of :data:`SCORES`, the time of the latest score, and NULL."""
SCORE_SUMS_WITH_HISTOGRAMS: Final = Measure(
    score.c.started_at, _SCORE_SUMS, rollup, _ROLLED_SCORE_SUMS, [*_OF_ROLLUP, rollup.c.histogram]
)
"""The same, with the histogram in place of NULL if a single rollup is read."""
HISTOGRAMS: Final = Measure(
    score.c.started_at, [WEIGHT.label("weight")], rollup, (), [rollup.c.histogram], more_keys=[_BIN]
)
"""Over rows, the weight of each bin; of rollups, the packed histogram."""
PROXY_SUMS: Final = Measure(
    exchange.c.started_at,
    labeled(PROXIES),
    rollup_proxy,
    labeled(ROLLED_PROXIES),
    [rollup_proxy.c[name] for name in PROXIES],
    exchange.c.proxy.is_not(None),
)
"""Sums over proxy scores: the columns of :data:`PROXIES`."""
OUTCOME_COUNTS: Final = Measure(
    tally.c.minute,
    [func.sum(tally.c.count).label("total")],
    rollup_count,
    [func.sum(rollup_count.c.count).label("total")],
    [rollup_count.c.count],
)
"""Number of exchanges by outcome and reason."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The filters and the grouping of a statement."""

    names: tuple[str, ...]
    """Columns to group by."""
    equal: tuple[str, ...]
    """Columns with a required value, each of which is a parameter with the same name."""
    bucket: tuple[int, int] | None = None
    """Length of a bucket in seconds, and the seconds to add to UTC; None if there are no buckets."""
    dimension: str = ""
    """Dimension to break scores down by; empty for none."""

    @property
    def rolled_by(self) -> str:
        """The dimension of the rollups to read."""
        return self.dimension or (ROUTE if ROUTE in self.names or ROUTE in self.equal else "")


@lru_cache(maxsize=MAX_STATEMENTS)
def sum_rows(measure: Measure, grouping: Grouping, dialect: str, ranges: int) -> Select[Any]:
    """Return the statement for rows. Its parameters are those of :func:`range_parameters` and the filters' values.

    Args:
        measure: What to add up.
        grouping: Which rows to read, and by what to group them.
        dialect: Name of the SQLAlchemy dialect.
        ranges: Number of time ranges.

    Raises:
        UsageError: The dimension is unknown.
    """
    moment, source = measure.moment, measure.moment.table
    keys = [*_bucket(moment, grouping), *(moment.table.c[name] for name in grouping.names)]
    if grouping.dimension:
        source = score.outerjoin(exchange, exchange.c.id == score.c.exchange_id)
        keys.append(dimensions.label_expression(grouping.dimension, dialect))
    keys += measure.more_keys
    inside = [
        and_(moment >= bindparam(f"since_{number}"), moment < bindparam(f"until_{number}")) for number in range(ranges)
    ]
    query = select(*keys, *measure.sums).select_from(source).where(or_(*inside), *_equal(moment.table, grouping))
    query = query if measure.condition is None else query.where(measure.condition)
    return query.group_by(*_plain(keys))


@lru_cache(maxsize=MAX_STATEMENTS)
def sum_rollups(measure: Measure, grouping: Grouping, *, is_summed: bool, has_excluded: bool) -> Select[Any]:
    """Return the statement for rollups.

    Its parameters are ``span`` and ``dimension``, those of :func:`range_parameters` for one range, the filters' values,
    and ``excluded`` if there are days to exclude.

    Args:
        measure: What to add up.
        grouping: Which rollups to read, and by what to group them.
        is_summed: Whether to add up the rollups in SQL. If not, each one is a row.
        has_excluded: Whether there are days to exclude.
    """
    table = measure.rollup
    keys = [*_bucket(table.c.start, grouping), *(table.c[name] for name in grouping.names)]
    if grouping.dimension:
        keys.append(table.c.label.label(dimensions.LABEL))
    query = select(*keys, *(measure.rolled_sums if is_summed else measure.rolled)).where(
        table.c.span == bindparam("span"),
        table.c.dimension == bindparam("dimension"),
        table.c.start >= bindparam("since_0"),
        table.c.start < bindparam("until_0"),
        *_equal(table, grouping),
    )
    if has_excluded:
        query = query.where(table.c.start.not_in(bindparam("excluded", expanding=True)))
    return query.group_by(*_plain(keys)) if is_summed else query


def range_parameters(ranges: Sequence[TimeRange]) -> dict[str, Any]:
    """Return the parameters for time ranges."""
    bounds: dict[str, Any] = {}
    for number, (since, until) in enumerate(ranges):
        bounds |= {f"since_{number}": since, f"until_{number}": until}
    return bounds


def _bucket(moment: Any, grouping: Grouping) -> list[ColumnElement[int]]:
    """Return the column with the bucket number in a list, or an empty list if there are no buckets."""
    if grouping.bucket is None:
        return []
    # Use literals, because PostgreSQL treats equal expressions as different if they contain bound parameters.
    length, added = (literal_column(str(value), Integer) for value in grouping.bucket)
    seconds = EpochSeconds(moment) + added if grouping.bucket[1] else EpochSeconds(moment)
    return [(seconds // length * length).label("bucket")]


def _equal(table: Any, grouping: Grouping) -> list[ColumnElement[bool]]:
    # For exchanges, force the time index: SQLite would use the route index, which does not contain proxy scores.
    column = Unindexed if table is exchange else lambda name: name
    return [column(table.c[name]) == bindparam(name) for name in grouping.equal if name in table.c]


def _plain(keys: Sequence[Any]) -> list[Any]:
    """Return the GROUP BY columns.

    Labeled expressions are referenced by name, because an expression repeated with different bind parameters does not
    match its SELECT column.
    """
    return [literal_column(key.name) if isinstance(key, Label) else key for key in keys]
