"""Sums over a window, by bucket and group: from rollups where they are up to date, and from the rows for the rest.

The same numbers as from the rows alone, at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Label, Row, Select, func, literal_column, null, select

from germane.errors import UsageError
from germane.storage.counts import dirty_hours
from germane.storage.db.tables import exchange, rollup, rollup_count, rollup_proxy, score, tally
from germane.storage.stats.histogram import Histogram, packed
from germane.storage.trends import dimensions
from germane.storage.trends.aggregates import (
    BIN,
    PROXIES,
    ROLLED_PROXIES,
    ROLLED_SCORES,
    SCORES,
    WEIGHT,
    Epoch,
    Unsought,
)
from germane.storage.trends.dimensions import ROUTE
from germane.storage.trends.time_ranges import BEGINNING, END, Run, Spans, spans

Key = tuple[Any, ...]
"""The bucket's beginning in seconds since 1970, if there are buckets, and what rows are grouped by."""
Outcomes = dict[tuple[str, str], int]
"""Count by outcome and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for."""

    since: datetime
    """UTC."""
    until: datetime
    bucket: int | None = None
    """Seconds; None for the whole window as one."""
    equal: Mapping[str, str] = field(default_factory=dict)
    """What service, route and scorer must be, as far as it is said."""
    dimension: str = ""
    """What labels are of; empty where they do not matter."""


