"""Whether scores keep coming: what was to be scored and is not, how long that usually takes, what tasks wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import Connection, func, select

from germane.score import Reason
from germane.storage.db.tables import exchange, score, scoring_task, tally

SLOT: Final = 300
"""Seconds: scores that come in bursts are counted as one."""
KNOWN: Final = 5_000
"""So many of the newest scores say how long it usually takes."""
SPARE: Final = 20
"""Fewer gaps than this say nothing."""
PERCENTILE: Final = 0.99
_EXCUSED: Final = {Reason.NOT_DRAWN, Reason.FILTERED, Reason.MISSING_INPUT, Reason.CAPTURE_LIMIT, Reason.BUDGET}
"""Who is skipped for these was not to be scored; of the budget another rule speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What one scorer does with the answers of one service."""

    service: str
    scorer: str
    scored_at: datetime | None = None
    """Minute of the newest answer that is scored; None where none is within the time looked at."""
    made_at: datetime | None = None
    """When that score was made: long after the answer, where there was a backlog."""
    waiting_since: datetime | None = None
    """Minute of the oldest answer after it that was to be scored."""
    waiting: int = 0
    """Answers since then that were to be scored: they wait, or came to nothing."""


@dataclass(slots=True)
class _Minute:
    scored: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Tasks that were tried in vain for one reason, and are to be tried again."""

    service: str
    route: str
    scorer: str
    reason: str
    tasks: int


def flows(
    connection: Connection, since: datetime, takes: Callable[[str], bool], until: datetime | None = None
) -> list[Flow]:
    """Return what became of the answers since then, by service and scorer, of the routes that are taken.

    With ``until`` as it was then: what was scored later was not scored yet.
    """
    names = (tally.c.minute, tally.c.service, tally.c.route, tally.c.scorer, tally.c.outcome, tally.c.reason)
    query = select(*names, func.sum(tally.c.count).label("n")).where(tally.c.minute >= since).group_by(*names)
    found: dict[tuple[str, str], dict[datetime, _Minute]] = {}
    for row in connection.execute(query if until is None else query.where(tally.c.minute < until)):
        if takes(row.route):
            _count(found.setdefault((row.service, row.scorer), {}).setdefault(row.minute, _Minute()), row)
    for row in () if until is None else _scored_later(connection, since, until):
        minute = found.get((row.service, row.scorer), {}).get(row.started_at.replace(second=0, microsecond=0))
        if minute is not None and takes(row.route):
            minute.scored -= 1
    flows_ = [_flow(key, minutes) for key, minutes in sorted(found.items())]
    return [replace(one, made_at=_made_at(connection, one, since, until)) for one in flows_]


def _made_at(connection: Connection, flow: Flow, since: datetime, until: datetime | None) -> datetime | None:
    query = select(score.c.scored_at).where(
        score.c.service == flow.service, score.c.scorer == flow.scorer, score.c.started_at >= since
    )
    if until is not None:
        query = query.where(score.c.started_at < until, score.c.scored_at <= until)
    return connection.execute(query.order_by(score.c.started_at.desc()).limit(1)).scalar_one_or_none()


def _scored_later(connection: Connection, since: datetime, until: datetime) -> Iterable[Any]:
    columns = (score.c.service, score.c.route, score.c.scorer, score.c.started_at)
    began = (score.c.started_at >= since, score.c.started_at < until)
    return connection.execute(select(*columns).where(*began, score.c.scored_at > until))


def _count(minute: _Minute, row: Any) -> None:
    if row.outcome == "scored":
        minute.scored += int(row.n)
    elif row.outcome == "seen":
        minute.wanted += int(row.n)
    elif row.outcome == "skipped" and row.reason in _EXCUSED:
        minute.wanted -= int(row.n)


def _flow(key: tuple[str, str], minutes: dict[datetime, _Minute]) -> Flow:
    scored = max((moment for moment, minute in minutes.items() if minute.scored > 0), default=None)
    waiting = {
        moment: minute.wanted
        for moment, minute in minutes.items()
        if minute.wanted > 0 and (scored is None or moment > scored)
    }
    since = min(waiting, default=None)
    return Flow(service=key[0], scorer=key[1], scored_at=scored, waiting_since=since, waiting=sum(waiting.values()))


def usual_wait(
    connection: Connection, service: str, scorer: str, since: datetime, until: datetime | None = None
) -> timedelta | None:
    """Return how long it usually takes from one scored answer until the next one is: the longest of a hundred times.

    The 99th percentile of the gaps between scored answers, those within five minutes taken as one, and that of the
    time from answer to score. None where there are not enough of them to say. With ``until`` as it was then.
    """
    query = select(score.c.started_at, score.c.scored_at).where(
        score.c.service == service, score.c.scorer == scorer, score.c.started_at >= since
    )
    query = query if until is None else query.where(score.c.started_at < until, score.c.scored_at <= until)
    rows = connection.execute(query.order_by(score.c.started_at.desc()).limit(KNOWN)).all()
    slots = sorted({int(row.started_at.timestamp()) // SLOT for row in rows})
    gaps = [SLOT * (after - before) for before, after in pairwise(slots)]
    if len(gaps) < SPARE:
        return None
    lags = [max(0.0, (row.scored_at - row.started_at).total_seconds()) for row in rows if row.scored_at is not None]
    return timedelta(seconds=_percentile(gaps) + _percentile(lags))


def _percentile(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(PERCENTILE * len(ordered)))] if ordered else 0.0


def failing(connection: Connection) -> list[Failing]:
    """Return what tasks wait for that were tried in vain."""
    columns = (exchange.c.service, exchange.c.route, scoring_task.c.scorer, scoring_task.c.reason)
    query = select(*columns, func.count().label("n")).join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    query = query.where(scoring_task.c.state == "pending", scoring_task.c.reason.is_not(None)).group_by(*columns)
    return [
        Failing(service=row.service, route=row.route, scorer=row.scorer, reason=row.reason, tasks=row.n)
        for row in connection.execute(query)
    ]
