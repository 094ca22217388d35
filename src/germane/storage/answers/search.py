"""Paged answer searches.

A search for the lowest scores covers the whole window (see ``lowest_scores``) unless few scores match the filter. With
such a filter, another sort order, or a condition outside the score index, a search covers only the newest answers in
the window. The page then reports how far back the search went.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, exists, func, or_, select

from germane.storage.answers.detail import load_exchanges, load_labels, load_scores, load_tasks
from germane.storage.answers.filter import (
    Answer,
    AnswerCursor,
    AnswerFilter,
    AnswerPage,
    AnswerSort,
    MatchCount,
)
from germane.storage.answers.lowest_scores import find_lowest_fast
from germane.storage.db.functions import Unindexed
from germane.storage.db.mappers import batched, score_from_row
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.trends.dimensions import MAX_LABEL_LENGTH, label_expression

MAX_SCORES_SCANNED: Final = 40_000
"""Number of scores to scan, newest first, if the score index covers the filter."""
MAX_EXCHANGES_SCANNED: Final = 10_000
"""Number of exchanges to scan, newest first, if their rows have to be read."""
MAX_LABELS_SCANNED: Final = 5_000
"""Number of labels to scan, newest first."""
MAX_ANSWERS_COUNTED: Final = 1_000
"""Number of matches at which counting stops."""
MAX_NEIGHBORS_SCANNED: Final = 500
"""Number of matches to search for an answer's neighbors."""
BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "failed": ("failed",),
    "skipped": ("skipped",),
    "waiting": ("pending", "running"),
}
Row = RowMapping
Rows = tuple[list[Row], datetime | None]
"""Sorted rows, and the start of the searched time range if it was truncated (otherwise None)."""
_SORT_KEYS: Final[Mapping[AnswerSort, Callable[[Row], float]]] = {
    "lowest": lambda row: row["value"],
    "highest": lambda row: -row["value"],
    "newest": lambda row: 0.0,  # noqa: ARG005 - all have the same signature
    "highest_cost": lambda row: -(row["cost"] if row["cost"] is not None else -1.0),
    "slowest": lambda row: -row["duration"],
}
_SORT_COLUMNS: Final[Mapping[AnswerSort, ColumnElement[Any]]] = {
    "lowest": score.c.value + 0.0,  # prevents databases from using the value index
    "highest": -score.c.value,
    "highest_cost": -func.coalesce(score.c.cost, -1.0),
    "slowest": -exchange.c.duration,
}
"""The sort keys of ``_SORT_KEYS`` as SQL expressions. Sorting by time needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerNeighbors:
    """The exchanges before and after an answer in a sorted search."""

    previous: str | None = None
    """Id of the previous exchange; None at the start."""
    next: str | None = None
    """Id of the next exchange; None at the end."""
    position: int | None = None
    """Position of the answer, starting at 1; None if it is not among the first matches."""


def load_page(
    connection: Connection, chosen: AnswerFilter, sort: AnswerSort, after: AnswerCursor | None, limit: int
) -> AnswerPage:
    """Return one page of answers. Answers without a score are always sorted by time."""
    sort = sort if chosen.state == "scored" else "newest"
    rows, searched_back_to = find_rows(connection, chosen, sort, after, limit + 1)
    answers = _build_answers(connection, chosen, rows[:limit])
    cursor = None
    if len(rows) > limit:
        last = rows[limit - 1]
        cursor = AnswerCursor(_SORT_KEYS[sort](last), last["started_at"], str(last["id"]))
    elif searched_back_to is not None and sort == "newest" and not (chosen.labeled and chosen.state == "scored"):
        # When sorted by time, the next page continues where the search stopped. A label search always scans the same
        # labels, so it cannot continue.
        cursor = AnswerCursor(0.0, searched_back_to, "")
    return AnswerPage(answers=answers, next_cursor=cursor, searched_back_to=searched_back_to)


def count_matches(connection: Connection, chosen: AnswerFilter) -> MatchCount:
    """Count the matches, up to ``MAX_ANSWERS_COUNTED``."""
    rows, searched_back_to = find_rows(connection, chosen, "newest", None, MAX_ANSWERS_COUNTED + 1)
    is_capped = len(rows) > MAX_ANSWERS_COUNTED or searched_back_to is not None
    return MatchCount(count=min(len(rows), MAX_ANSWERS_COUNTED), is_capped=is_capped)


def find_neighbors(connection: Connection, chosen: AnswerFilter, exchange_id: str, sort: AnswerSort) -> AnswerNeighbors:
    """Find the ids before and after an exchange in the first ``MAX_NEIGHBORS_SCANNED`` matches."""
    rows, _ = find_rows(connection, chosen, sort, None, MAX_NEIGHBORS_SCANNED)
    ids = list(dict.fromkeys(row["exchange_id"] for row in rows))
    if exchange_id not in ids:
        return AnswerNeighbors(next=ids[0] if ids else None)
    index = ids.index(exchange_id)
    return AnswerNeighbors(
        previous=ids[index - 1] if index else None,
        next=ids[index + 1] if index + 1 < len(ids) else None,
        position=index + 1,
    )


def find_rows(
    connection: Connection, chosen: AnswerFilter, sort: AnswerSort, after: AnswerCursor | None, limit: int
) -> Rows:
    """Return rows of the ``score`` table; for states other than ``scored``, rows of the ``exchange`` table."""
    if chosen.state != "scored":
        return _find_unscored(connection, chosen, after, limit)
    if chosen.labeled:
        return _find_labeled(connection, chosen, sort, after, limit)
    if sort == "lowest" and not chosen.needs_exchanges:
        position = None if after is None else (after.key, after.at, _score_id(after.id))
        rows = find_lowest_fast(connection, replace(chosen.score_filter, after=position), limit)
        if rows is not None:
            return rows, None
    # Search the newest scores in the window. When sorted by time, start at the cursor.
    bound = MAX_EXCHANGES_SCANNED if chosen.needs_exchanges or sort == "slowest" else MAX_SCORES_SCANNED
    inside = chosen.score_filter.window(score.c.started_at)
    if after and sort == "newest":
        inside.append(score.c.started_at <= after.at)
    floor = _scan_floor(connection, score.c.started_at, inside, bound)
    # Use exactly one lower bound: given two, SQLite would use the wider one, and given none, it would not use the time
    # index.
    within = replace(chosen.score_filter, since=floor or chosen.since or BEGINNING)
    query = _select_scores(chosen, sort).where(
        *within.conditions(), *_exchange_conditions(connection, chosen, score.c.exchange_id)
    )
    return _fetch_sorted(connection, query, sort, after, limit), floor


def _score_id(text: str) -> int:
    """Return a cursor's id as a score id. If it is not a number, return 0, which sorts after all ids."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _scan_floor(
    connection: Connection, moment: ColumnElement[Any], inside: Sequence[ColumnElement[bool]], bound: int
) -> datetime | None:
    """Return the time of the row that is ``bound`` rows older than the newest, or None if there are fewer rows."""
    query = select(moment).where(*inside).order_by(moment.desc()).offset(bound).limit(1)
    floor: datetime | None = connection.execute(query).scalar()
    return floor


