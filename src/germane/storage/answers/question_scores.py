"""Answers to one question: the scores of each question in a window, and the last good answer to a question.

Questions are compared after normalization, which no index covers. Each search therefore reads a limited number of rows,
newest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, select

from germane.exchange import Exchange
from germane.score import NONCOMMITTAL, Score, is_low_value
from germane.storage.answers.detail import load_exchanges
from germane.storage.answers.filter import AnswerFilter
from germane.storage.answers.questions import BLANK_KEY, question_key
from germane.storage.answers.search import BEGINNING, exchange_conditions, scan_floor
from germane.storage.archive.reader import latest, open_newest
from germane.storage.db.mappers import batched, score_from_row
from germane.storage.db.tables import exchange, score

MAX_SCORES_SCANNED: Final = 20_000
"""Number of scores, from all scorers, to scan for questions."""
MAX_QUESTIONS: Final = 5_000
"""Number of scores whose questions are read."""
MAX_EXCHANGES_SCANNED: Final = 2_000
"""Number of a route's exchanges to search for an earlier answer to a question."""
MAX_AGE: Final = timedelta(days=30)
"""Maximum time between an answer and the last good answer to the same question."""


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """One score and the question that was asked."""

    exchange_id: str
    question: str | None
    """None if the question was erased or not stored."""
    started_at: datetime
    value: float
    label: str | None
    sampling_probability: float | None

    @property
    def is_low(self) -> bool:
        """Whether the score is low."""
        return is_low_value(self.value, self.label)


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """The scores of a window, newest first."""

    scores: Sequence[QuestionScore]
    searched_back_to: datetime | None
    """Start of the part of the window that was read, if it was truncated; None if the whole window was read."""


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """An earlier answer to the same question, with its score."""

    exchange: Exchange
    score: Score


def load_question_scores(connection: Connection, chosen: AnswerFilter) -> QuestionScores:
    """Return the newest scores that match a filter, with their questions."""
    found = _load_question_scores(connection, chosen)
    chosen = replace(chosen, since=latest(found.searched_back_to, chosen.since))
    with open_newest(connection, chosen.since, chosen.until, count=MAX_SCORES_SCANNED) as (archive, oldest):
        if archive is None:
            return found
        archived = _load_question_scores(archive, chosen)
    floor = latest(found.searched_back_to, archived.searched_back_to, oldest)
    scores = [one for one in (*found.scores, *archived.scores) if floor is None or one.started_at >= floor]
    scores.sort(key=lambda score: score.started_at, reverse=True)
    return QuestionScores(
        scores[:MAX_QUESTIONS], scores[MAX_QUESTIONS].started_at if len(scores) > MAX_QUESTIONS else floor
    )


def _load_question_scores(connection: Connection, chosen: AnswerFilter) -> QuestionScores:
    within = chosen.score_filter.window(score.c.started_at)
    floor = scan_floor(connection, score.c.started_at, within, MAX_SCORES_SCANNED)
    limited = replace(chosen.score_filter, since=floor or chosen.since or BEGINNING)
    columns = (score.c.started_at, score.c.value, score.c.label, score.c.sampling_probability)
    query = (
        select(score.c.exchange_id, exchange.c.question, *columns)
        .join(exchange, exchange.c.id == score.c.exchange_id)
        .where(*limited.conditions(), *exchange_conditions(connection, chosen, score.c.exchange_id))
        .order_by(score.c.started_at.desc(), score.c.id.desc())
        .limit(MAX_QUESTIONS + 1)
    )
    scores = [QuestionScore(*row) for row in connection.execute(query)]
    if len(scores) > MAX_QUESTIONS:
        return QuestionScores(scores[:MAX_QUESTIONS], scores[MAX_QUESTIONS - 1].started_at)
    return QuestionScores(scores, floor)


def find_last_good(
    connection: Connection, asked: Exchange, low: Score, before: datetime | None = None
) -> EarlierAnswer | None:
    """Return the newest earlier answer to the same question on the same route whose score is not low.

    Args:
        connection: A transaction.
        asked: The exchange with the low score.
        low: The low score. Only scores with the same scorer and fingerprint are comparable.
        before: Only answers before this time, such as the onset of a drop.

    Returns:
        The answer, or None if there is none among the ``MAX_EXCHANGES_SCANNED`` exchanges before this one, at most
        ``MAX_AGE`` earlier.
    """
    wanted = question_key(asked.question or "")
    if wanted == BLANK_KEY:
        return None
    query = (
        select(exchange.c.id, exchange.c.service, exchange.c.question)
        .where(
            exchange.c.route == asked.route,
            exchange.c.started_at >= asked.started_at - MAX_AGE,
            exchange.c.started_at < (asked.started_at if before is None else min(before, asked.started_at)),
        )
        .order_by(exchange.c.started_at.desc())
        .limit(MAX_EXCHANGES_SCANNED)
    )
    ids = [
        row.id
        for row in connection.execute(query)
        if row.service == asked.service and row.question is not None and question_key(row.question) == wanted
    ]
    for batch in batched(ids):  # newest first
        same = (score.c.scorer == low.scorer, score.c.fingerprint == low.fingerprint)
        rows = connection.execute(select(score).where(score.c.exchange_id.in_(batch), *same)).mappings()
        scores = {row["exchange_id"]: score_from_row(row) for row in rows}
        good = next((id_ for id_ in batch if id_ in scores and is_good(scores[id_])), None)
        if good is not None:
            found = load_exchanges(connection, [good])
            return EarlierAnswer(found[good], scores[good]) if good in found else None
    return None


def is_good(found: Score) -> bool:
    """Return whether a score has a value that is neither low nor that of a refusal."""
    return found.value is not None and not found.is_low and found.label != NONCOMMITTAL
