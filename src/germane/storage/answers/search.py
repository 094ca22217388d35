"""Answers that fit a filter, in an order, page by page.

The lowest of all are found by :mod:`germane.storage.answers.lowest_scores`, however many there are, unless what is asked for is rare.
That, every other order, and whatever the index of scores does not know, is looked for among the newest of the window
only: a page says how far back that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, exists, func, or_, select

from germane.score import Score
from germane.storage.answers.detail import labels_of, works_of
from germane.storage.answers.filter import Answer, AnswerFilter, AnswerPage, Place, Sort, Total, Work
from germane.storage.answers.lowest_scores import found_soon
from germane.storage.answers.readers import exchanges_of, scores_of
from germane.storage.db.mappers import batched, score_of
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.trends.aggregates import Unsought

FEW: Final = 40_000
"""Scores that are looked at, of the newest, where their index tells all that is asked for."""
LOOKED: Final = 10_000
"""Exchanges that are looked at, of the newest, where their rows have to be read."""
COUNTED: Final = 1_000
"""Answers that are counted."""
BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
LABELS: Final = 5_000
"""Labels that are looked at, of the newest."""
Row = RowMapping
Rows = tuple[list[Row], datetime | None]
"""Rows in their order, and how far back was looked where that is not all."""
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "failed": ("failed",),
    "skipped": ("skipped",),
    "waiting": ("pending", "running"),
}


def page(connection: Connection, chosen: AnswerFilter, sort: Sort, after: Place | None, limit: int) -> AnswerPage:
    """Return the next answers after a place; those without a score come by time, whatever is asked for."""
    sort = sort if chosen.state == "scored" else "newest"
    rows, floor = rows_of(connection, chosen, sort, after, limit + 1)
    answers = completed(connection, chosen, rows[:limit])
    if len(rows) > limit:
        return AnswerPage(answers=answers, after=place_of(rows[limit - 1], sort), looked_back_to=floor)
    # By time the search goes on where this one ended; of labels always the same are looked at.
    onward = floor is not None and sort == "newest" and not (chosen.labelled and chosen.state == "scored")
    return AnswerPage(answers=answers, after=Place(0.0, floor, "") if onward and floor else None, looked_back_to=floor)


def total(connection: Connection, chosen: AnswerFilter) -> Total:
    """Return how many there are, counting no further than to a thousand."""
    rows, floor = rows_of(connection, chosen, "newest", None, COUNTED + 1)
    return Total(count=min(len(rows), COUNTED), more=len(rows) > COUNTED or floor is not None)


NEAR: Final = 500
"""Among so many, in the order asked for, an answer's neighbours are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Who stands before and behind an answer in an order."""

    previous: str | None = None
    next: str | None = None
    """Ids of exchanges."""
    place: int | None = None
    """1 for the first of all; None where it is not among them."""


def neighbours(connection: Connection, chosen: AnswerFilter, exchange_id: str, sort: Sort) -> Neighbours:
    """Return who stands before and behind an exchange, of the first that fit."""
    rows, _ = rows_of(connection, chosen, sort, None, NEAR)
    ids = list(dict.fromkeys(row["exchange_id"] for row in rows))
    if exchange_id not in ids:
        return Neighbours(next=ids[0] if ids else None)
    at = ids.index(exchange_id)
    return Neighbours(
        previous=ids[at - 1] if at else None, next=ids[at + 1] if at + 1 < len(ids) else None, place=at + 1
    )


def rows_of(connection: Connection, chosen: AnswerFilter, sort: Sort, after: Place | None, limit: int) -> Rows:
    """Return rows that are scores, or tasks and exchanges where there is no score."""
    if chosen.state != "scored":
        return _unscored(connection, chosen, after, limit)
    if chosen.labelled:
        return _labelled(connection, chosen, sort, after, limit)
    if sort == "lowest" and not chosen.needs_exchanges:
        behind = None if after is None else (after.key, after.at, _whole(after.id))
        found = found_soon(connection, replace(chosen.of_scores, after=behind), limit)
        if found is not None:
            return found, None
    return _of_newest(connection, chosen, sort, after, limit)


def place_of(row: Row, sort: Sort) -> Place:
    """Return where a row stands in the order."""
    return Place(_KEYS[sort](row), row["started_at"], str(row["id"]))


_KEYS: Final[Mapping[Sort, Callable[[Row], float]]] = {
    "lowest": lambda row: row["value"],
    "highest": lambda row: -row["value"],
    "newest": lambda row: 0.0,  # noqa: ARG005 - all are called alike
    "dearest": lambda row: -(row["cost"] if row["cost"] is not None else -1.0),
    "slowest": lambda row: -row["duration"],
}


