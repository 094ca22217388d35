"""Rollups: sums by hour, computed from rows, and sums by day and week, computed from smaller rollups.

A dirty hour is read from a snapshot and written in a short transaction, unless another process has rolled it up in the
meantime: all dirty-hour rows in the snapshot must still exist. Newer rows are kept, so the next run includes later
changes. If a process is killed, all dirty-hour rows remain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, insert, literal, literal_column, select, text, union

from germane.statistics import pack_weights, sum_packed
from germane.storage.counts import dirty_hours as due
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import (
    exchange,
    rollup,
    rollup_count,
    rollup_dimension,
    rollup_dirty_hour,
    rollup_proxy,
    score,
    tally,
)
from germane.storage.trends import dimensions
from germane.storage.trends.aggregates import BIN, PROXIES, ROLLED_PROXIES, ROLLED_SCORES, SCORES, WEIGHT, labeled
from germane.storage.trends.dimensions import ROUTE
from germane.storage.trends.time_ranges import DAY, END, HOUR, WEEK, after, down

MAX_LABELS: Final = 100
"""Maximum number of labels per dimension, service, route and hour or day, including ``OTHER_LABEL``."""
OTHER_LABEL: Final = "other"
AT_ONCE: Final = 6
"""Maximum number of hours per transaction, all of the same day."""
_LOCK: Final = 0x726F6C6C  # "roll"
_DIMENSIONS: Final = 0
"""Lock key for the dimensions. The lock key for a week is the ordinal of its first day."""
_SCORE_COLUMNS: Final = tuple(score.c[name] for name in ("service", "route", "scorer", "fingerprint"))
_KEYS: Final = ("dimension", "service", "route", "scorer")
_NAMES: Final = ("service", "scorer", "fingerprint", "label", "outcome", "reason")
_COMBINERS: Final[dict[str, Callable[[Iterable[Any]], Any]]] = {"latest": max, "histogram": sum_packed}
_NO_SUMS: Final = frozenset({"dimension", "route", *_NAMES, *_COMBINERS})
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RollupRows:
    """Rows of the rollup tables."""

    dirty_ids: Sequence[int]
    """Ids of the dirty-hour rows that they process, if any."""
    scores: Sequence[Row]
    counts: Sequence[Row]
    proxies: Sequence[Row]


def bounded(rows: Iterable[Row]) -> list[Row]:
    """Keep one dimension's most frequent labels for each service and route, and combine the others."""
    rows = list(rows)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        counts.setdefault((row["service"], row["route"]), Counter())[row["label"]] += row["n"]
    kept_labels: dict[tuple[str, str], set[str]] = {}
    for key, labels in counts.items():
        by_frequency = sorted((-count, label) for label, count in labels.items())
        kept = by_frequency if len(labels) <= MAX_LABELS else by_frequency[: MAX_LABELS - 1]
        kept_labels[key] = {label for _, label in kept}
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        label = row["label"] if row["label"] in kept_labels[row["service"], row["route"]] else OTHER_LABEL
        names = (row["service"], row["route"], row["scorer"], row["fingerprint"], label)
        groups.setdefault(names, []).append({**row, "label": label})
    return [_merge(group) for group in groups.values()]


