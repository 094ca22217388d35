"""What waits to be scored, by scorer, counted up to so many of each kind: short to read, however much there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, select, text

from germane.storage.backlog import OpenTasks
from germane.storage.tables import scoring_task

Pair = tuple[str, str]
"""Scorer and fingerprint."""
MANY: Final = 10_000
"""What waits is counted up to so many."""
# As the indices have it, which a value that is bound does not show.
OPEN: Final = text("not_before IS NOT NULL")
CANDIDATE: Final = text("state = 'pending' AND not_before IS NULL")
_OF_PAIR: Final = (
    scoring_task.c.scorer == bindparam("scorer"),
    scoring_task.c.fingerprint == bindparam("fingerprint"),
)


def pairs(connection: Connection) -> list[Pair]:
    """Return the scorers that have open tasks or candidates, with their fingerprints."""
    return sorted({*_distinct(connection, OPEN), *_distinct(connection, CANDIDATE)})


def _distinct(connection: Connection, condition: Any) -> Iterator[Pair]:
    """Step from pair to pair through an index: they are few, the tasks may be many."""
    scorer, fingerprint = scoring_task.c.scorer, scoring_task.c.fingerprint
    query = select(scorer, fingerprint).where(condition).order_by(scorer, fingerprint).limit(1)
    found = connection.execute(query).first()
    while found is not None:
        yield found.scorer, found.fingerprint
        # Two steps: SQLite would go by the first part of a pair alone, and read all tasks of one scorer.
        same = query.where(scorer == found.scorer, fingerprint > found.fingerprint)
        found = connection.execute(same).first() or connection.execute(query.where(scorer > found.scorer)).first()


def queue(connection: Connection, now: datetime) -> tuple[OpenTasks, ...]:
    """Return what waits for each scorer; no number is above :data:`MANY`.

    Of more the oldest is that of the tasks that are up first.
    """
    running = _running(connection)
    return tuple(_of(connection, pair, now, running.get(pair, [])) for pair in pairs(connection))


def _of(connection: Connection, pair: Pair, now: datetime, running: list[datetime]) -> OpenTasks:
    values = {"scorer": pair[0], "fingerprint": pair[1], "now": now}
    ready, later = (connection.execute(query, values).one() for query in (_READY, _LATER))
    late = sum(until <= now for until in running)
    return OpenTasks(
        scorer=pair[0],
        fingerprint=pair[1],
        candidates=int(connection.execute(_CANDIDATES, values).scalar_one()),
        ready=_beside(ready, late),
        postponed=_beside(later, len(running) - late),
        running=len(running),
        since=min((one.since for one in (ready, later) if one.since is not None), default=None),
    )


def _beside(counted: Row[Any], running: int) -> int:
    """Return how many of what was counted are not running; of many it is not known how many there are."""
    return MANY if counted.n >= MANY else max(0, int(counted.n) - running)


def _counting(condition: Any) -> Any:
    wanted = select(scoring_task.c.first_pending_at).where(*_OF_PAIR, OPEN, condition)
    first = wanted.order_by(scoring_task.c.not_before).limit(MANY).subquery("first")
    return select(func.count().label("n"), func.min(first.c.first_pending_at).label("since"))


_READY = _counting(scoring_task.c.not_before <= bindparam("now"))
_LATER = _counting(scoring_task.c.not_before > bindparam("now"))
_CANDIDATES = select(func.count()).select_from(
    select(scoring_task.c.scorer).where(*_OF_PAIR, CANDIDATE).limit(MANY).subquery("first")
)


def _running(connection: Connection) -> Mapping[Pair, list[datetime]]:
    """Return when the leases end of what runs: that is no more than all processes can do at once."""
    columns = (scoring_task.c.scorer, scoring_task.c.fingerprint, scoring_task.c.not_before)
    found: dict[Pair, list[datetime]] = {}
    query = select(*columns).where(scoring_task.c.state == "running", scoring_task.c.not_before.is_not(None))
    for row in connection.execute(query.limit(MANY)):
        found.setdefault((row.scorer, row.fingerprint), []).append(row.not_before)
    return found