def _select_scores(chosen: AnswerFilter, sort: AnswerSort) -> Select[Any]:
    if sort != "slowest" and not chosen.selects_exchanges:
        return select(score)
    return select(score, exchange.c.duration).join(exchange, exchange.c.id == score.c.exchange_id)


def _exchange_conditions(
    connection: Connection, chosen: AnswerFilter, exchange_id: ColumnElement[Any]
) -> list[ColumnElement[bool]]:
    """Return the SQL conditions on the exchange's columns and labels."""
    named = {name: getattr(chosen, name) for name in ("model", "prompt_version", "user", "session")}
    conditions = [exchange.c[name] == value for name, value in named.items() if value]
    for name, value in chosen.attributes:
        label = label_expression(f"attributes.{name}", connection.dialect.name)
        conditions.append(label == value[:MAX_LABEL_LENGTH])
    if chosen.text:
        columns = (exchange.c.question, exchange.c.answer)
        conditions.append(or_(*(column.icontains(chosen.text, autoescape=True) for column in columns)))
    if chosen.labeled is not None:
        labels = select(feedback.c.id).where(feedback.c.exchange_id == exchange_id).exists()
        conditions.append(labels if chosen.labeled else ~labels)
    return conditions


def _fetch_sorted(
    connection: Connection, query: Select[Any], sort: AnswerSort, after: AnswerCursor | None, limit: int
) -> list[Row]:
    sort_column = _SORT_COLUMNS.get(sort)
    moment, key = score.c.started_at, score.c.id
    if after is not None:
        query = query.where(_is_after(sort_column, moment, key, after, _score_id(after.id)))
    order = [moment.desc(), key.desc()]
    query = query.order_by(*order) if sort_column is None else query.order_by(sort_column, *order)
    return list(connection.execute(query.limit(limit)).mappings())


def _is_after(
    sort_column: ColumnElement[Any] | None,
    moment: ColumnElement[Any],
    key: ColumnElement[Any],
    after: AnswerCursor,
    id_: Any,
) -> ColumnElement[bool]:
    older = or_(moment < after.at, and_(moment == after.at, key < id_))
    if sort_column is None:
        return and_(moment <= after.at, older)
    return or_(sort_column > after.key, and_(sort_column == after.key, older))


def _find_labeled(
    connection: Connection, chosen: AnswerFilter, sort: AnswerSort, after: AnswerCursor | None, limit: int
) -> Rows:
    """Search the answers with the newest labels."""
    newest = select(feedback.c.exchange_id, feedback.c.created_at).order_by(feedback.c.created_at.desc())
    labels = connection.execute(newest.limit(MAX_LABELS_SCANNED + 1)).all()
    conditions = [
        *chosen.score_filter.conditions(),
        *_exchange_conditions(connection, replace(chosen, labeled=None), score.c.exchange_id),
    ]
    rows: list[Row] = []
    for ids in batched(sorted({row.exchange_id for row in labels[:MAX_LABELS_SCANNED]})):
        query = _select_scores(chosen, sort).where(score.c.exchange_id.in_(ids), *conditions)
        rows += _fetch_sorted(connection, query, sort, after, limit)
    rows.sort(key=lambda row: (_SORT_KEYS[sort](row), -row["started_at"].timestamp(), -row["id"]))
    floor = labels[MAX_LABELS_SCANNED].created_at if len(labels) > MAX_LABELS_SCANNED else None
    return rows[:limit], floor


