"""The lowest scores of archived days.

Reading all archived scores of a long window takes seconds. The database therefore keeps, for each archived day, the
positions of the lowest scores of each service, scorer and fingerprint, and of each route. They show what a search has
to read, so that it is exact for every filter and limit:

- The ``limit``-th listed score that certainly matches the filter is an upper bound: no result is after it.
- Listed scores that may match and are not after the bound are read.
- If a list ends before the bound although the day has more scores, all scores of the day are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, and_, delete, func, insert, select

from germane.score import LOWEST_BAND, NONCOMMITTAL
from germane.storage.answers.lowest_scores import IS_LOW, Rows, ScoreFilter, lowest_first, scan_archive
from germane.storage.archive.days import ONE_DAY
from germane.storage.archive.reader import in_window, open_archive
from germane.storage.db.mappers import batched
from germane.storage.db.tables import archived_day, archived_lowest, score
from germane.storage.trends.dimensions import ROUTE

if TYPE_CHECKING:
    from numpy.typing import NDArray

LISTED: Final = 10
"""Number of refusals, and of other scores, that are listed for a group on one day.

With longer lists, the bound is lower, so that searches with a high limit read fewer days; but the rows are larger.
"""
ENTRY: Final = [("value", "<f8"), ("started_at", "<i8"), ("flags", "u1")]
"""A position in a list: the score, the answer's time in microseconds since 1970, and flags."""
_IS_REFUSAL, _IS_LOW, _IS_LOWEST_BAND, _HAS_MORE = 1, 2, 4, 8
"""Flags. The last one marks the end of a list of a day that has more scores."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def compute_lowest(archive: Connection) -> list[dict[str, Any]]:
    """Return the rows of ``archived_lowest`` for a day, without the day, given a connection to its files."""
    return [row for dimension in ("", ROUTE) for row in _compute(archive, dimension)]


def _compute(archive: Connection, dimension: str) -> list[dict[str, Any]]:
    import numpy as np

    names = ["service", *([ROUTE] if dimension else []), "scorer", "fingerprint"]
    keys = [score.c[name] for name in names]
    is_refusal = func.coalesce(score.c.label == NONCOMMITTAL, False)
    of_list = [*keys, is_refusal]
    number = func.row_number().over(partition_by=of_list, order_by=[score.c.value, score.c.started_at.desc()])
    flags = [is_refusal, IS_LOW, score.c.label == LOWEST_BAND, func.count().over(partition_by=of_list) > LISTED]
    numbered = select(
        *keys,
        score.c.value,
        score.c.started_at,
        number.label("number"),
        *(func.coalesce(flag, False).label(f"flag{index}") for index, flag in enumerate(flags)),
    ).subquery()
    groups: dict[tuple[Any, ...], list[tuple[float, int, int]]] = {}
    for row in archive.execute(select(numbered).where(numbered.c.number <= LISTED)).mappings():
        marks = [bool(row[f"flag{index}"]) for index in range(len(flags))]
        marks[-1] &= row["number"] == LISTED  # the last of a list whose group has more scores
        packed = sum(flag << index for index, flag in enumerate(marks))
        entry = row["value"], (row["started_at"] - _EPOCH) // _MICROSECOND, packed
        groups.setdefault(tuple(row[name] for name in names), []).append(entry)
    return [
        {"route": "", **dict(zip(names, key, strict=True)), "dimension": dimension}
        | {"entries": np.array(entries, ENTRY).tobytes()}
        for key, entries in groups.items()
    ]


def write_lowest(connection: Connection, day: datetime, rows: Sequence[dict[str, Any]]) -> None:
    """Replace the rows of a day in ``archived_lowest``."""
    connection.execute(
        delete(archived_lowest).where(archived_lowest.c.dimension.in_(["", ROUTE]), archived_lowest.c.day == day)
    )
    if rows:
        connection.execute(insert(archived_lowest), [{"day": day, **row} for row in rows])


def find_archived(connection: Connection, chosen: ScoreFilter, limit: int) -> Rows:
    """Return the ``limit`` lowest rows of the archive's ``score`` table."""
    plan = plan_search(connection, chosen, limit)
    below = [] if plan.max_value is None else [score.c.value <= plan.max_value]
    rows: Rows = []
    if plan.days:
        with open_archive(connection, plan.days) as archive:
            rows += scan_archive(archive, chosen, limit, *below)
    if plan.moments:
        days = {moment.replace(hour=0, minute=0, second=0, microsecond=0) for moment in plan.moments}
        with open_archive(connection, days) as archive:
            for moments in batched(plan.moments):
                rows += scan_archive(archive, chosen, limit, score.c.started_at.in_(moments), *below)
    return lowest_first(rows, limit)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The part of the archive that can contain the lowest scores."""

    days: Sequence[datetime]
    """Days of which all scores are read."""
    moments: Sequence[datetime]
    """Times of answers on other days."""
    max_value: float | None
    """The highest value that a result can have; None if the lists contain too few scores that match."""


def plan_search(connection: Connection, chosen: ScoreFilter, limit: int) -> SearchPlan:
    """Find the part of the archive that can contain the ``limit`` lowest scores."""
    values = {name: getattr(chosen, name) for name in ("service", ROUTE, "scorer", "fingerprint")}
    values |= {"day": archived_day.c.day, "dimension": "" if chosen.route is None else ROUTE}
    of_group = [archived_lowest.c[name] == value for name, value in values.items() if value is not None]
    query = select(archived_day.c.day, archived_day.c.has_lowest, archived_lowest.c.entries)
    query = query.outerjoin_from(archived_day, archived_lowest, and_(*of_group))
    rows = connection.execute(query.where(*in_window(chosen.since, chosen.until))).all()
    if not rows:  # as without an archive, when the dashboard does not load NumPy
        return SearchPlan((), (), None)
    import numpy as np

    # Days without lists are being removed from the database.
    unlisted = {row.day for row in rows if not row.has_lowest}
    listed = np.frombuffer(b"".join(row.entries for row in rows if row.has_lowest and row.entries), ENTRY)

    matches, may_match, may_have_more = _match(listed, chosen)
    bound = None
    found = np.flatnonzero(matches)
    if 0 < limit <= len(found):
        candidates = listed[found]
        # Searches return the lowest first, and equal scores newest first.
        last = candidates[np.lexsort((-candidates["started_at"], candidates["value"]))[limit - 1]]
        bound = float(last["value"])
        is_equal = (listed["value"] == bound) & (listed["started_at"] >= last["started_at"])
        is_before = (listed["value"] < bound) | is_equal
        may_match, may_have_more = may_match & is_before, may_have_more & is_before
    day_numbers = listed["started_at"] // (ONE_DAY // _MICROSECOND)
    whole = np.unique(day_numbers[may_have_more])
    moments = np.unique(listed["started_at"][may_match & ~np.isin(day_numbers, whole)])
    return SearchPlan(
        days=sorted(unlisted | {_EPOCH + int(number) * ONE_DAY for number in whole}),
        moments=[_EPOCH + int(moment) * _MICROSECOND for moment in moments],
        max_value=bound,
    )


def _match(listed: NDArray[Any], chosen: ScoreFilter) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Compare listed scores with a filter.

    Returns:
        Three arrays of booleans: whether each score certainly matches, whether it may match, and whether it ends a list
        of a day that may have more matching scores.
    """
    value, at, flags = listed["value"], listed["started_at"], listed["flags"]
    is_refusal = (flags & _IS_REFUSAL) != 0
    possible = value == value  # all
    # A list contains refusals or other scores, lowest first. If its end fails these conditions, so does what follows.
    if chosen.refusals is not None:
        possible &= is_refusal == chosen.refusals
    if chosen.label is not None:
        possible &= is_refusal == (chosen.label == NONCOMMITTAL)
    if chosen.below is not None:
        possible &= value < chosen.below
    more = possible & ((flags & _HAS_MORE) != 0)
    if chosen.label not in {None, NONCOMMITTAL}:
        possible &= ((flags & _IS_LOWEST_BAND) != 0) == (chosen.label == LOWEST_BAND)
    if chosen.since is not None:
        possible &= at >= (chosen.since - _EPOCH) // _MICROSECOND
    if chosen.until is not None:
        possible &= at < (chosen.until - _EPOCH) // _MICROSECOND
    if chosen.low:
        possible &= (flags & _IS_LOW) != 0
    if chosen.at_least is not None:
        possible &= value >= chosen.at_least
    certain = possible & (chosen.label in {None, NONCOMMITTAL, LOWEST_BAND})  # other labels are not in the lists
    if chosen.after is not None:
        last_value, last_at, _ = chosen.after
        position = (last_at - _EPOCH) // _MICROSECOND
        certain &= (value > last_value) | ((value == last_value) & (at < position))
        # The order of scores with the same time depends on their ids, which are not in the lists.
        possible &= (value > last_value) | ((value == last_value) & (at <= position))
    return certain, possible, more
