"""Paged answer searches.

A search for the lowest scores covers the whole window (see ``lowest_scores``) unless few scores match the filter. With
such a filter, another sort order, or a condition outside the score index, a search covers only the newest answers in
the window. The page then reports how far back the search went. Questions are compared in Python, because databases
cannot normalize them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, func, or_, select

from germane.statistics import Estimate, RunningSums, estimate_mean
from germane.storage.answers.archived_lowest import find_archived
from germane.storage.answers.detail import load_all_labels, load_exchanges, load_scores, load_tasks
from germane.storage.answers.filter import Answer, AnswerCursor, AnswerFilter, AnswerSort
from germane.storage.answers.lowest_scores import ScoreFilter, find_floor, find_lowest_fast, scan_floor
from germane.storage.answers.questions import load_question_keys, question_key
from germane.storage.archive.reader import latest, open_exchanges, open_newest
from germane.storage.db.conditions import matching
from germane.storage.db.functions import Unindexed, is_one_of
from germane.storage.db.mappers import SCORES, batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.trends.dimensions import MAX_LABEL_LENGTH, label_expression

MAX_SCORES_SCANNED: Final = 40_000
"""Number of scores to scan, newest first, if the score index covers the filter."""
MAX_EXCHANGES_SCANNED: Final = 10_000
"""Number of exchanges to scan, newest first, if their rows have to be read."""
MAX_QUESTIONS_COMPARED: Final = 3_000
"""Number of answers, newest first, whose questions are compared."""
MAX_LABELS_SCANNED: Final = 5_000
"""Number of labels to scan, newest first."""
_MICROSECOND: Final = timedelta(microseconds=1)
BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "failed": ("failed",),
    "skipped": ("skipped",),
    "waiting": ("pending", "running"),
}
Row = RowMapping
Rows = tuple[Sequence[Row], datetime | None]
"""Sorted rows, and the start of the searched time range if it was truncated (otherwise None)."""
Columns = Sequence[ColumnElement[Any]]
BRIEF_COLUMNS: Final[Columns] = tuple(
    score.c[name]
    for name in ("id", "exchange_id", "scorer", "fingerprint", "started_at", "sampling_probability", "value", "label")
)
"""The columns for means. The others contain long texts."""
KEY_COLUMNS: Final[Columns] = (score.c.id, score.c.started_at)
"""The columns for counts, which are in an index."""
_UNSCORED_COLUMNS: Final[Columns] = (exchange.c.id, exchange.c.id.label("exchange_id"), exchange.c.started_at)
SORT_KEYS: Final[Mapping[AnswerSort, Callable[[Row], float]]] = {
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
"""The sort keys of ``SORT_KEYS`` as SQL expressions. Sorting by time needs none."""


def find_rows(
    connection: Connection,
    chosen: AnswerFilter,
    sort: AnswerSort,
    after: AnswerCursor | None,
    limit: int,
    columns: Columns | None = None,
) -> Rows:
    """Return rows of the ``score`` table; for states other than ``scored``, rows of the ``exchange`` table.

    ``after`` is the position of the last row of the previous page. Pass ``columns`` of the score table only if the
    search reads the rows once; None reads all.
    """
    if chosen.question is not None:
        return _find_by_question(connection, chosen, sort, after, limit)
    sort = sort if chosen.state == "scored" else "newest"
    rows, floor = _find_rows(connection, chosen, sort, after, limit, columns)
    is_by_time = sort == "newest"
    is_by_label = chosen.labeled is True and chosen.state == "scored"  # the floor is then the time of a label
    # Search the archive only for times that can be on this page. A day may be archived before older ones.
    since, until = chosen.since, chosen.until
    if not is_by_label:
        since = latest(floor, since)
    if is_by_time:
        if len(rows) >= limit:  # the archive's answers are older, apart from late ones
            since = latest(rows[-1]["started_at"], since)
        if after is not None:
            until = min(after.at + _MICROSECOND, until or after.at + _MICROSECOND)
    chosen = replace(chosen, since=since)
    if sort == "lowest" and not chosen.needs_exchanges and chosen.ids is None:
        archived: Sequence[Row] = find_archived(connection, _score_filter(chosen, after), limit)
    else:
        count = None if is_by_label or chosen.ids is not None else MAX_SCORES_SCANNED
        with open_newest(connection, chosen.since, until, count=count) as (archive, oldest):
            if archive is None:
                return rows, floor
            archived, archive_floor = _find_rows(archive, chosen, sort, after, limit, columns)
        floor = latest(floor, archive_floor, oldest)
    if is_by_time and floor is not None and not is_by_label:
        rows = [row for row in rows if row["started_at"] >= floor]  # the others are on a later page
    # Python's sort is stable, so sort by the least important key first.
    merged = sorted([*rows, *archived], key=lambda row: (row["started_at"], row["id"]), reverse=True)
    return sorted(merged, key=SORT_KEYS[sort])[:limit], floor


def _find_rows(
    connection: Connection,
    chosen: AnswerFilter,
    sort: AnswerSort,
    after: AnswerCursor | None,
    limit: int,
    columns: Columns | None,
) -> Rows:
    """Search the database or the archive. The arguments are those of :func:`find_rows`."""
    if chosen.state != "scored":
        return _find_unscored(connection, chosen, after, limit)
    if chosen.labeled or chosen.ids is not None:
        return _find_by_id(connection, chosen, sort, after, limit)
    if sort == "lowest" and not chosen.needs_exchanges:
        rows = find_lowest_fast(connection, _score_filter(chosen, after), limit)
        if rows is not None:
            return rows, None
    # Search the newest scores in the window. When sorted by time, start at the cursor.
    bound = MAX_EXCHANGES_SCANNED if chosen.needs_exchanges or sort == "slowest" else MAX_SCORES_SCANNED
    until = chosen.until
    if after and sort == "newest":
        until = min(after.at + _MICROSECOND, until or after.at + _MICROSECOND)
    floor = find_floor(connection, chosen.since, until, bound)
    # Use exactly one lower bound: given two, SQLite would use the wider one, and given none, it would not use the time
    # index.
    within = replace(chosen.score_filter, since=floor or chosen.since or BEGINNING)
    query = _select_scores(chosen, sort, columns).where(
        *within.conditions(), *exchange_conditions(connection, chosen, score.c.exchange_id)
    )
    return _fetch_sorted(connection, query, sort, after, limit), floor


def find_newest(connection: Connection, chosen: AnswerFilter, after: AnswerCursor | None = None) -> Rows:
    """Return brief rows of the newest matches, at most ``MAX_QUESTIONS_COMPARED``.

    Rows with the same time are returned together or not at all, so that the search can continue at the returned time.
    """
    rows, floor = find_rows(connection, chosen, "newest", after, MAX_QUESTIONS_COMPARED + 1, BRIEF_COLUMNS)
    if len(rows) <= MAX_QUESTIONS_COMPARED:
        return rows, floor
    cut = rows[-1]["started_at"]
    kept = [row for row in rows if row["started_at"] > cut] or rows[:-1]
    return kept, kept[-1]["started_at"]


def estimate_rows(rows: Sequence[Row]) -> Estimate:
    """Return the mean of the scores in rows, newest row first, that have the newest row's fingerprint."""
    scorer, fingerprint = rows[0]["scorer"], rows[0]["fingerprint"]
    total = RunningSums()
    for row in rows:
        if (row["scorer"], row["fingerprint"]) == (scorer, fingerprint):
            total.add(row["value"], row["label"], row["sampling_probability"])
    return estimate_mean(total.sums, scorer, fingerprint)