def _find_unscored(connection: Connection, chosen: AnswerFilter, after: AnswerCursor | None, limit: int) -> Rows:
    """Search exchanges by task state, or all exchanges for the state ``any``; newest first."""
    conditions = _exchange_conditions(connection, chosen, exchange.c.id)
    if after is not None:
        conditions.append(_is_after(None, exchange.c.started_at, exchange.c.id, after, after.id))
    if chosen.state != "any":
        # If few tasks are in this state, search only their exchanges.
        query = select(scoring_task.c.exchange_id, scoring_task.c.scorer)
        query = query.where(scoring_task.c.state.in_(STATES[chosen.state]))
        if chosen.reason is not None:
            query = query.where(scoring_task.c.reason == chosen.reason)
        tasks = connection.execute(query.limit(MAX_EXCHANGES_SCANNED + 1)).all()
        if len(tasks) <= MAX_EXCHANGES_SCANNED:
            ids = sorted({task.exchange_id for task in tasks if chosen.scorer in {None, task.scorer}})
            inside = [*_window_conditions(chosen, by_id=True), *conditions]
            rows: list[Row] = []
            for batch in batched(ids):
                rows += _fetch_exchanges(connection, [*inside, exchange.c.id.in_(batch)], limit)
            return sorted(rows, key=lambda row: (row["started_at"], row["id"]), reverse=True)[:limit], None
    indexed = _window_conditions(replace(chosen, service=None))
    if after is not None:
        indexed.append(exchange.c.started_at <= after.at)
    floor = _scan_floor(connection, exchange.c.started_at, indexed, MAX_EXCHANGES_SCANNED)
    inside = [*_window_conditions(replace(chosen, since=floor or chosen.since)), *conditions]
    if chosen.state != "any":
        # Use the index on the exchange id. Without statistics, SQLite would read all tasks with this state and reason.
        task_conditions: list[ColumnElement[bool]] = [Unindexed(scoring_task.c.state).in_(STATES[chosen.state])]
        if chosen.scorer is not None:
            task_conditions.append(scoring_task.c.scorer == chosen.scorer)
        if chosen.reason is not None:
            task_conditions.append(Unindexed(scoring_task.c.reason) == chosen.reason)
        inside.append(exists().where(scoring_task.c.exchange_id == exchange.c.id, *task_conditions))
    return _fetch_exchanges(connection, inside, limit), floor


def _window_conditions(chosen: AnswerFilter, *, by_id: bool = False) -> list[ColumnElement[bool]]:
    """Return the SQL conditions on time, service and route. With ``by_id``, databases use only the index on ids."""
    named = {"service": chosen.service, "route": chosen.route}
    columns = {name: exchange.c[name] for name in (*named, "started_at")}
    terms = {name: Unindexed(column) for name, column in columns.items()} if by_id else columns
    equal = [terms[name] == value for name, value in named.items() if value is not None]
    return [*chosen.score_filter.window(terms["started_at"]), *equal]


def _fetch_exchanges(connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Row]:
    query = select(exchange.c.id, exchange.c.id.label("exchange_id"), exchange.c.started_at).where(*conditions)
    query = query.order_by(exchange.c.started_at.desc(), exchange.c.id.desc()).limit(limit)
    return list(connection.execute(query).mappings())


def _build_answers(connection: Connection, chosen: AnswerFilter, rows: Sequence[Row]) -> list[Answer]:
    """Convert rows to answers: load their exchanges, scores, tasks and labels."""
    ids = [row["exchange_id"] for row in rows]
    exchanges, labels = load_exchanges(connection, ids), load_labels(connection, ids)
    is_scored = chosen.state == "scored"
    scores = load_scores(connection, ids) if chosen.state == "any" else {}
    tasks = {} if is_scored else load_tasks(connection, ids)
    states = STATES.get(chosen.state, ("pending", "running", "failed", "skipped"))
    answers = []
    for row in rows:
        exchange_id = row["exchange_id"]
        if exchange_id not in exchanges:
            continue
        # Without a filter by state, use the scorer's newest score, whatever its fingerprint.
        candidates = [score for score in scores.get(exchange_id, ()) if chosen.scorer in {None, score.scorer}]
        newest = max(
            candidates,
            key=lambda score: (score.scored_at or datetime.min.replace(tzinfo=UTC), score.fingerprint),
            default=None,
        )
        matching = [
            task for task in tasks.get(exchange_id, ()) if chosen.scorer in {None, task.scorer} and task.state in states
        ]
        answers.append(
            Answer(
                exchange=exchanges[exchange_id],
                score=score_from_row(row) if is_scored else newest,
                task=matching[-1] if matching else None,
                feedback=labels.get(exchange_id, ()),
            )
        )
    return answers
