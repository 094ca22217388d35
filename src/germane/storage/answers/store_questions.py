"""Answers by question: groups, the scores of each question in a window, and the last good answer to a question.

Questions are compared after normalization, which no index covers. Each search therefore reads a limited number of rows,
newest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from sqlalchemy import Connection, select

from germane.exchange import Exchange
from germane.score import NONCOMMITTAL, Score, is_low_value
from germane.statistics import Estimate
from germane.storage.answers.detail import load_exchanges
from germane.storage.answers.filter import Answer, AnswerFilter
from germane.storage.answers.lowest_scores import find_floor
from germane.storage.answers.questions import BLANK_KEY, load_question_keys, question_key
from germane.storage.answers.search import (
    BEGINNING,
    MAX_QUESTIONS_COMPARED,
    Row,
    build_answers,
    estimate_rows,
    exchange_conditions,
    find_newest,
)
from germane.storage.answers.store_answers import ScoredExchange
from germane.storage.archive.reader import latest, open_exchanges, open_newest
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import SCORES, batched
from germane.storage.db.tables import exchange, score

MAX_SCORES_SCANNED: Final = 20_000
"""Number of scores, from all scorers, to scan for questions."""
MAX_EXCHANGES_SCANNED: Final = 2_000
"""Number of a route's exchanges to search for an earlier answer to a question."""
MAX_AGE: Final = timedelta(days=30)
"""Maximum time between an answer and the last good answer to the same question."""
QuestionSort = Literal["low", "answers", "mean"]
"""Order of question groups: most low answers, most answers, or lowest mean first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionGroup:
    """The answers to one question."""

    key: str
    """Selects these answers as :attr:`AnswerFilter.question`."""
    count: int
    """Number of scored answers."""
    estimate: Estimate
    """Mean of the scores with the newest fingerprint in the group."""
    worst: Answer
    """The newest of the answers with the lowest score. Refusals count like other scores."""
    low: int
    """Number of low scores, including refusals."""
    refusals: int
    """Number of refusals."""
    newest_at: datetime
    """Time of the newest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionGroups:
    """Answers grouped by question."""

    groups: Sequence[QuestionGroup]
    """The first groups in the requested order; equal ones sorted by number of answers and by their lowest score."""
    question_count: int
    """Number of different questions, including groups that are not listed."""
    answer_count: int
    """Number of answers in all groups."""
    without_question: int
    """Number of matching answers whose question is erased or not stored."""
    searched_back_to: datetime | None
    """Start of the grouped time range if it was truncated; None if the whole window was grouped."""


class QuestionScore(NamedTuple):
    """One score and the question that was asked."""

    exchange_id: str
    question: str | None
    """None if the question was erased or not stored."""
    started_at: datetime
    value: float
    label: str | None
    sampling_probability: float | None

    @property
    def question_key(self) -> str | None:
        """A short text that is the same for questions that differ only in case, white space or final punctuation."""
        return None if self.question is None else question_key(self.question)

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


class _Group:
    """The rows of the answers to one question, newest first."""

    def __init__(self, key: str, rows: Sequence[Row]) -> None:
        self.key = key
        self.rows = rows
        self.lowest = min(rows, key=lambda row: row["value"])  # the newest of equal ones
        self._low = sum(is_low_value(row["value"], row["label"]) for row in rows)

    def rank(self, sort: QuestionSort) -> tuple[float, ...]:
        """Return the sort key. Groups that are equal in the requested order are sorted by size."""
        size = (-len(self.rows), self.lowest["value"])
        if sort == "answers":
            return size
        if sort == "mean" and (estimate := estimate_rows(self.rows)).has_min_samples:
            return (estimate.mean, *size)
        return (2.0, -self._low, *size)

    def describe(self, worst: Answer) -> QuestionGroup:
        """Return the group's public form, given the answer with the lowest score."""
        return QuestionGroup(
            key=self.key,
            count=len(self.rows),
            estimate=estimate_rows(self.rows),
            worst=worst,
            low=self._low,
            refusals=sum(row["label"] == NONCOMMITTAL for row in self.rows),
            newest_at=self.rows[0]["started_at"],
        )


