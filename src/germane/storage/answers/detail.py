"""Details of one answer, and agreement of people's labels with scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage.answers.filter import TaskStatus
from germane.storage.answers.lowest_scores import ScoreFilter
from germane.storage.answers.readers import load_scores
from germane.storage.db.mappers import batched, exchange_from_row
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.feedback import COLUMNS

NEUTRAL_LABEL: Final = 0.5
"""Labels above this value mean a good answer, below it a bad one. Equal labels are ignored."""
MAX_LABELS_COMPARED: Final = 20_000
"""Maximum number of labels to compare, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDetail:
    """One exchange with its scores, tasks and labels."""

    exchange: Exchange
    scores: Sequence[Score]
    """By scorer, oldest first."""
    tasks: Sequence[TaskStatus]
    feedback: Sequence[Feedback]
    """Oldest first."""
    sampling_reason: str | None
    """Why it was selected or not; None before the sampling decision."""
    sampling_probability: float | None
    """Probability of being scored, in (0, 1]; None without random sampling."""
    proxy: float | None
    """Proxy score: a free local score."""
    erased_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """How often labels and the scores of one fingerprint disagree.

    The label of an answer is the mean over people of their latest label. A label of exactly 0.5 is ignored.
    """

    scorer: str
    fingerprint: str
    labeled: int
    """Number of scored answers with a label other than 0.5."""
    too_low: int
    """Low scores of answers labeled good."""
    too_high: int
    """Other scores of answers labeled bad."""

    @property
    def count(self) -> int:
        """Number of disagreements."""
        return self.too_low + self.too_high


def load_detail(connection: Connection, exchange_id: str) -> AnswerDetail | None:
    """Return the details of one exchange; None if the id is unknown."""
    row = connection.execute(select(exchange).where(exchange.c.id == exchange_id)).mappings().first()
    if row is None:
        return None
    scores = load_scores(connection, [exchange_id]).get(exchange_id, [])
    names = ("sampling_reason", "sampling_probability", "proxy", "erased_at")
    return AnswerDetail(
        exchange=exchange_from_row(row),
        scores=sorted(scores, key=lambda score: (score.scorer, str(score.scored_at))),
        tasks=load_tasks(connection, [exchange_id]).get(exchange_id, []),
        feedback=load_labels(connection, [exchange_id]).get(exchange_id, []),
        **{name: row[name] for name in names},
    )


_WORK = ("exchange_id", "scorer", "fingerprint", "state", "reason", "error", "retries", "not_before", "scored_as")


def load_tasks(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[TaskStatus]]:
    """Return tasks by exchange id, oldest first."""
    found: dict[str, list[TaskStatus]] = {}
    for some in batched(exchange_ids):
        query = select(*(scoring_task.c[name] for name in _WORK)).where(scoring_task.c.exchange_id.in_(some))
        for row in connection.execute(query.order_by(scoring_task.c.id)).mappings():
            found.setdefault(row["exchange_id"], []).append(_work(row))
    return found


def _work(row: RowMapping) -> TaskStatus:
    plain = {name: row[name] for name in ("scorer", "fingerprint", "state", "error", "retries", "not_before")}
    reason = None if row["reason"] is None else UnscoredReason(row["reason"])
    return TaskStatus(
        **plain, reason=reason, is_rescore=row["state"] in {"pending", "running"} and row["scored_as"] is not None
    )


def load_labels(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Feedback]]:
    """Return labels by exchange id, oldest first."""
    found: dict[str, list[Feedback]] = {}
    for some in batched(exchange_ids):
        query = select(*(feedback.c[name] for name in COLUMNS)).where(feedback.c.exchange_id.in_(some))
        for row in connection.execute(query.order_by(feedback.c.created_at, feedback.c.id)).mappings():
            found.setdefault(row["exchange_id"], []).append(Feedback(**row))
    return found


def count_disagreements(
    connection: Connection,
    since: datetime | None,
    until: datetime | None,
    equal: Mapping[str, Any],
    newest: int = MAX_LABELS_COMPARED,
) -> list[Disagreement]:
    """Return the disagreements per scorer and fingerprint over the newest labels."""
    labels = _labels(connection, newest)
    counts: dict[tuple[str, str], list[int]] = {}
    for ids in batched(sorted(labels)):
        for exchange_id, scores in _scores(connection, ids, since, until, equal).items():
            for one in scores:
                tally = counts.setdefault((one.scorer, one.fingerprint), [0, 0, 0])
                good = labels[exchange_id] > NEUTRAL_LABEL
                tally[0] += 1
                tally[1] += good and one.is_low
                tally[2] += not good and not one.is_low
    return [
        Disagreement(scorer=scorer, fingerprint=fingerprint, labeled=all_, too_low=low, too_high=high)
        for (scorer, fingerprint), (all_, low, high) in sorted(counts.items())
    ]


def _labels(connection: Connection, newest: int) -> dict[str, float]:
    """Return the mean label by exchange id, without means of exactly 0.5."""
    query = select(feedback.c.id, feedback.c.exchange_id, feedback.c.user, feedback.c.score)
    latest: dict[str, dict[str, float]] = {}
    for row in connection.execute(query.order_by(feedback.c.created_at.desc(), feedback.c.id.desc()).limit(newest)):
        # Labels without a name are assumed to be from different people.
        latest.setdefault(row.exchange_id, {}).setdefault(row.user or f"\0{row.id}", row.score)
    means = {exchange_id: sum(given.values()) / len(given) for exchange_id, given in latest.items()}
    return {exchange_id: mean for exchange_id, mean in means.items() if mean != NEUTRAL_LABEL}


def _scores(
    connection: Connection,
    ids: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    equal: Mapping[str, Any],
) -> dict[str, list[Score]]:
    """Return the matching scores by exchange id, with value and label only."""
    columns = (score.c.exchange_id, score.c.scorer, score.c.fingerprint, score.c.value, score.c.label)
    chosen = ScoreFilter(since=since, until=until, **equal)
    found: dict[str, list[Score]] = {}
    for row in connection.execute(select(*columns).where(score.c.exchange_id.in_(ids), *chosen.conditions())):
        made = Score(scorer=row.scorer, fingerprint=row.fingerprint, value=row.value, label=row.label)
        found.setdefault(row.exchange_id, []).append(made)
    return found