def over_routes(rows: Iterable[Row]) -> list[Row]:
    """Add up rows of scores, counts or proxies over all routes. The resulting rows have no dimension."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        names = tuple(row[name] for name in _NAMES if name in row)
        groups.setdefault(names, []).append({**row, "dimension": "", "route": ""})
    return [_merge(group) for group in groups.values()]


def _merge(rows: list[Row]) -> Row:
    """Merge rows with the same key into one, by adding up their sums."""
    if len(rows) == 1:
        return rows[0]
    sums = {name: sum(row[name] for row in rows) for name in rows[0] if name not in _NO_SUMS}
    combined = {name: combine(row[name] for row in rows) for name, combine in _COMBINERS.items() if name in rows[0]}
    return {**rows[0], **sums, **combined}


def _form_batches(hours: Iterable[datetime]) -> list[list[datetime]]:
    """Form small batches of hours within the same day."""
    batches: list[list[datetime]] = []
    for hour in hours:
        if batches and len(batches[-1]) < AT_ONCE and down(batches[-1][0], DAY) == down(hour, DAY):
            batches[-1].append(hour)
        else:
            batches.append([hour])
    return batches


class RollupStore(StoreComponent):
    """Maintains the rollups that trends read."""

    def update(
        self, limit: int | None = None, *, breakdowns: Sequence[str] | None = None, before: datetime | None = None
    ) -> int:
        """Roll up dirty hours, newest first. Return the number of hours that were rolled up.

        Rollups speed up trend queries without changing their results. Any number of processes may call this
        concurrently. If a process is interrupted, the hours that it was rolling up stay dirty. If the rollups have
        other dimensions than ``breakdowns``, all hours become dirty; by default, the dimensions do not change. Only
        hours that start ``before`` a time are rolled up.

        Raises:
            UsageError: A dimension is unknown.
        """
        wanted = None if breakdowns is None else dimensions.validate_dimensions(breakdowns)
        with self._database.read() as connection:
            current = dimensions.rolled_dimensions(connection)
        if wanted is not None and wanted != current:
            with self._database.write() as connection:
                _change_dimensions(connection, wanted)
        with self._database.read() as connection:
            hours = due.newest_dirty(connection, limit, before or END)
        count = 0
        for batch in _form_batches(hours):
            with self._database.read(snapshot=True) as connection:
                names = dimensions.rolled_dimensions(connection)
                dirty_ids = due.dirty_ids(connection, batch)
                computed = {
                    hour: compute_hour(connection, hour, dirty_ids[hour], names) for hour in batch if dirty_ids[hour]
                }
            with self._database.write() as connection:
                count += _replace(connection, computed, names)
        return count

    def count_dirty_hours(self) -> int:
        """Return the number of hours that have changed since their last rollup."""
        with self._database.read() as connection:
            return len(due.newest_dirty(connection, None, END))


def _change_dimensions(connection: Connection, names: Sequence[str]) -> None:
    """Change the dimensions of the rollups. All hours become dirty."""
    _lock(connection, _DIMENSIONS)
    before = dimensions.rolled_dimensions(connection)
    if before == tuple(names):
        return  # another process has already changed them
    removed = [name for name in before if name not in names]
    connection.execute(delete(rollup_dimension).where(dimensions.NAMED))
    if names:
        connection.execute(insert(rollup_dimension), [{"name": name} for name in names])
    if removed:
        connection.execute(delete(rollup).where(rollup.c.span.in_((HOUR, DAY, WEEK)), rollup.c.dimension.in_(removed)))
    parts = [select(table.c.start).where(table.c.span == HOUR) for table in (rollup, rollup_count, rollup_proxy)]
    connection.execute(insert(rollup_dirty_hour).from_select(["hour"], union(*parts)))


def _lock(connection: Connection, number: int, *, shared: bool = False) -> None:
    """Lock a week, or the dimensions, against other processes. SQLite allows only one writer anyway."""
    if connection.dialect.name == "postgresql":
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        connection.execute(text(f"SELECT {function}(:kind, :number)"), {"kind": _LOCK, "number": number})


def _replace(connection: Connection, computed: Mapping[datetime, RollupRows], names: Sequence[str]) -> int:
    """Write a day's hourly rollups, except those that another process has written since. Return the number written."""
    if not computed:
        return 0
    day, week = down(min(computed), DAY), down(min(computed), WEEK)
    _lock(connection, _DIMENSIONS, shared=True)  # prevents changes during the transaction
    _lock(connection, week.toordinal())
    if dimensions.rolled_dimensions(connection) != tuple(names):
        return 0
    dirty_ids = due.dirty_ids(connection, computed)
    current = {hour: rows for hour, rows in computed.items() if set(rows.dirty_ids) <= set(dirty_ids[hour])}
    for hour, rows in current.items():
        due.delete_ids(connection, rows.dirty_ids)
        write_rollups(connection, HOUR, hour, names, rows)
    if current:
        write_rollups(connection, DAY, day, names, combine_parts(connection, (HOUR, DAY), day, names))
        write_rollups(connection, WEEK, week, names, combine_parts(connection, (DAY, WEEK), week, names))
    return len(current)


def write_rollups(connection: Connection, span: int, start: datetime, names: Sequence[str], sums: RollupRows) -> None:
    """Replace the rollups of a time range, whose length is ``span``."""
    for table, rows in ((rollup, sums.scores), (rollup_count, sums.counts), (rollup_proxy, sums.proxies)):
        is_wanted = dimensions.dimension_condition(table, names)
        connection.execute(delete(table).where(table.c.span == span, table.c.start == start, is_wanted))
        if rows:
            connection.execute(insert(table), [{"span": span, "start": start, **row} for row in rows])


