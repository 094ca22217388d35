"""A sample of single scores for charts: all scores of a small window, or an even sample and the lowest ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, bindparam, select

from germane.score import LOW_SCORE
from germane.storage.db.conditions import matching, within
from germane.storage.db.functions import Unindexed
from germane.storage.db.tables import score

MAX_SCORES: Final = 4_000
"""Maximum number of scores that are all returned."""
MAX_SAMPLED: Final = 1_500
"""Maximum number of sampled scores if there are more."""
MAX_ROWS_READ: Final = 20_000
"""Maximum number of rows of all routes that are read to find them."""
MAX_LOWEST: Final = 300
"""Maximum number of scores of the first scorer that are added because they are low."""
SLICES: Final = 25
"""Number of equal parts of a window from which a sample is drawn."""
_MOMENT = score.c.started_at
_BY_TIME: Final = itemgetter(0, 1, 2)  # not the label, which may be missing and is then not comparable


class SampledScore(NamedTuple):
    """A score on a chart."""

    answered_at: datetime
    """UTC."""
    value: float
    scorer: str
    label: str | None


def load_sample(
    connection: Connection, window: tuple[datetime, datetime], scorers: Sequence[str], equal: Mapping[str, str | None]
) -> tuple[list[SampledScore], bool]:
    """Return scores of some scorers, oldest first, and whether these are all. ``equal`` has the service and route.

    A large window is divided into equal parts, and the same number of rows is read from the time index in each. The
    lowest scores of the first scorer are added from the value index. Archived scores are not read.
    """
    more = select(_MOMENT).where(*within(_MOMENT, *window)).order_by(_MOMENT).offset(MAX_ROWS_READ).limit(1)
    if connection.execute(more).first() is None:
        found = _read(connection, [window], scorers, equal, MAX_ROWS_READ, MAX_SCORES + 1)
        if len(found) <= MAX_SCORES:
            return sorted(found, key=_BY_TIME), True
    sampled: set[SampledScore] = set()
    # Scores of exactly 0, such as refusals, are at one height, so the sample has enough of them.
    for low in ([score.c.value < 0], [score.c.value > 0, score.c.value < LOW_SCORE]):
        query = _select(score, scorers[:1], equal).where(*low, *within(Unindexed(_MOMENT), *window))
        sampled.update(map(SampledScore._make, connection.execute(query.order_by(score.c.value).limit(MAX_LOWEST))))
    since, length = window[0], (window[1] - window[0]) / SLICES
    starts = [since + number * length for number in range(SLICES)]
    parts = [(start, start + length) for start in starts]
    sampled.update(_read(connection, parts, scorers, equal, MAX_ROWS_READ // SLICES, MAX_SAMPLED // SLICES))
    return sorted(sampled, key=_BY_TIME), False


def _read(
    connection: Connection,
    windows: Iterable[tuple[datetime, datetime]],
    scorers: Sequence[str],
    equal: Mapping[str, str | None],
    rows: int,
    limit: int,
) -> list[SampledScore]:
    """Return up to ``limit`` scores among the first rows of each window, which are read from the index alone."""
    columns = [score.c[name] for name in ("started_at", "value", "scorer", "label", "service", "route")]
    inside = (bindparam("since") <= _MOMENT, bindparam("until") > _MOMENT)
    first = select(*columns).where(*inside).order_by(_MOMENT).limit(rows).subquery()
    query = _select(first, scorers, equal).limit(limit)  # building it takes longer than executing it
    return [
        SampledScore._make(row)
        for since, until in windows
        for row in connection.execute(query, {"since": since, "until": until}).all()
    ]


def _select(table: Any, scorers: Sequence[str], equal: Mapping[str, str | None]) -> Select[Any]:
    query = select(table.c.started_at, table.c.value, table.c.scorer, table.c.label)
    return query.where(*matching(table, **equal), table.c.scorer.in_(scorers))
