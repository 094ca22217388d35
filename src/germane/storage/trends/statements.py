"""The statements that add up rows and rollups for trends.

One statement reads all parts of a window. It is built once, and then executed with different times and filter values:
building the statements of a page would take about as long as executing them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Engine,
    Integer,
    Label,
    LargeBinary,
    Select,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects import registry
from sqlalchemy.util import LRUCache

from germane.storage.archive import dialect as archive
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
from germane.storage.trends.time_ranges import DAY

MAX_STATEMENTS: Final = 48
"""Maximum number of statements to keep, and of compiled forms to keep per engine. Each takes about 100 kB."""
_COMPILED: Final = "germane_compiled_sums"
"""Execution option that holds an engine's compiled statements."""
# PostgreSQL would take several NULLs in a union for text.
_NO_HISTOGRAM: Final = cast(null(), LargeBinary).label("histogram")
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
_COLUMNS: Final = ("service", "route", "scorer", "fingerprint", "outcome", "reason")
"""Columns to group by, of which each table has some."""
ROUTES: Final = "routes"
"""Name of the parameter with the names of several routes."""


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

    def refine(self, measure: Measure) -> Grouping:
        """Return the grouping by all columns and, if buckets are whole days, by day, which several queries share."""
        names = tuple(name for name in _COLUMNS if name in measure.rollup.c)
        has_whole_days = self.bucket is None or not any(seconds % DAY for seconds in self.bucket)
        bucket = (DAY, 0) if has_whole_days else self.bucket
        return Grouping(names, tuple(name for name in names if name in self.equal), bucket)

    def regroup(self, rows: Iterable[Any], refined: Grouping, routes: Collection[str] | None) -> Iterator[Any]:
        """Yield those rows of a refined grouping that are on one of the routes, with the keys of this grouping."""
        (length, shift), (_, refined_shift) = (grouping.bucket or (DAY, 0) for grouping in (self, refined))
        route, *kept = (1 + refined.names.index(name) for name in (ROUTE, *self.names))
        for row in rows:
            if routes is None or row[route] in routes:
                bucket = () if self.bucket is None else ((row[0] - refined_shift + shift) // length * length,)
                yield *bucket, *(row[index] for index in kept), *row[1 + len(refined.names) :]


@lru_cache(maxsize=MAX_STATEMENTS)
def select_sums(
    measure: Measure,
    grouping: Grouping,
    dialect: str,
    rows: tuple[int, ...],
    rollups: tuple[bool, ...],
    *,
    has_excluded: bool = False,
) -> Select[Any] | CompoundSelect[Any]:
    """Return a statement for all parts of a window. A group may have a row for each part.

    Its parameters are the filters' values, ``since_N`` and ``until_N`` for each time range (first those of rows),
    ``span_N`` for rollups, ``dimension``, and ``excluded`` if there are days to exclude.

    Args:
        measure: What to add up.
        grouping: Which rows to read, and by what to group them.
        dialect: Name of the SQLAlchemy dialect.
        rows: For each part to read from rows, its number of time ranges.
        rollups: For each part to read from rollups, whether to add them up in SQL. If not, each one is a row.
        has_excluded: Whether there are days whose rollups are not read.

    Raises:
        UsageError: The dimension is unknown.
    """
    numbers = itertools.count()
    parts = [_select_rows(measure, grouping, dialect, [next(numbers) for _ in range(ranges)]) for ranges in rows]
    for is_summed in rollups:
        part = _select_rollups(measure, grouping, dialect, next(numbers), is_summed=is_summed)
        if has_excluded:
            part = part.where(measure.rollup.c.start.not_in(bindparam("excluded", expanding=True)))
        parts.append(part)
    return parts[0] if len(parts) == 1 else union_all(*parts)


def compiled_sums(engine: Engine) -> LRUCache[Any, Any]:
    """Return the cache for compiled forms of :func:`select_sums`, which is released together with the engine.

    The engine's own cache would keep five hundred.
    """
    cache: LRUCache[Any, Any] | None = engine.get_execution_options().get(_COMPILED)
    if cache is None:
        cache = LRUCache(MAX_STATEMENTS)
        engine.update_execution_options(**{_COMPILED: cache})
    return cache


@cache
def _literal_sums(measure: Measure, dialect: str) -> tuple[Sequence[Label[Any]], Sequence[Label[Any]]]:
    """Return the sums as literal SQL, because compiling them again for each part would take most of the time."""
    compiler: dict[str, Any] = {
        "dialect": registry.load(archive.REGISTERED_NAME if dialect == archive.NAME else dialect)(),
        "compile_kwargs": {"literal_binds": True},
    }
    rows, rollups = (
        [literal_column(str(each.element.compile(**compiler)), each.type).label(each.name) for each in sums]
        for sums in (measure.sums, measure.rolled_sums)
    )
    return rows, rollups


def _select_rows(measure: Measure, grouping: Grouping, dialect: str, numbers: Sequence[int]) -> Select[Any]:
    moment, source = measure.moment, measure.moment.table
    keys = [*_bucket(moment, grouping), *(moment.table.c[name] for name in grouping.names)]
    if grouping.dimension:
        source = score.outerjoin(exchange, exchange.c.id == score.c.exchange_id)
        keys.append(dimensions.label_expression(grouping.dimension, dialect))
    keys += measure.more_keys
    inside = [and_(*_within(moment, number)) for number in numbers]
    sums, _ = _literal_sums(measure, dialect)
    query = select(*keys, *sums).select_from(source).where(or_(*inside), *_equal(moment.table, grouping))
    query = query if measure.condition is None else query.where(measure.condition)
    return query.group_by(*_plain(keys))


def _select_rollups(measure: Measure, grouping: Grouping, dialect: str, number: int, *, is_summed: bool) -> Select[Any]:
    table = measure.rollup
    keys = [*_bucket(table.c.start, grouping), *(table.c[name] for name in grouping.names)]
    if grouping.dimension:
        keys.append(table.c.label.label(dimensions.LABEL))
    _, sums = _literal_sums(measure, dialect)
    query = select(*keys, *(sums if is_summed else measure.rolled)).where(
        table.c.span == bindparam(f"span_{number}"),
        table.c.dimension == bindparam("dimension"),
        *_within(table.c.start, number),
        *_equal(table, grouping),
    )
    return query.group_by(*_plain(keys)) if is_summed else query


def _within(moment: Any, number: int) -> list[ColumnElement[bool]]:
    return [moment >= bindparam(f"since_{number}"), moment < bindparam(f"until_{number}")]


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
    conditions = [column(table.c[name]) == bindparam(name) for name in grouping.equal if name in table.c]
    if ROUTES in grouping.equal:
        conditions.append(column(table.c.route).in_(bindparam(ROUTES, expanding=True)))
    return conditions


def _plain(keys: Sequence[Any]) -> list[Any]:
    """Return GROUP BY columns by name: a repeated expression with other parameters matches no SELECT column."""
    return [literal_column(key.name) if isinstance(key, Label) else key for key in keys]