def _order(sort: Sort) -> ColumnElement[Any] | None:
    """Return what comes first; None for time alone. Each is less the earlier it comes, as its key is."""
    orders: dict[str, ColumnElement[Any]] = {
        "lowest": score.c.value + 0.0,  # so that no database takes the index by value
        "highest": -score.c.value,
        "dearest": -func.coalesce(score.c.cost, -1.0),
        "slowest": -exchange.c.duration,
    }
    return orders.get(sort)


def _whole(text: str) -> int:
    """Return the id of a score; of no number, one that all others come behind."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _of_newest(connection: Connection, chosen: AnswerFilter, sort: Sort, after: Place | None, limit: int) -> Rows:
    """Look among the newest scores of the window, behind the place where the order is that of time."""
    until = after.at if after and sort == "newest" else None
    bound = LOOKED if chosen.needs_exchanges or sort == "slowest" else FEW
    inside = chosen.of_scores.window(score.c.started_at)
    floor = _floor(connection, score.c.started_at, [*inside, *([] if until is None else [_to(until)])], bound)
    # One bound alone, or SQLite would take the wider one; and always one, so that the index by time is taken.
    within = replace(chosen.of_scores, since=floor or chosen.since or BEGINNING)
    query = _scores(chosen, sort).where(*within.conditions(), *_of_exchange(chosen))
    return _ordered(connection, query, sort, after, limit), floor


def _to(until: datetime) -> ColumnElement[bool]:
    return score.c.started_at <= until


def _floor(
    connection: Connection, moment: ColumnElement[Any], inside: Sequence[ColumnElement[bool]], bound: int
) -> datetime | None:
    """Return the moment back to which so many lie; None where there are no more."""
    query = select(moment).where(*inside).order_by(moment.desc()).offset(bound).limit(1)
    found: datetime | None = connection.execute(query).scalar()
    return found


def _scores(chosen: AnswerFilter, sort: Sort) -> Select[Any]:
    if sort != "slowest" and not (chosen.model or chosen.prompt_version or chosen.text):
        return select(score)
    return select(score, exchange.c.duration).join(exchange, exchange.c.id == score.c.exchange_id)


def _of_exchange(chosen: AnswerFilter, of: ColumnElement[Any] = score.c.exchange_id) -> list[ColumnElement[bool]]:
    """Return what holds for the exchange beside the score."""
    named = {"model": chosen.model, "prompt_version": chosen.prompt_version}
    found = [exchange.c[name] == value for name, value in named.items() if value]
    if chosen.text:
        columns = (exchange.c.question, exchange.c.answer)
        found.append(or_(*(column.icontains(chosen.text, autoescape=True) for column in columns)))
    if chosen.labelled is not None:
        labels = select(feedback.c.id).where(feedback.c.exchange_id == of).exists()
        found.append(labels if chosen.labelled else ~labels)
    return found


def _ordered(connection: Connection, query: Select[Any], sort: Sort, after: Place | None, limit: int) -> list[Row]:
    first = _order(sort)
    moment, key = score.c.started_at, score.c.id
    if after is not None:
        query = query.where(_behind(first, moment, key, after, _whole(after.id)))
    order = [moment.desc(), key.desc()]
    query = query.order_by(*order) if first is None else query.order_by(first, *order)
    return list(connection.execute(query.limit(limit)).mappings())


def _behind(
    first: ColumnElement[Any] | None, moment: ColumnElement[Any], key: ColumnElement[Any], after: Place, id_: Any
) -> ColumnElement[bool]:
    older = or_(moment < after.at, and_(moment == after.at, key < id_))
    return and_(moment <= after.at, older) if first is None else or_(first > after.key, and_(first == after.key, older))


def _labelled(connection: Connection, chosen: AnswerFilter, sort: Sort, after: Place | None, limit: int) -> Rows:
    """Look at the answers that people labelled last, which are few."""
    newest = select(feedback.c.exchange_id, feedback.c.created_at).order_by(feedback.c.created_at.desc())
    labels = connection.execute(newest.limit(LABELS + 1)).all()
    conditions = [*chosen.of_scores.conditions(), *_of_exchange(replace(chosen, labelled=None))]
    rows: list[Row] = []
    for ids in batched(sorted({row.exchange_id for row in labels[:LABELS]})):
        query = _scores(chosen, sort).where(score.c.exchange_id.in_(ids), *conditions)
        rows += _ordered(connection, query, sort, after, limit)
    floor = labels[LABELS].created_at if len(labels) > LABELS else None
    return sorted(rows, key=lambda row: _rank(row, sort))[:limit], floor


def _rank(row: Row, sort: Sort) -> tuple[float, float, int]:
    return _KEYS[sort](row), -row["started_at"].timestamp(), -row["id"]


def _unscored(connection: Connection, chosen: AnswerFilter, after: Place | None, limit: int) -> Rows:
    """Look for exchanges that have no score yet, or never will; or for all of them. The newest come first."""
    behind = [] if after is None else [_behind(None, exchange.c.started_at, exchange.c.id, after, after.id)]
    few = None if chosen.state == "any" else _few(connection, chosen)
    if few is not None:
        inside = [*_window(chosen, by_id=True), *_of_exchange(chosen, exchange.c.id)]
        parts = (_exchanges(connection, [*inside, *behind, exchange.c.id.in_(ids)], limit) for ids in batched(few))
        return sorted((row for part in parts for row in part), key=_age, reverse=True)[:limit], None
    until = [] if after is None else [exchange.c.started_at <= after.at]
    sought = _window(replace(chosen, service=None))  # of which the index tells
    floor = _floor(connection, exchange.c.started_at, [*sought, *until], LOOKED)
    inside = [*_window(replace(chosen, since=floor or chosen.since)), *_of_exchange(chosen, exchange.c.id)]
    return _exchanges(connection, [*inside, *behind, *_has_task(chosen)], limit), floor


def _age(row: Row) -> tuple[datetime, str]:
    return row["started_at"], row["id"]


def _window(chosen: AnswerFilter, *, by_id: bool = False) -> list[ColumnElement[bool]]:
    """Return what holds for the exchange; ``by_id`` in a way that invites no index but that of ids."""
    named = {"service": chosen.service, "route": chosen.route}
    columns = {name: exchange.c[name] for name in (*named, "started_at")}
    sought = {name: Unsought(column) for name, column in columns.items()} if by_id else columns
    equal = [sought[name] == value for name, value in named.items() if value is not None]
    return [*chosen.of_scores.window(sought["started_at"]), *equal]


def _few(connection: Connection, chosen: AnswerFilter) -> list[str] | None:
    """Return the exchanges that have such a task, where tasks of that state are few."""
    columns = (scoring_task.c.exchange_id, scoring_task.c.scorer)
    because = [] if chosen.reason is None else [scoring_task.c.reason == chosen.reason]
    query = select(*columns).where(scoring_task.c.state.in_(STATES[chosen.state]), *because)
    found = connection.execute(query.limit(LOOKED + 1)).all()
    if len(found) > LOOKED:
        return None
    return sorted({row.exchange_id for row in found if chosen.scorer in {None, row.scorer}})


def _has_task(chosen: AnswerFilter) -> list[ColumnElement[bool]]:
    if chosen.state == "any":
        return []
    # By the index of an exchange's own tasks: without statistics SQLite would rather read all of that state and reason.
    states = Unsought(scoring_task.c.state).in_(STATES[chosen.state])
    of = [] if chosen.scorer is None else [scoring_task.c.scorer == chosen.scorer]
    because = [] if chosen.reason is None else [Unsought(scoring_task.c.reason) == chosen.reason]
    return [exists().where(scoring_task.c.exchange_id == exchange.c.id, states, *of, *because)]


def _exchanges(connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Row]:
    query = select(exchange.c.id, exchange.c.id.label("exchange_id"), exchange.c.started_at).where(*conditions)
    query = query.order_by(exchange.c.started_at.desc(), exchange.c.id.desc()).limit(limit)
    return list(connection.execute(query).mappings())


def completed(connection: Connection, chosen: AnswerFilter, rows: Sequence[Row]) -> list[Answer]:
    """Return rows with all that is shown of them."""
    ids = [row["exchange_id"] for row in rows]
    exchanges, labels = exchanges_of(connection, ids), labels_of(connection, ids)
    of_scores = chosen.state == "scored"
    scores = {} if of_scores else scores_of(connection, ids)
    works = {} if of_scores else works_of(connection, ids)
    return [
        Answer(
            exchange=exchanges[row["exchange_id"]],
            score=score_of(row) if of_scores else _score(chosen, scores.get(row["exchange_id"], ())),
            work=_work(chosen, works.get(row["exchange_id"], ())),
            feedback=labels.get(row["exchange_id"], ()),
        )
        for row in rows
        if row["exchange_id"] in exchanges
    ]


def _score(chosen: AnswerFilter, scores: Iterable[Score]) -> Score | None:
    """Return the newest score of the scorer that is asked for: of those that have none, none of another fingerprint."""
    ours = [one for one in scores if chosen.scorer in {None, one.scorer}] if chosen.state == "any" else []
    return max(ours, key=_made, default=None)


def _made(found: Score) -> tuple[datetime, str]:
    return found.scored_at or datetime.min.replace(tzinfo=UTC), found.fingerprint


def _work(chosen: AnswerFilter, works: Iterable[Work]) -> Work | None:
    ours = [one for one in works if chosen.scorer in {None, one.scorer}]
    sought = STATES.get(chosen.state, ("pending", "running", "failed", "skipped"))
    return next((one for one in reversed(ours) if one.state in sought), None)