def window(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """Return a window with both its ends, in UTC and not beyond the beginning and end of all answers.

    Raises:
        UsageError: one of them has no time zone.
    """
    return _end(since, "since", BEGINNING), _end(until, "until", END)


def _end(moment: datetime | None, name: str, default: datetime) -> datetime:
    if moment is None:
        return default
    if moment.tzinfo is None:
        raise UsageError(f"{name} = {moment} has no time zone")
    return max(BEGINNING, min(END, moment)).astimezone(UTC)


@dataclass(slots=True)
class Group:
    """The sums over the scores of one bucket and group."""

    sums: dict[str, float]
    latest: datetime
    spread: list[bytes] | None = None
    """Packed weights of the histogram's bins, to be added up; None where they were not asked for."""

    def add(self, sums: Mapping[str, float], latest: datetime) -> None:
        """Add the sums of another part of the window."""
        for name, value in sums.items():
            self.sums[name] += value
        self.latest = max(self.latest, latest)

    @property
    def histogram(self) -> Histogram | None:
        """How the scores are spread; None where it was not asked for."""
        return None if self.spread is None else Histogram.of(self.spread)


class Gathering:
    """Reads sums within one transaction, which has to be a snapshot."""

    def __init__(self, connection: Connection, asked: Asked) -> None:
        self._connection = connection
        self._asked = asked

    def scores(self, names: Sequence[str], *, histograms: bool = True) -> dict[Key, Group]:
        """Return the sums over scores by bucket, these columns, and the label where there is a dimension."""
        found: dict[Key, Group] = {}
        for query in self._over_scores(names, histograms=histograms):
            for row in self._connection.execute(query):
                _put(found, row, histograms=histograms)
        if histograms:
            self._spread(names, found)
        return found

    def proxies(self, names: Sequence[str]) -> dict[Key, dict[str, float]]:
        """Return the sums over proxies by bucket and these columns, which are of service and route."""
        found: dict[Key, dict[str, float]] = {}
        known = exchange.c.proxy.is_not(None)
        for query in self._parts(
            self._spans, names, (exchange, exchange.c.started_at, _labelled(PROXIES), known),
            (rollup_proxy, _labelled(ROLLED_PROXIES), [rollup_proxy.c[name] for name in PROXIES]),
        ):  # fmt: skip
            for row in map(tuple, self._connection.execute(query)):
                key, sums = row[: -len(PROXIES)], dict(zip(PROXIES, row[-len(PROXIES) :], strict=True))
                there = found.setdefault(key, sums)
                if there is not sums:
                    for name, value in sums.items():
                        there[name] += value
        return found

    def counts(self, names: Sequence[str]) -> dict[Key, Outcomes]:
        """Return what became of exchanges, by bucket and these columns; it begins with the minute of ``since``."""
        found: dict[Key, Outcomes] = {}
        known: dict[tuple[str, str], tuple[str, str]] = {}  # a few, of which a year has thousands
        for query in self._parts(
            self._minutes, (*names, "outcome", "reason"),
            (tally, tally.c.minute, [func.sum(tally.c.count).label("total")], None),
            (rollup_count, [func.sum(rollup_count.c.count).label("total")], [rollup_count.c.count]),
        ):  # fmt: skip
            for row in map(tuple, self._connection.execute(query)):
                outcomes = found.setdefault(row[:-3], {})
                what = known.setdefault(row[-3:-1], row[-3:-1])
                outcomes[what] = outcomes.get(what, 0) + int(row[-1])
        return found

    @cached_property
    def _due(self) -> list[datetime]:
        return dirty_hours.hours(self._connection, self._asked.since, self._asked.until)

    @cached_property
    def _spans(self) -> Spans:
        return spans(self._asked.since, self._asked.until, self._due, self._asked.bucket)

    @cached_property
    def _minutes(self) -> Spans:
        since = self._asked.since.replace(second=0, microsecond=0)
        return spans(since, self._asked.until, self._due, self._asked.bucket)

    @cached_property
    def _of_labels(self) -> Spans:
        """The window as far as there are rollups by the dimension."""
        dimension = self._asked.dimension
        if not dimension or dimension in dimensions.rolled(self._connection):
            return self._spans
        return Spans((), [(self._asked.since, self._asked.until)])

    def _over_scores(self, names: Sequence[str], *, histograms: bool) -> Iterable[Select[Any]]:
        """Return queries of sums, the latest moment, and the packed weights where each row is read as it is."""
        none = null().label("histogram")
        columns = [*_labelled(SCORES), func.max(score.c.started_at).label("latest"), none]
        added = [*_labelled(ROLLED_SCORES), func.max(rollup.c.latest).label("latest"), none]
        as_is = [*(rollup.c[name] for name in SCORES), rollup.c.latest, rollup.c.histogram if histograms else none]
        source, label = self._rows()
        return self._parts(
            self._of_labels, names, (source, score.c.started_at, columns, None), (rollup, added, as_is), label
        )

    def _rows(self) -> tuple[Any, ColumnElement[str] | None]:
        if not self._asked.dimension:
            return score, None
        label = dimensions.label_of(self._asked.dimension, self._connection.dialect.name)
        return score.outerjoin(exchange, exchange.c.id == score.c.exchange_id), label

    def _spread(self, names: Sequence[str], found: dict[Key, Group]) -> None:
        """Give each group the rest of its histogram: of rows, and of what the database adds up."""
        source, label = self._rows()
        more = [] if label is None else [label]
        for run in self._of_labels.raw:
            keys = [*self._start(score.c.started_at), *(score.c[name] for name in names), *more]
            query = select(*keys, BIN.label("bin"), WEIGHT.label("weight")).select_from(source)
            query = query.where(*_within(score.c.started_at, run), *self._equal(score)).group_by(
                *_plain(keys), literal_column("bin")
            )
            weights: dict[Key, dict[int, float]] = {}
            for *key, number, weight in self._connection.execute(query):
                weights.setdefault(tuple(key), {})[number] = weight
            for group, bins in weights.items():
                found[group].spread.append(packed(bins))  # type: ignore[union-attr]  # made with the sums
        for span, run in self._of_labels.rolled:
            if self._is_bucket(span):
                continue  # they came with the sums
            keys = [*self._start(rollup.c.start), *(rollup.c[name] for name in (*names, *(["label"] if more else [])))]
            query = select(*keys, rollup.c.histogram).where(*self._of_rollup(rollup, names, span, run))
            for *key, blob in self._connection.execute(query):
                found[tuple(key)].spread.append(blob)  # type: ignore[union-attr]  # made with the sums

    def _parts(
        self,
        cut: Spans,
        names: Sequence[str],
        raw: tuple[Any, Any, Sequence[Any], Any],
        rolled: tuple[Any, Sequence[Any], Sequence[Any]],
        label: ColumnElement[str] | None = None,
    ) -> Iterable[Select[Any]]:
        """Return one query for each part of the window, all with the same columns.

        Rollups that are buckets are read row by row: there is hardly anything for the database to add up.
        """
        source, moment, columns, condition = raw
        table = moment.table
        for run in cut.raw:
            keys = [*self._start(moment), *(table.c[name] for name in names), *([] if label is None else [label])]
            query = select(*keys, *columns).select_from(source).where(*_within(moment, run), *self._equal(table))
            query = query if condition is None else query.where(condition)
            yield query.group_by(*_plain(keys))
        table, added, as_is = rolled
        for span, run in cut.rolled:
            more = [] if label is None else [table.c.label.label(dimensions.LABEL)]
            keys = [*(table.c[name] for name in names), *more]
            where = self._of_rollup(table, names, span, run)
            if self._is_bucket(span):
                yield select(Epoch(table.c.start).label("bucket"), *keys, *as_is).where(*where)
            else:
                keys = [*self._start(table.c.start), *keys]
                yield select(*keys, *added).where(*where).group_by(*_plain(keys))

    def _is_bucket(self, span: int) -> bool:
        """Whether rollups of this span are the buckets; those of labels are of one route each, and so only parts."""
        are_parts = bool(self._asked.dimension) and ROUTE not in self._asked.equal
        return span == self._asked.bucket and not are_parts

    def _start(self, moment: Any) -> list[ColumnElement[int]]:
        if self._asked.bucket is None:
            return []
        # Written out, because PostgreSQL takes the same expression with two parameters for two expressions.
        length = literal_column(str(self._asked.bucket), Integer)
        return [(Epoch(moment) // length * length).label("bucket")]

    def _equal(self, table: Any) -> list[Any]:
        # Of exchanges by time alone: SQLite would take the index by route, which holds no proxies.
        column = Unsought if table is exchange else lambda one: one
        return [column(table.c[name]) == value for name, value in self._asked.equal.items() if name in table.c]

    def _of_rollup(self, table: Any, names: Sequence[str], span: int, run: Run) -> list[Any]:
        of_routes = ROUTE if ROUTE in names or ROUTE in self._asked.equal else ""
        dimension = (self._asked.dimension if table is rollup else "") or of_routes
        conditions = [table.c.span == span, table.c.dimension == dimension]
        return [*conditions, *_within(table.c.start, run), *self._equal(table)]


def _within(moment: Any, run: Run) -> list[Any]:
    return [moment >= run[0], moment < run[1]]


def _labelled(columns: Mapping[str, Any]) -> list[Any]:
    return [column.label(name) for name, column in columns.items()]


def _plain(keys: Sequence[Any]) -> list[Any]:
    """Return what to group by: made columns by their names, because their parameters differ from place to place."""
    return [literal_column(key.name) if isinstance(key, Label) else key for key in keys]


_BEFORE = -len(SCORES) - 2
"""Where in a row the sums begin: the key comes before, the latest moment and the weights after them."""


def _put(found: dict[Key, Group], row: Row[Any], *, histograms: bool) -> None:
    """Add one row: what it is of, its sums, when the latest of its answers was given, and its packed weights."""
    values = tuple(row)
    key, latest, blob = values[:_BEFORE], values[-2], values[-1]
    sums = dict(zip(SCORES, values[_BEFORE:-2], strict=True))
    if key in found:
        found[key].add(sums, latest)
    else:
        found[key] = Group(sums, latest, [] if histograms else None)
    if blob is not None:
        found[key].spread.append(blob)  # type: ignore[union-attr]  # it was asked for