def compute_hour(connection: Connection, hour: datetime, dirty_ids: Sequence[int], names: Sequence[str]) -> RollupRows:
    """Compute the rollup for one hour from rows."""
    end = after(hour, HOUR)
    scores = _compute_scores(connection, hour, "")
    keys = [tally.c[name] for name in ("service", "route", "scorer", "outcome", "reason")]
    outcomes = select(*keys, func.sum(tally.c.count).label("count")).group_by(*keys)
    outcomes = outcomes.where(tally.c.minute >= hour, tally.c.minute < end)
    counts = [
        {"dimension": ROUTE, **row, "count": int(row["count"])} for row in connection.execute(outcomes).mappings()
    ]
    keys = [exchange.c.service, exchange.c.route]
    sums = select(*keys, *labeled(PROXIES)).where(exchange.c.proxy.is_not(None)).group_by(*keys)
    sums = sums.where(exchange.c.started_at >= hour, exchange.c.started_at < end)
    proxies = [{"dimension": ROUTE, **row} for row in connection.execute(sums).mappings()]
    by_label = [row for name in names for row in _compute_scores(connection, hour, name)]
    return RollupRows(
        dirty_ids=dirty_ids,
        scores=[*over_routes(scores), *scores, *by_label],
        counts=[*over_routes(counts), *counts],
        proxies=[*over_routes(proxies), *proxies],
    )


def _compute_scores(connection: Connection, hour: datetime, dimension: str) -> list[Row]:
    if dimension:
        label_column: Any = dimensions.label_expression(dimension, connection.dialect.name)
        source: Any = score.outerjoin(exchange, exchange.c.id == score.c.exchange_id)
        keys: tuple[Any, ...] = (*_SCORE_COLUMNS, literal_column(dimensions.LABEL))
    else:
        source, label_column, keys = score, literal("").label(dimensions.LABEL), _SCORE_COLUMNS
    within = (score.c.started_at >= hour, score.c.started_at < after(hour, HOUR))
    latest = func.max(score.c.started_at).label("latest")
    sums = (
        select(*_SCORE_COLUMNS, label_column, latest, *labeled(SCORES))
        .select_from(source)
        .where(*within)
        .group_by(*keys)
    )
    bins = (
        select(*_SCORE_COLUMNS, label_column, BIN.label("bin"), WEIGHT.label("weight"))
        .select_from(source)
        .where(*within)
    )
    weights: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in connection.execute(bins.group_by(*keys, literal_column("bin"))):
        weights.setdefault(tuple(row[:5]), {})[row.bin] = row.weight
    rows: list[Row] = []
    for group in connection.execute(sums).mappings():
        values = dict(group)
        label = values.pop(dimensions.LABEL)
        key = (*(values[column.name] for column in _SCORE_COLUMNS), label)
        histogram = pack_weights(weights[key])
        rows.append({"dimension": dimension or ROUTE, "label": label, **values, "histogram": histogram})
    return bounded(rows) if dimension else rows


def combine_parts(connection: Connection, spans: tuple[int, int], start: datetime, names: Sequence[str]) -> RollupRows:
    """Compute the rollup for a day from its hours, or the rollup for a week from its days."""
    score_names = (*_KEYS, "fingerprint", "label")
    score_parts = _parts(rollup, spans, start, names)
    sums = [*labeled(ROLLED_SCORES), func.max(rollup.c.latest).label("latest")]
    scores = _sum_parts(connection, rollup, score_names, sums, score_parts)
    total = [func.sum(rollup_count.c.count).label("count")]
    count_parts = _parts(rollup_count, spans, start, names)
    counts = _sum_parts(connection, rollup_count, (*_KEYS, "outcome", "reason"), total, count_parts)
    histograms: dict[tuple[Any, ...], list[bytes]] = {}
    columns = [rollup.c[name] for name in score_names]
    for *key, histogram in connection.execute(select(*columns, rollup.c.histogram).where(*score_parts)):
        histograms.setdefault(tuple(key), []).append(histogram)
    for row in scores:
        row["histogram"] = sum_packed(histograms[tuple(row[name] for name in score_names)])
    by_label = [[row for row in scores if row["dimension"] == name] for name in names]
    proxy_parts = _parts(rollup_proxy, spans, start, names)
    return RollupRows(
        dirty_ids=(),
        scores=[
            *(row for row in scores if row["dimension"] in {"", ROUTE}),
            *(row for rows in by_label for row in bounded(rows)),
        ],
        counts=[row | {"count": int(row["count"])} for row in counts],
        proxies=_sum_parts(connection, rollup_proxy, _KEYS[:3], labeled(ROLLED_PROXIES), proxy_parts),
    )


def _sum_parts(
    connection: Connection, table: Table, names: Sequence[str], sums: Sequence[Any], parts: Sequence[Any]
) -> list[Row]:
    keys = [table.c[name] for name in names]
    query = select(*keys, *sums).where(*parts).group_by(*keys)
    return [dict(row) for row in connection.execute(query).mappings()]


def _parts(table: Table, spans: tuple[int, int], start: datetime, names: Sequence[str]) -> tuple[Any, ...]:
    part, whole = spans
    return (
        table.c.span == part,
        dimensions.dimension_condition(table, names),
        table.c.start >= start,
        table.c.start < after(start, whole),
    )