class QuestionStore(StoreComponent):
    """Searches of answers by their question."""

    def group_by_question(
        self, chosen: AnswerFilter, *, sort: QuestionSort = "answers", limit: int = 50
    ) -> QuestionGroups:
        """Group the newest 3,000 scored answers that match a filter by question.

        Sorted by mean, groups with too few scores for a mean come last.
        """
        chosen = replace(chosen, state="scored")
        with self._database.read(snapshot=True) as connection:
            rows, floor = find_newest(connection, chosen)
            keys = load_question_keys(connection, {row["exchange_id"]: row["started_at"] for row in rows})
            by_key: dict[str, list[Row]] = {}
            for row in rows:
                if (key := keys.get(row["exchange_id"])) is not None:
                    by_key.setdefault(key, []).append(row)
            groups = [_Group(key, group) for key, group in by_key.items()]
            first = heapq.nsmallest(limit, groups, key=lambda group: (group.rank(sort), group.key))
            score_ids = [group.lowest["id"] for group in first]
            moments = {group.lowest["exchange_id"]: group.lowest["started_at"] for group in first}
            lowest: list[Row] = []
            with open_exchanges(connection, moments) as sources:
                for source, ids in sources:
                    query = select(score).where(score.c.exchange_id.in_(ids), score.c.id.in_(score_ids))
                    lowest += source.execute(query).mappings().all()
            worst = {answer.exchange.id: answer for answer in build_answers(connection, chosen, lowest)}
        answer_count = sum(len(group.rows) for group in groups)
        return QuestionGroups(
            groups=[
                group.describe(worst[group.lowest["exchange_id"]])
                for group in first
                if group.lowest["exchange_id"] in worst
            ],
            question_count=len(groups),
            answer_count=answer_count,
            without_question=len(rows) - answer_count,
            searched_back_to=floor,
        )

    def load_question_scores(self, chosen: AnswerFilter) -> QuestionScores:
        """Return up to 3,000 scores that match a filter, newest first, with the questions that were asked."""
        with self._database.read(snapshot=True) as connection:
            found = _load_scores(connection, chosen)
            chosen = replace(chosen, since=latest(found.searched_back_to, chosen.since))
            with open_newest(connection, chosen.since, chosen.until, count=MAX_SCORES_SCANNED) as (archive, oldest):
                if archive is None:
                    return found
                archived = _load_scores(archive, chosen)
        floor = latest(found.searched_back_to, archived.searched_back_to, oldest)
        scores = [one for one in (*found.scores, *archived.scores) if floor is None or one.started_at >= floor]
        scores.sort(key=lambda score: score.started_at, reverse=True)
        return QuestionScores(
            scores[:MAX_QUESTIONS_COMPARED],
            scores[MAX_QUESTIONS_COMPARED].started_at if len(scores) > MAX_QUESTIONS_COMPARED else floor,
        )

    def find_last_good(self, asked: Exchange, low: Score, *, before: datetime | None = None) -> ScoredExchange | None:
        """Return the newest earlier answer to the same question on the same route whose score is not low.

        Only scores with the scorer and fingerprint of ``low`` are comparable. ``before`` is a time such as the onset of
        a drop.

        Returns:
            The answer, or None if there is none among the 2,000 exchanges before this one, at most 30 days earlier.
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
        with self._database.read(snapshot=True) as connection:
            ids = [
                row.id
                for row in connection.execute(query)
                if row.service == asked.service and row.question is not None and question_key(row.question) == wanted
            ]
            for batch in batched(ids):  # newest first
                same = (score.c.scorer == low.scorer, score.c.fingerprint == low.fingerprint)
                rows = connection.execute(select(score).where(score.c.exchange_id.in_(batch), *same)).mappings()
                scores = {row["exchange_id"]: SCORES.decode(row) for row in rows}
                good = next((id_ for id_ in batch if id_ in scores and _is_good(scores[id_])), None)
                if good is not None:
                    found = load_exchanges(connection, [good])
                    return ScoredExchange(found[good], scores[good]) if good in found else None
        return None


def _load_scores(connection: Connection, chosen: AnswerFilter) -> QuestionScores:
    floor = find_floor(connection, chosen.since, chosen.until, MAX_SCORES_SCANNED)
    limited = replace(chosen.score_filter, since=floor or chosen.since or BEGINNING)
    columns = (score.c.started_at, score.c.value, score.c.label, score.c.sampling_probability)
    query = (
        select(score.c.exchange_id, exchange.c.question, *columns)
        .join(exchange, exchange.c.id == score.c.exchange_id)
        .where(*limited.conditions(), *exchange_conditions(connection, chosen, score.c.exchange_id))
        .order_by(score.c.started_at.desc(), score.c.id.desc())
        .limit(MAX_QUESTIONS_COMPARED + 1)
    )
    scores = list(map(QuestionScore._make, connection.execute(query).all()))
    if len(scores) > MAX_QUESTIONS_COMPARED:
        return QuestionScores(scores[:MAX_QUESTIONS_COMPARED], scores[MAX_QUESTIONS_COMPARED - 1].started_at)
    return QuestionScores(scores, floor)


def _is_good(found: Score) -> bool:
    """Return whether a score has a value that is neither low nor that of a refusal."""
    return found.value is not None and not found.is_low and found.label != NONCOMMITTAL
