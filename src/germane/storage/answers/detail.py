"""All that is known of one answer; and how people's labels and the judge's scores go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage.answers.filter import Work
from germane.storage.answers.lowest_scores import Chosen
from germane.storage.answers.readers import scores_of
from germane.storage.db.mappers import batched, exchange_of
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.feedback import COLUMNS

GOOD: Final = 0.5
"""A label above says that an answer is good, one below that it is bad; one of just that says neither."""
LABELS: Final = 20_000
"""Labels that are compared, of the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One exchange with all that is known of it."""

    exchange: Exchange
    scores: Sequence[Score]
    """The newest last."""
    works: Sequence[Work]
    feedback: Sequence[Feedback]
    """Oldest first."""
    sampling_reason: str | None
    """Why it was picked or not; None until somebody has looked at it."""
    sampling_probability: float | None
    """Of being scored, in (0, 1]; None where nothing was drawn."""
    proxy: float | None
    """Free local score."""
    erased_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """How often people and the scores of one fingerprint take different sides.

    An answer's label is the mean over people, of each of them the latest. Labels of just .5 take no side.
    """

    scorer: str
    fingerprint: str
    labelled: int
    """Scored answers whose label takes a side."""
    too_low: int
    """Low scores of answers that people find good."""
    too_high: int
    """Other scores of answers that people find bad."""

    @property
    def count(self) -> int:
        """How often they disagree."""
        return self.too_low + self.too_high


def sheet(connection: Connection, exchange_id: str) -> Sheet | None:
    """Return all of one exchange; None where it is not here."""
    row = connection.execute(select(exchange).where(exchange.c.id == exchange_id)).mappings().first()
    if row is None:
        return None
    scores = scores_of(connection, [exchange_id]).get(exchange_id, [])
    names = ("sampling_reason", "sampling_probability", "proxy", "erased_at")
    return Sheet(
        exchange=exchange_of(row),
        scores=sorted(scores, key=lambda one: (one.scorer, str(one.scored_at))),
        works=works_of(connection, [exchange_id]).get(exchange_id, []),
        feedback=labels_of(connection, [exchange_id]).get(exchange_id, []),
        **{name: row[name] for name in names},
    )


_WORK = ("exchange_id", "scorer", "fingerprint", "state", "reason", "error", "tries", "not_before", "scored_as")


def works_of(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Work]]:
    """Return the tasks of exchanges, by exchange, in the order in which they were made."""
    found: dict[str, list[Work]] = {}
    for some in batched(exchange_ids):
        query = select(*(scoring_task.c[name] for name in _WORK)).where(scoring_task.c.exchange_id.in_(some))
        for row in connection.execute(query.order_by(scoring_task.c.id)).mappings():
            found.setdefault(row["exchange_id"], []).append(_work(row))
    return found


def _work(row: RowMapping) -> Work:
    plain = {name: row[name] for name in ("scorer", "fingerprint", "state", "error", "tries", "not_before")}
    reason = None if row["reason"] is None else Reason(row["reason"])
    return Work(**plain, reason=reason, again=row["state"] in {"pending", "running"} and row["scored_as"] is not None)


def labels_of(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Feedback]]:
    """Return people's labels of exchanges, by exchange, oldest first."""
    found: dict[str, list[Feedback]] = {}
    for some in batched(exchange_ids):
        query = select(*(feedback.c[name] for name in COLUMNS)).where(feedback.c.exchange_id.in_(some))
        for row in connection.execute(query.order_by(feedback.c.created_at, feedback.c.id)).mappings():
            found.setdefault(row["exchange_id"], []).append(Feedback(**row))
    return found


def disagreements(
    connection: Connection,
    since: datetime | None,
    until: datetime | None,
    equal: Mapping[str, Any],
    newest: int = LABELS,
) -> list[Disagreement]:
    """Return one per scorer and fingerprint that has scores of labelled answers, of so many of the newest labels."""
    labels = _labels(connection, newest)
    counts: dict[tuple[str, str], list[int]] = {}
    for ids in batched(sorted(labels)):
        for exchange_id, scores in _scores(connection, ids, since, until, equal).items():
            for one in scores:
                tally = counts.setdefault((one.scorer, one.fingerprint), [0, 0, 0])
                good = labels[exchange_id] > GOOD
                tally[0] += 1
                tally[1] += good and one.is_low
                tally[2] += not good and not one.is_low
    return [
        Disagreement(scorer=scorer, fingerprint=fingerprint, labelled=all_, too_low=low, too_high=high)
        for (scorer, fingerprint), (all_, low, high) in sorted(counts.items())
    ]


def _labels(connection: Connection, newest: int) -> dict[str, float]:
    """Return by exchange the mean over people of their latest labels, where it takes a side."""
    query = select(feedback.c.id, feedback.c.exchange_id, feedback.c.user, feedback.c.score)
    latest: dict[str, dict[str, float]] = {}
    for row in connection.execute(query.order_by(feedback.c.created_at.desc(), feedback.c.id.desc()).limit(newest)):
        # Who gave no name may be anybody.
        latest.setdefault(row.exchange_id, {}).setdefault(row.user or f"\0{row.id}", row.score)
    means = {exchange_id: sum(given.values()) / len(given) for exchange_id, given in latest.items()}
    return {exchange_id: mean for exchange_id, mean in means.items() if mean != GOOD}


def _scores(
    connection: Connection,
    ids: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    equal: Mapping[str, Any],
) -> dict[str, list[Score]]:
    """Return value and label of the scores of these exchanges that fit."""
    columns = (score.c.exchange_id, score.c.scorer, score.c.fingerprint, score.c.value, score.c.label)
    chosen = Chosen(since=since, until=until, **equal)
    found: dict[str, list[Score]] = {}
    for row in connection.execute(select(*columns).where(score.c.exchange_id.in_(ids), *chosen.conditions())):
        made = Score(scorer=row.scorer, fingerprint=row.fingerprint, value=row.value, label=row.label)
        found.setdefault(row.exchange_id, []).append(made)
    return found
