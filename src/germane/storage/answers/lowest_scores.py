"""The lowest scores of a window, of equal ones the newest first: by whichever way is short.

Three ways lead there, and which of them is short depends on what was asked for:

- the window holds few scores: all of them are read from the index by time;
- the route has few exchanges in the window: the scores of these are read;
- else scores are many, so that not far from the lowest value enough of them lie in the window: the index by value is
  read upwards. A value that very many scores share, as refusals all have 0, is looked up in the window.

Each way gives up where it would take long, and the last resort reads the whole window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, or_, select

from germane.score import BANDS, LOW, LOWEST
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, score
from germane.storage.trends.aggregates import Unsought

FEW = 40_000
"""Scores in a window that are read one and all."""
SPARSE = 2_000
"""Exchanges of a route whose scores are read one and all."""
STEPS = (10_000, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Scores of which the index by value is read at a time; who shares the last one's value is looked up in the window."""


After = tuple[float, datetime, int]
"""Value, moment and id of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which scores: those of answers given since <= started_at < until, and of these names."""

    since: datetime | None = None
    until: datetime | None = None
    scorer: str | None = None
    service: str | None = None
    route: str | None = None
    fingerprint: str | None = None
    label: str | None = None
    low: bool = False
    """Only those in the lowest band, as :attr:`germane.score.Score.is_low` says it."""
    at_least: float | None = None
    below: float | None = None
    after: After | None = None
    """Only those that come later in the order of the lowest."""

    def conditions(self, moment: ColumnElement[Any] = score.c.started_at) -> list[ColumnElement[bool]]:
        """Return what holds for the rows."""
        named = {name: getattr(self, name) for name in ("scorer", "service", "route", "fingerprint", "label")}
        found = [score.c[name] == value for name, value in named.items() if value is not None]
        low = [_IS_LOW] if self.low else []
        return [*self.window(moment), *found, *low, *self._range(_VALUE), *_later(self.after, moment)]

    def values(self) -> list[ColumnElement[bool]]:
        """Return the range in which the index by value is to be read."""
        start = [] if self.after is None else [score.c.value >= self.after[0]]
        return [*self._range(score.c.value), *start]

    def _range(self, value: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        lower = [] if self.at_least is None else [value >= self.at_least]
        return lower if self.below is None else [*lower, value < self.below]

    def window(self, moment: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        """Return what holds for the moment."""
        since = [] if self.since is None else [moment >= self.since]
        return since if self.until is None else [*since, moment < self.until]


_VALUE = score.c.value + 0.0  # so that no database takes the index by value


def _later(after: After | None, moment: ColumnElement[Any]) -> list[ColumnElement[bool]]:
    if after is None:
        return []
    (value, at, id_), column = after, _VALUE
    newer = or_(moment < at, and_(moment == at, score.c.id < id_))
    return [or_(column > value, and_(column == value, newer))]


_NAMES = [name for _, name in BANDS]
_IS_LOW = or_(
    score.c.label == LOWEST,
    and_(score.c.value < LOW, or_(score.c.label.is_(None), score.c.label.not_in(_NAMES))),
)


Rows = list[RowMapping]
Way = Callable[[Connection, Chosen, int], Rows | None]
_NEWEST = (score.c.started_at.desc(), score.c.id.desc())


def lowest(connection: Connection, chosen: Chosen, limit: int, ways: Sequence[Way] | None = None) -> Rows:
    """Return rows of the table ``score``; ``ways`` are tried in their order until one does not give up."""
    for way in WAYS if ways is None else ways:
        found = way(connection, chosen, limit)
        if found is not None:
            return found
    return []


def found_soon(connection: Connection, chosen: Chosen, limit: int, few: int = FEW) -> Rows | None:
    """Return the same by a way that is short; None where there is none."""
    found = of_few(connection, chosen, limit, few)
    if found is None:
        found = of_route(connection, chosen, limit)
    if found is None and _are_common(connection, chosen, few):
        found = by_value(connection, chosen, limit)
    return found


COMMON = 100
"""Of so many scores one, at least, has a name for which the index by value is read, that does not know it."""


def _are_common(connection: Connection, chosen: Chosen, few: int) -> bool:
    """Whether such scores are to be expected soon, by the newest of the window."""
    unknown = (chosen.service, chosen.fingerprint, chosen.label, chosen.low and chosen.at_least is not None)
    if not any(unknown):
        return True
    window = chosen.window(score.c.started_at)
    floor = connection.execute(
        select(score.c.started_at).where(*window).order_by(score.c.started_at.desc()).offset(few).limit(1)
    ).scalar()
    newest = replace(chosen, since=floor or chosen.since, after=None).conditions()
    sample = select(score.c.value).where(*newest).limit(few // COMMON + 1).subquery("sample")
    return connection.execute(select(func.count()).select_from(sample)).scalar_one() > few // COMMON


def of_few(connection: Connection, chosen: Chosen, limit: int, few: int = FEW) -> Rows | None:
    """Read the whole window where it holds few scores."""
    many = _exceeds(connection, score.c.started_at, chosen.window(score.c.started_at), few)
    return None if many else of_all(connection, chosen, limit)


def _exceeds(
    connection: Connection, moment: ColumnElement[Any], inside: Sequence[ColumnElement[bool]], count: int
) -> bool:
    query = select(moment).where(*inside).order_by(moment).offset(count).limit(1)
    return connection.execute(query).scalar() is not None


def of_all(connection: Connection, chosen: Chosen, limit: int) -> Rows:
    """Read the whole window.

    First values and moments alone, all of which the index holds; then, by their moments, the rows that have them.
    """
    conditions = chosen.conditions()
    query = select(score.c.value, score.c.started_at).where(*conditions)
    found = connection.execute(query.order_by(_VALUE, score.c.started_at.desc()).limit(limit)).all()
    rows: Rows = []
    for moments in batched(sorted({row.started_at for row in found})):
        narrowed = select(score).where(*conditions, score.c.started_at.in_(moments), found[-1].value >= _VALUE)
        rows += connection.execute(narrowed).mappings()
    return _first(rows, limit)


def of_route(connection: Connection, chosen: Chosen, limit: int, few: int = SPARSE) -> Rows | None:
    """Read the scores of the route's exchanges where these are few."""
    inside = (exchange.c.route == chosen.route, *chosen.window(exchange.c.started_at))
    if chosen.route is None or _exceeds(connection, exchange.c.started_at, inside, few):
        return None
    named = replace(chosen, since=None, until=None).conditions()
    query = select(score).where(score.c.exchange_id.in_(select(exchange.c.id).where(*inside)), *named)
    return list(connection.execute(query.order_by(_VALUE, *_NEWEST).limit(limit)).mappings())


def by_value(connection: Connection, chosen: Chosen, limit: int, steps: Sequence[int | None] = STEPS) -> Rows | None:
    """Read upwards from the lowest value, so many scores at a time; None where all the steps were not enough."""
    conditions = chosen.conditions(Unsought(score.c.started_at))
    rows: Rows = []
    beyond = chosen.values()
    for count in steps:
        end = None if count is None else _value(connection, beyond, count)
        rows += _take(
            connection, [*beyond, *([] if end is None else [score.c.value < end])], conditions, limit - len(rows)
        )
        if len(rows) < limit and end is not None:
            rows += _sharing(connection, end, chosen, limit - len(rows))
        if len(rows) >= limit or end is None:
            return rows[:limit]
        beyond = [*chosen.values(), score.c.value > end]
    return None


def _value(connection: Connection, beyond: Iterable[ColumnElement[bool]], count: int) -> float | None:
    """Return the value that so many scores lie under, of those beyond a value."""
    query = select(score.c.value).where(*beyond).order_by(score.c.value).offset(count).limit(1)
    found: float | None = connection.execute(query).scalar()
    return found


def _sharing(connection: Connection, value: float, chosen: Chosen, limit: int) -> Rows:
    """Return the newest with one value: of each scorer, since by scorer they lie in the order of time."""
    same = score.c.value == value
    rows: Rows = []
    for scorer in [chosen.scorer] if chosen.scorer is not None else _scorers(connection, same):
        rows += _take(connection, [same, score.c.scorer == scorer], chosen.conditions(), limit)
    return _first(rows, limit)


def _scorers(connection: Connection, same: ColumnElement[bool]) -> Iterator[str]:
    """Go from one name to the next by the index, which is quicker than reading it."""
    name = connection.execute(select(func.min(score.c.scorer)).where(same)).scalar_one()
    while name is not None:
        yield name
        name = connection.execute(select(func.min(score.c.scorer)).where(same, score.c.scorer > name)).scalar_one()


def _take(
    connection: Connection,
    values: Iterable[ColumnElement[bool]],
    conditions: Iterable[ColumnElement[bool]],
    limit: int,
) -> Rows:
    query = select(score).where(*values, *conditions).order_by(score.c.value, *_NEWEST).limit(limit)
    return list(connection.execute(query).mappings())


def _first(rows: Iterable[RowMapping], limit: int) -> Rows:
    return sorted(rows, key=_place)[:limit]


def _place(row: RowMapping) -> tuple[float, float, int]:
    return row["value"], -row["started_at"].timestamp(), -row["id"]


WAYS: tuple[Way, ...] = (of_few, of_route, by_value, of_all)
