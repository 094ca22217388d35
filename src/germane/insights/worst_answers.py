"""The worst answers, the question that each one seems to answer, and whether human labels agree with the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.exchange import Exchange
from germane.insights.explanation import finite_number
from germane.score import NONCOMMITTAL, Score
from germane.storage import Disagreement, RouteMean, ScoredExchange, ServiceSummary, TrackingStore

MAX_WORST_ANSWERS: Final = 10
MAX_REFUSALS: Final = 3
"""Maximum number of refusals among ten worst answers, if there are other low scores."""
LOADED_PER_ANSWER: Final = 3
"""Number of answers to load for each one that is shown, because identical answers are shown only once."""
MAX_LABELS: Final = 200
"""Maximum number of labels, newest first, to compare with scores. Comparing thousands takes too long for a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstAnswer:
    """One of the worst answers."""

    exchange: Exchange
    score: Score
    reads_like: str | None
    """The generated question least similar to the question asked, or the score's explanation; None for a refusal."""
    repetitions: int = 0
    """Number of other answers with the same question, text and score, which are not shown."""


def load_worst_answers(
    store: TrackingStore,
    means: Sequence[RouteMean | ServiceSummary],
    since: datetime,
    until: datetime | None = None,
    *,
    limit: int = MAX_WORST_ANSWERS,
) -> list[WorstAnswer]:
    """Return the answers with the lowest scores, lowest first. All lists of worst answers come from here.

    Refusals count like other scores, but all score 0, so only a few are listed if there are other low scores to list
    instead. ``means`` identify services or routes without common answers; an empty service stands for all services.
    """

    def load_lowest(*, low: bool = False, refusals: bool | None = None) -> list[WorstAnswer]:
        scored = [
            answer
            for mean in means
            for answer in store.answers.worst(
                scorer=mean.scorer,
                service=mean.service or None,
                route=mean.route if isinstance(mean, RouteMean) else None,
                fingerprint=mean.fingerprint,
                low=low,
                refusals=refusals,
                since=since,
                until=until,
                limit=LOADED_PER_ANSWER * limit,
            )
        ]
        scored.sort(key=lambda answer: (answer.score.value or 0.0, -answer.exchange.started_at.timestamp()))
        return as_worst_answers(scored)[:limit]

    lowest = load_lowest()
    refusals = [answer for answer in lowest if answer.score.label == NONCOMMITTAL]
    listed = max(MAX_REFUSALS, MAX_REFUSALS * limit // MAX_WORST_ANSWERS)
    if len(refusals) > listed:
        others = [answer for answer in lowest if answer.score.label != NONCOMMITTAL]
        more = load_lowest(refusals=False, low=True) if len(lowest) == limit else []
        others = max(others, more, key=len)
        listed = max(listed, limit - len(others))
        lowest = sorted([*refusals[:listed], *others], key=lambda answer: answer.score.value or 0.0)
    return lowest[:limit]


def as_worst_answers(answers: Sequence[ScoredExchange]) -> list[WorstAnswer]:
    """Convert scored answers to worst answers, in the same order. Identical answers are merged."""
    groups: dict[tuple[object, ...], list[ScoredExchange]] = {}
    for answer in answers:
        exchange, score = answer.exchange, answer.score
        texts = (exchange.question, exchange.answer)
        identity = exchange.id if None in texts else ""  # erased texts may have differed
        key = (exchange.service, exchange.route, *texts, score.scorer, score.value, identity)
        groups.setdefault(key, []).append(answer)
    return [
        WorstAnswer(
            exchange=group[0].exchange,
            score=group[0].score,
            reads_like=reads_like(group[0].score),
            repetitions=len(group) - 1,
        )
        for group in groups.values()
    ]


def reads_like(score: Score) -> str | None:
    """Return the generated question least similar to the question asked, or the explanation if there are no questions.

    Returns None for a refusal.
    """
    if score.label == NONCOMMITTAL:
        return None
    questions = score.details.get("questions")
    similarities = [
        (similarity, question)
        for question in (questions if isinstance(questions, list) else ())
        if isinstance(question, Mapping)
        if (similarity := finite_number(question.get("similarity"))) is not None
    ]
    if not similarities:
        return score.explanation
    _, least_similar = min(similarities, key=lambda pair: pair[0])
    return str(least_similar.get("text", ""))


def load_disagreement(
    store: TrackingStore, mean: RouteMean | ServiceSummary, since: datetime, until: datetime
) -> Disagreement | None:
    """Return the disagreement between human labels and these scores, or None if no answer in the window has a label."""
    disagreements = store.labels.count_disagreements(
        scorer=mean.scorer,
        service=mean.service,
        route=mean.route if isinstance(mean, RouteMean) else None,
        fingerprint=mean.fingerprint,
        since=since,
        until=until,
        newest=MAX_LABELS,
    )
    return disagreements[0] if disagreements else None
