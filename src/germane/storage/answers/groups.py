"""Answers grouped by question, and the mean score of the answers that match a filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, select

from germane.score import NONCOMMITTAL, is_low_value
from germane.storage.answers.filter import Answer, AnswerFilter
from germane.storage.answers.questions import load_question_keys
from germane.storage.answers.search import Row, build_answers, find_newest
from germane.storage.archive.reader import open_exchanges
from germane.storage.db.tables import score
from germane.storage.stats.estimate import Estimate, RunningSums, estimate_mean

QuestionSort = Literal["low", "answers", "mean"]
"""Order of question groups: most low answers, most answers, or lowest mean first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchSummary:
    """The number of scored answers that match a filter, and their mean score."""

    count: int
    estimate: Estimate | None
    """Mean of the scores with the newest fingerprint; None without scores."""
    searched_back_to: datetime | None
    """Start of the summarized time range if it was truncated; None if the whole window was summarized."""


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
    """The newest of the answers with the lowest score. A refusal only if all are refusals, because they all score 0."""
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


def summarize_matches(connection: Connection, chosen: AnswerFilter) -> MatchSummary:
    """Count the newest matching scores and estimate their mean."""
    rows, floor = find_newest(connection, replace(chosen, state="scored"))
    return MatchSummary(count=len(rows), estimate=estimate_rows(rows) if rows else None, searched_back_to=floor)


def group_by_question(
    connection: Connection, chosen: AnswerFilter, limit: int, sort: QuestionSort = "answers"
) -> QuestionGroups:
    """Group the newest matching answers by question, and return the first ``limit`` groups.

    Groups with too few scores for a mean follow those with a mean if ``sort`` is ``mean``.
    """
    chosen = replace(chosen, state="scored")
    rows, floor = find_newest(connection, chosen)
    keys = load_question_keys(connection, {row["exchange_id"]: row["started_at"] for row in rows})
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        if (key := keys.get(row["exchange_id"])) is not None:
            by_key.setdefault(key, []).append(row)
    # Rows are sorted newest first, so the newest of equal ones is found.
    lowest = {
        key: min(group, key=lambda row: (row["label"] == NONCOMMITTAL, row["value"])) for key, group in by_key.items()
    }
    low = {key: sum(is_low_value(row["value"], row["label"]) for row in group) for key, group in by_key.items()}
    estimates = {key: estimate_rows(group) for key, group in by_key.items()} if sort == "mean" else {}

    def rank(key: str) -> tuple[float, ...]:
        size = (-len(by_key[key]), lowest[key]["value"])
        if sort == "answers":
            return size
        if sort == "low" or not estimates[key].has_min_samples:
            return (2.0, -low[key], *size)
        return (estimates[key].mean, *size)

    order = sorted(by_key, key=lambda key: (rank(key), key))[:limit]
    wanted = [lowest[key] for key in order]
    score_ids = [row["id"] for row in wanted]
    full_rows: list[Row] = []
    with open_exchanges(connection, {row["exchange_id"]: row["started_at"] for row in wanted}) as sources:
        for source, ids in sources:
            query = select(score).where(score.c.exchange_id.in_(ids), score.c.id.in_(score_ids))
            full_rows += source.execute(query).mappings().all()
    answers = build_answers(connection, chosen, full_rows)
    worst = {answer.exchange.id: answer for answer in answers}
    return QuestionGroups(
        groups=[
            QuestionGroup(
                key=key,
                count=len(by_key[key]),
                estimate=estimate_rows(by_key[key]),
                worst=worst[lowest[key]["exchange_id"]],
                low=low[key],
                refusals=sum(row["label"] == NONCOMMITTAL for row in by_key[key]),
                newest_at=by_key[key][0]["started_at"],
            )
            for key in order
            if lowest[key]["exchange_id"] in worst
        ],
        question_count=len(by_key),
        answer_count=sum(map(len, by_key.values())),
        without_question=len(rows) - sum(map(len, by_key.values())),
        searched_back_to=floor,
    )


def estimate_rows(rows: Sequence[Row]) -> Estimate:
    """Return the mean of the scores in rows, newest row first, that have the newest row's fingerprint."""
    scorer, fingerprint = rows[0]["scorer"], rows[0]["fingerprint"]
    total = RunningSums()
    for row in rows:
        if (row["scorer"], row["fingerprint"]) == (scorer, fingerprint):
            total.add(row["value"], row["label"], row["sampling_probability"])
    return estimate_mean(total.sums, scorer, fingerprint)
