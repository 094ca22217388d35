"""The last good answer to the same question, next to an answer with a low score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from germane.exchange import Context, Exchange
from germane.insights.context import InsightContext
from germane.insights.situation import NOTIFIED_STATES, alert_concerns_route
from germane.score import Score
from germane.settings import SCORE_RULES


@dataclass(frozen=True, slots=True)
class ComparedContext:
    """A retrieved context of one answer."""

    context: Context
    is_shared: bool
    """Whether the other answer has a context with the same text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastGoodAnswer:
    """The newest earlier answer to the same question on the same route whose score is not low."""

    exchange: Exchange
    score: Score
    then: Sequence[ComparedContext]
    """The contexts of this answer. Those that are not shared are missing now."""
    now: Sequence[ComparedContext]
    """The contexts of the answer with the low score. Those that are not shared are new."""
    onset: datetime | None = None
    """The onset of the open alert on this route before which this is the last good answer, if any."""

    @property
    def missing(self) -> int:
        """Number of contexts of the last good answer that this answer lacks."""
        return sum(not text.is_shared for text in self.then)

    @property
    def new(self) -> int:
        """Number of contexts that the last good answer lacks."""
        return sum(not text.is_shared for text in self.now)


def load_last_good(context: InsightContext, asked: Exchange, score: Score) -> LastGoodAnswer | None:
    """Return the last good answer, or None if the score is not low or no such answer was found.

    While an alert about the route is open, the last good answer before its onset is preferred: some answers are good
    during a drop, too, and they do not show what changed.
    """
    if not score.is_low:
        return None
    onsets = [
        alert.onset
        for alert in context.store.alerts.list_open()
        if alert.state in NOTIFIED_STATES and alert.type in SCORE_RULES and alert.scorer in {None, score.scorer}
        if alert.onset is not None and alert.onset <= asked.started_at
        if alert_concerns_route(alert, asked.service, asked.route)
    ]
    onset = min(onsets, default=None)  # of an open alert about the route that began before the answer
    earlier = None if onset is None else context.store.questions.find_last_good(asked, score, before=onset)
    if earlier is None:
        onset, earlier = None, context.store.questions.find_last_good(asked, score)
    if earlier is None:
        return None
    then, now = compare_contexts(earlier.exchange.contexts, asked.contexts)
    return LastGoodAnswer(exchange=earlier.exchange, score=earlier.score, then=then, now=now, onset=onset)


def compare_contexts(
    then: Sequence[Context], now: Sequence[Context]
) -> tuple[list[ComparedContext], list[ComparedContext]]:
    """Return the contexts of both answers in their order, marked by whether the other answer has the same text."""
    old, new = {text.text for text in then}, {text.text for text in now}
    return (
        [ComparedContext(text, text.text in new) for text in then],
        [ComparedContext(text, text.text in old) for text in now],
    )