def _score_filter(chosen: AnswerFilter, after: AnswerCursor | None) -> ScoreFilter:
    """Return the filter for a search for the lowest scores."""
    return replace(chosen.score_filter, after=None if after is None else (after.key, after.at, _score_id(after.id)))


def _score_id(text: str) -> int:
    """Return a cursor's id as a score id. If it is not a number, return 0, which sorts after all ids."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _select_scores(chosen: AnswerFilter, sort: AnswerSort, columns: Columns | None = None) -> Select[Any]:
    if sort != "slowest" and not chosen.selects_exchanges:
        return select(score) if columns is None else select(*columns)
    selected = select(score, exchange.c.duration) if columns is None else select(*columns)
    return selected.join(exchange, exchange.c.id == score.c.exchange_id)


def exchange_conditions(
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
) -> Sequence[Row]:
    sort_column = _SORT_COLUMNS.get(sort)
    moment, key = score.c.started_at, score.c.id
    if after is not None:
        query = query.where(_is_after(sort_column, moment, key, after, _score_id(after.id)))
    order = [moment.desc(), key.desc()]
    query = query.order_by(*order) if sort_column is None else query.order_by(sort_column, *order)
    return connection.execute(query.limit(limit)).mappings().all()


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


def _find_by_question(
    connection: Connection, chosen: AnswerFilter, sort: AnswerSort, after: AnswerCursor | None, limit: int
) -> Rows:
    """Compare the questions of the newest answers that match the other conditions."""
    others = replace(chosen, question=None)
    newest, floor = find_newest(connection, others, after if sort == "newest" or chosen.state != "scored" else None)
    keys = load_question_keys(connection, {row["exchange_id"]: row["started_at"] for row in newest})
    question = chosen.question or ""
    wanted = {question, question_key(question)}
    ids = tuple(sorted(id_ for id_, key in keys.items() if key in wanted))
    rows, _ = find_rows(connection, replace(others, ids=ids), sort, after, limit)
    return rows, floor


def _find_by_id(
    connection: Connection, chosen: AnswerFilter, sort: AnswerSort, after: AnswerCursor | None, limit: int
) -> Rows:
    """Search the given exchanges, or the answers with the newest labels."""
    floor = None
    if chosen.ids is None:
        newest = select(feedback.c.exchange_id, feedback.c.created_at).order_by(feedback.c.created_at.desc())
        labels = connection.execute(newest.limit(MAX_LABELS_SCANNED + 1)).all()
        floor = labels[MAX_LABELS_SCANNED].created_at if len(labels) > MAX_LABELS_SCANNED else None
        chosen = replace(chosen, labeled=None, ids=tuple({row.exchange_id for row in labels[:MAX_LABELS_SCANNED]}))
    conditions = [*chosen.score_filter.conditions(), *exchange_conditions(connection, chosen, score.c.exchange_id)]
    rows: list[Row] = []
    for ids in batched(sorted(chosen.ids or ())):
        query = _select_scores(chosen, sort).where(score.c.exchange_id.in_(ids), *conditions)
        rows += _fetch_sorted(connection, query, sort, after, limit)
    rows.sort(key=lambda row: (SORT_KEYS[sort](row), -row["started_at"].timestamp(), -row["id"]))
    return rows[:limit], floor


def _find_unscored(connection: Connection, chosen: AnswerFilter, after: AnswerCursor | None, limit: int) -> Rows:
    """Search exchanges by task state, or all exchanges for the state ``any``; newest first."""
    conditions = exchange_conditions(connection, chosen, exchange.c.id)
    has_task = _task_conditions(chosen, connection.dialect.name)
    if after is not None:
        conditions.append(_is_after(None, exchange.c.started_at, exchange.c.id, after, after.id))
    if chosen.ids is not None:
        return _fetch_by_id(connection, chosen, chosen.ids, [*conditions, *has_task], limit), None
    if chosen.state != "any":
        # If few tasks are in this state, search only their exchanges.
        tasks_in_state: list[ColumnElement[bool]] = [scoring_task.c.state.in_(STATES[chosen.state])]
        if chosen.reason is not None:
            tasks_in_state.append(scoring_task.c.reason == chosen.reason)
        first = select(scoring_task.c.state).where(*tasks_in_state).limit(MAX_EXCHANGES_SCANNED + 1).subquery("first")
        if connection.execute(select(func.count()).select_from(first)).scalar_one() <= MAX_EXCHANGES_SCANNED:
            of_scorer = matching(scoring_task, scorer=chosen.scorer)
            tasks = select(scoring_task.c.exchange_id).where(*tasks_in_state, *of_scorer)
            ids = connection.execute(tasks).scalars().all()
            return _fetch_by_id(connection, chosen, ids, conditions, limit), None
    indexed = _window_conditions(replace(chosen, service=None))
    if after is not None:
        indexed.append(exchange.c.started_at <= after.at)
    floor = scan_floor(connection, exchange.c.started_at, indexed, MAX_EXCHANGES_SCANNED)
    inside = [*_window_conditions(replace(chosen, since=floor or chosen.since)), *conditions]
    return _fetch_exchanges(connection, [*inside, *has_task], limit), floor


def _task_conditions(chosen: AnswerFilter, dialect: str) -> list[ColumnElement[bool]]:
    """Return the SQL conditions that an exchange has a task in the state; none for the state ``any``."""
    if chosen.state == "any":
        return []
    # Use the index on the exchange id. Without statistics, SQLite would read all tasks with this state and reason.
    conditions: list[ColumnElement[bool]] = [Unindexed(scoring_task.c.state).in_(STATES[chosen.state])]
    if chosen.scorer is not None:
        conditions.append(scoring_task.c.scorer == chosen.scorer)
    if chosen.reason is not None:
        conditions.append(Unindexed(scoring_task.c.reason) == chosen.reason)
    task = select(scoring_task.c.id).where(scoring_task.c.exchange_id == exchange.c.id, *conditions)
    if dialect == "postgresql":
        # PostgreSQL underestimates the number of these tasks, and would turn EXISTS into a join that reads all of them.
        return [task.limit(1).scalar_subquery().is_not(None)]
    return [task.exists()]


def _fetch_by_id(
    connection: Connection,
    chosen: AnswerFilter,
    ids: Iterable[str],
    conditions: Sequence[ColumnElement[bool]],
    limit: int,
) -> Sequence[Row]:
    """Return the newest of the given exchanges that match the conditions."""
    inside = _window_conditions(chosen, by_id=True)
    given = list(dict.fromkeys(ids))
    is_given = is_one_of(exchange.c.id, given, connection.dialect.name)
    # The limit keeps databases from looking for the ids among the newest exchanges, of which most are others.
    first = select(*_UNSCORED_COLUMNS).where(is_given, *inside, *conditions).limit(len(given)).subquery("first")
    newest = select(first).order_by(first.c.started_at.desc(), first.c.id.desc()).limit(limit)
    return connection.execute(newest).mappings().all()


def _window_conditions(chosen: AnswerFilter, *, by_id: bool = False) -> list[ColumnElement[bool]]:
    """Return the SQL conditions on time, service and route. With ``by_id``, databases use only the index on ids."""
    named = {"service": chosen.service, "route": chosen.route}
    columns = {name: exchange.c[name] for name in (*named, "started_at")}
    terms = {name: Unindexed(column) for name, column in columns.items()} if by_id else columns
    equal = [terms[name] == value for name, value in named.items() if value is not None]
    return [*chosen.score_filter.window(terms["started_at"]), *equal]


def _fetch_exchanges(connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int) -> Sequence[Row]:
    query = select(*_UNSCORED_COLUMNS).where(*conditions)
    query = query.order_by(exchange.c.started_at.desc(), exchange.c.id.desc()).limit(limit)
    return connection.execute(query).mappings().all()


def build_answers(connection: Connection, chosen: AnswerFilter, rows: Sequence[Row]) -> list[Answer]:
    """Convert rows to answers: load their exchanges, scores, tasks and labels."""
    answers: dict[str, dict[Any, Answer]] = {}
    with open_exchanges(connection, {row["exchange_id"]: row["started_at"] for row in rows}) as sources:
        for source, ids in sources:
            for row, answer in _build_answers(connection, source, chosen, rows, ids):
                answers.setdefault(row["exchange_id"], {})[row["id"]] = answer
    return [answers[row["exchange_id"]][row["id"]] for row in rows if row["id"] in answers.get(row["exchange_id"], {})]


def _build_answers(
    connection: Connection, source: Connection, chosen: AnswerFilter, rows: Sequence[Row], ids: Sequence[str]
) -> Iterator[tuple[Row, Answer]]:
    moments = {row["exchange_id"]: row["started_at"] for row in rows}
    exchanges, labels = load_exchanges(source, ids, moments), load_all_labels(connection, source, ids)
    is_scored, never = chosen.state == "scored", datetime.min.replace(tzinfo=UTC)
    scores = load_scores(source, ids) if chosen.state == "any" else {}
    tasks = {} if is_scored else load_tasks(source, ids)
    states = STATES.get(chosen.state, ("pending", "running", "failed", "skipped"))
    for row in rows:
        exchange_id = row["exchange_id"]
        if exchange_id not in exchanges:
            continue
        # Without a filter by state, use the scorer's newest score, whatever its fingerprint.
        candidates = [score for score in scores.get(exchange_id, ()) if chosen.scorer in {None, score.scorer}]
        newest = max(candidates, key=lambda score: (score.scored_at or never, score.fingerprint), default=None)
        shown = SCORES.decode(row) if is_scored else newest
        matching = [
            task for task in tasks.get(exchange_id, ()) if chosen.scorer in {None, task.scorer} and task.state in states
        ]
        task = matching[-1] if matching else None
        yield row, Answer(exchange=exchanges[exchange_id], score=shown, task=task, feedback=labels.get(exchange_id, ()))
