"""Search for the lowest scores in a window. Equal scores are sorted newest first.

There are four strategies, each of which is fast in a different situation:

- If only low scores are searched for, and the window has few of them, read all of these through their index.
- If the window has few scores, read all of them through the time index.
- If the route has few exchanges in the window, read their scores.
- If the window has many scores, many of the lowest scores overall are in it: read the value index in ascending order.
  A value that many scores share, such as 0 for refusals, is looked up within the window.

Each strategy gives up if it would be slow. The fallback is to read the whole window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, false, func, literal_column, or_, select

from germane.score import NONCOMMITTAL
from germane.storage.db.conditions import LOW_SQL, matching, within
from germane.storage.db.engine import share
from germane.storage.db.functions import Unindexed
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, rollup, score
from germane.storage.trends.time_ranges import DAY, down

SMALL_WINDOW = 40_000
"""Maximum number of scores in a window for which the whole window is read."""
FEW_LOW = 200_000
"""Maximum number of a scorer's low scores in a window for which all of them are read."""
SMALL_ROUTE = 2_000
"""Maximum number of a route's exchanges in a window for which all their scores are read."""
VALUE_SCAN_STEPS = (10_000, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Number of scores to read from the value index in each step. Scores equal to the last value are looked up in the
window.
"""
MIN_MATCH_RATIO = 100
"""If the value index does not cover a condition, it is used only if at least one in this many scores matches."""

ScorePosition = tuple[float, datetime, int]
"""A score's value, time and id."""
Rows = list[RowMapping]
VALUE: ColumnElement[Any] = score.c.value + 0.0  # prevents databases from using the value index
_NEWEST = (score.c.started_at.desc(), score.c.id.desc())
IS_LOW: ColumnElement[Any] = literal_column(f"({LOW_SQL})")
UNINDEXED_LOW: ColumnElement[Any] = func.coalesce(IS_LOW, false())
"""The same, but databases cannot use the index of low scores for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCriteria:
    """Conditions on scores. None matches all. The window applies to the answers: ``since <= started_at < until``."""

    since: datetime | None = None
    until: datetime | None = None
    scorer: str | None = None
    service: str | None = None
    route: str | None = None
    fingerprint: str | None = None
    label: str | None = None
    """Label of the score, such as ``noncommittal``."""
    low: bool = False
    """Only scores in the lowest band, as in :attr:`germane.score.Score.is_low`."""
    refusals: bool | None = None
    """Only refusals, or only other answers. Refusals all score 0, so they would hide the other low scores."""
    at_least: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreFilter(ScoreCriteria):
    """Score criteria that can be converted to SQL conditions."""

    after: ScorePosition | None = None
    """Only scores after this position."""

    def conditions(
        self, moment: ColumnElement[Any] = score.c.started_at, is_low: ColumnElement[Any] = IS_LOW
    ) -> list[ColumnElement[bool]]:
        """Return all conditions as SQL, with these expressions for the answer time and for low scores."""
        named = {name: getattr(self, name) for name in ("scorer", "service", "route", "fingerprint", "label")}
        conditions = [*self.window(moment), *matching(score, **named)]
        if self.low:
            conditions.append(is_low)
        if self.refusals is not None:
            is_refusal = score.c.label == NONCOMMITTAL
            conditions.append(is_refusal if self.refusals else or_(score.c.label.is_(None), ~is_refusal))
        conditions += self._range(VALUE)
        if self.after is not None:
            (value, at, id_), column = self.after, VALUE
            newer = or_(moment < at, and_(moment == at, score.c.id < id_))
            conditions.append(or_(column > value, and_(column == value, newer)))
        return conditions

    def value_range(self) -> list[ColumnElement[bool]]:
        """Return the SQL conditions that select the range of the value index to read."""
        return [*self._range(score.c.value), *([] if self.after is None else [score.c.value >= self.after[0]])]

    def window(self, moment: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        """Return the SQL conditions that restrict ``moment`` to the window."""
        return within(moment, self.since, self.until)

    def _range(self, value: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        lower = [] if self.at_least is None else [value >= self.at_least]
        return lower if self.below is None else [*lower, value < self.below]


Strategy = Callable[[Connection, ScoreFilter, int], Rows | None]


def find_lowest(
    connection: Connection, chosen: ScoreFilter, limit: int, strategies: Sequence[Strategy] | None = None
) -> Rows:
    """Return the ``limit`` lowest rows of the ``score`` table, using the first strategy that does not give up."""
    for strategy in STRATEGIES if strategies is None else strategies:
        rows = strategy(connection, chosen, limit)
        if rows is not None:
            return rows
    return []


def find_lowest_fast(connection: Connection, chosen: ScoreFilter, limit: int, few: int = SMALL_WINDOW) -> Rows | None:
    """Return the same rows as :func:`find_lowest` if a fast strategy finds them, or None."""
    rows = scan_low(connection, chosen, limit)
    if rows is None:
        rows = scan_small_window(connection, chosen, limit, few)
    if rows is None:
        rows = scan_route(connection, chosen, limit)
    if rows is not None:
        return rows
    uncovered = (chosen.service, chosen.fingerprint, chosen.label, chosen.refusals)
    if any(uncovered) or (chosen.low and chosen.at_least is not None):
        # The value index does not cover these conditions. Estimate the share of matches from the newest scores.
        floor = find_floor(connection, chosen.since, chosen.until, few)
        newest = replace(chosen, since=floor or chosen.since, after=None).conditions()
        sample = select(score.c.value).where(*newest).limit(few // MIN_MATCH_RATIO + 1).subquery("sample")
        if connection.execute(select(func.count()).select_from(sample)).scalar_one() <= few // MIN_MATCH_RATIO:
            return None
    return scan_by_value(connection, chosen, limit)


def scan_floor(
    connection: Connection, moment: ColumnElement[Any], inside: Sequence[ColumnElement[bool]], bound: int
) -> datetime | None:
    """Return the time of the row that is ``bound`` rows older than the newest, or None if there are fewer rows."""
    query = select(moment).where(*inside).order_by(moment.desc()).offset(bound).limit(1)
    floor: datetime | None = connection.execute(query).scalar()
    return floor


def find_floor(connection: Connection, since: datetime | None, until: datetime | None, bound: int) -> datetime | None:
    """Return the time of the score that is ``bound`` scores older than the newest of a window, or None if it has fewer.

    The searches of a page need the same one, so they share the result if they see one state of the database.
    """
    moment = score.c.started_at
    inside = within(moment, since, until)
    return share(connection, ("floor", since, until, bound), lambda: scan_floor(connection, moment, inside, bound))


def count_rolled_scores(connection: Connection, since: datetime | None, until: datetime | None) -> int:
    """Return the number of scores in the rollups of a window's whole days, which include archived and deleted ones."""
    days = within(rollup.c.start, since, None if until is None else down(until, DAY))
    counted = select(func.sum(rollup.c.n)).where(rollup.c.span == DAY, rollup.c.dimension == "", *days)
    return int(connection.execute(counted).scalar_one() or 0)


def has_more_scores(connection: Connection, window: tuple[datetime | None, datetime | None], bound: int) -> bool:
    """Return whether a window has more scores than ``bound`` that are not archived."""
    moment = score.c.started_at
    # Count from the oldest score: SQLite needs about half as long again to read an index backward.
    more = select(moment).where(*within(moment, *window)).order_by(moment).offset(bound).limit(1)
    return connection.execute(more).first() is not None


def has_more_low(connection: Connection, scorer: str, since: datetime | None, until: datetime | None, few: int) -> bool:
    """Return whether a scorer has more low scores in a window than ``few``."""
    moment = score.c.started_at
    low = select(moment).where(IS_LOW, score.c.scorer == scorer, *within(moment, since, until))
    more = low.order_by(moment).offset(few).limit(1)
    return share(connection, ("low", scorer, since, until, few), lambda: connection.execute(more).first() is not None)


def scan_low(connection: Connection, chosen: ScoreFilter, limit: int, few: int = FEW_LOW) -> Rows | None:
    """Read the low scores of the window if only these are searched for and there are few; otherwise, return None."""
    scorer = chosen.scorer
    if not chosen.low or scorer is None or has_more_low(connection, scorer, chosen.since, chosen.until, few):
        return None
    return scan_window(connection, chosen, limit)


def scan_small_window(connection: Connection, chosen: ScoreFilter, limit: int, few: int = SMALL_WINDOW) -> Rows | None:
    """Read the whole window if it has few scores; otherwise, return None.

    If rollups show many scores, they are not counted. If most of those are archived, a slower strategy is used.
    """
    window = (chosen.since, chosen.until)

    def is_large() -> bool:
        return count_rolled_scores(connection, *window) > few or has_more_scores(connection, window, few)

    if share(connection, ("large", window, few), is_large):
        return None
    return scan_window(connection, chosen, limit)


def scan_window(connection: Connection, chosen: ScoreFilter, limit: int) -> Rows:
    """Read the whole window.

    The first query reads only values and times, from the index. The second reads the rows with the selected times.
    """
    conditions = chosen.conditions()
    query = select(score.c.value, score.c.started_at).where(*conditions)
    lowest = connection.execute(query.order_by(VALUE, score.c.started_at.desc()).limit(limit)).all()
    rows: Rows = []
    for moments in batched(sorted({row.started_at for row in lowest})):
        narrowed = select(score).where(*conditions, score.c.started_at.in_(moments), lowest[-1].value >= VALUE)
        rows += connection.execute(narrowed).mappings()
    return lowest_first(rows, limit)


def scan_archive(archive: Connection, chosen: ScoreFilter, limit: int, *narrowing: ColumnElement[bool]) -> Rows:
    """Read the whole window of an archive, which has no indexes.

    All results meet the ``narrowing`` conditions, by which less has to be read.
    """
    query = select(score).where(*narrowing, *chosen.conditions()).order_by(VALUE, *_NEWEST).limit(limit)
    return list(archive.execute(query).mappings())


def scan_route(connection: Connection, chosen: ScoreFilter, limit: int, few: int = SMALL_ROUTE) -> Rows | None:
    """Read the scores of the route's exchanges if there are few of them; otherwise, return None."""
    inside = (exchange.c.route == chosen.route, *chosen.window(exchange.c.started_at))
    if chosen.route is None or scan_floor(connection, exchange.c.started_at, inside, few) is not None:
        return None
    named = replace(chosen, since=None, until=None).conditions()
    query = select(score).where(score.c.exchange_id.in_(select(exchange.c.id).where(*inside)), *named)
    return list(connection.execute(query.order_by(VALUE, *_NEWEST).limit(limit)).mappings())


def scan_by_value(
    connection: Connection, chosen: ScoreFilter, limit: int, steps: Sequence[int | None] = VALUE_SCAN_STEPS
) -> Rows | None:
    """Read scores in ascending order of value, in steps. Return None if all steps together find too few scores."""
    conditions = chosen.conditions(Unindexed(score.c.started_at), UNINDEXED_LOW)
    rows: Rows = []
    remaining = chosen.value_range()
    for count in steps:
        end = None
        if count is not None:
            query = select(score.c.value).where(*remaining).order_by(score.c.value).offset(count).limit(1)
            end = connection.execute(query).scalar()
        below_end = [] if end is None else [score.c.value < end]
        rows += _fetch(connection, [*remaining, *below_end], conditions, limit - len(rows))
        if len(rows) < limit and end is not None:
            # Fetch the newest scores with this value for each scorer, because the index sorts them by scorer and time.
            # Stepping through the index from scorer to scorer is faster than reading all of it.
            same = score.c.value == end
            first = select(func.min(score.c.scorer)).where(same)
            equal: Rows = []
            scorer = chosen.scorer if chosen.scorer is not None else connection.execute(first).scalar_one()
            while scorer is not None:
                wanted = [*chosen.conditions(is_low=UNINDEXED_LOW), score.c.scorer == scorer]
                equal += _fetch(connection, [same], wanted, limit - len(rows))
                following = first.where(score.c.scorer > scorer)
                scorer = None if chosen.scorer is not None else connection.execute(following).scalar_one()
            rows += lowest_first(equal, limit - len(rows))
        if len(rows) >= limit or end is None:
            return rows[:limit]
        remaining = [*chosen.value_range(), score.c.value > end]
    return None


def _fetch(
    connection: Connection,
    values: Iterable[ColumnElement[bool]],
    conditions: Iterable[ColumnElement[bool]],
    limit: int,
) -> Rows:
    query = select(score).where(*values, *conditions).order_by(score.c.value, *_NEWEST).limit(limit)
    return list(connection.execute(query).mappings())


def lowest_first(rows: Iterable[RowMapping], limit: int) -> Rows:
    """Return the first rows in the order of the searches."""
    return sorted(rows, key=lambda row: (row["value"], -row["started_at"].timestamp(), -row["id"]))[:limit]


def scan_some_values(connection: Connection, chosen: ScoreFilter, limit: int) -> Rows | None:
    """Read scores in ascending order of value, but give up if reading the whole window is faster."""
    # A score takes twice as long to read from the value index, which covers fewer conditions.
    size = count_rolled_scores(connection, chosen.since, chosen.until)
    totals = zip(VALUE_SCAN_STEPS, accumulate(VALUE_SCAN_STEPS, initial=0), strict=False)
    return scan_by_value(connection, chosen, limit, [step for step, read in totals if not size or 2 * read < size])


STRATEGIES: tuple[Strategy, ...] = (scan_low, scan_small_window, scan_route, scan_some_values, scan_window)
