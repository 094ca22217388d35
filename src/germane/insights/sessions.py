"""The page of a session: a conversation in time order, with its mean score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from germane.exchange import Exchange
from germane.insights.context import InsightContext, ViewParams, choose_scorer, from_one_snapshot
from germane.score import Score
from germane.statistics import Estimate
from germane.storage import Answer, AnswerCursor, AnswerFilter, MatchCount

MAX_TURNS: Final = 40
"""Maximum number of turns on a page, which keeps pages small even if every turn is long."""
BEFORE_ANSWER: Final = timedelta(hours=22)
AFTER_ANSWER: Final = timedelta(hours=2)
"""A search covers the newest answers before its end, so the window around an answer ends soon after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """One exchange of a session."""

    answer: Answer
    scores: Sequence[Score]
    """All scores, sorted by scorer."""

    @property
    def exchange(self) -> Exchange:
        """The question and the answer."""
        return self.answer.exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInsight:
    """The content of a session's page."""

    name: str
    turns: Sequence[SessionTurn]
    """Oldest first."""
    total: MatchCount
    scorer: str | None
    estimate: Estimate | None
    """Mean score of the session's scored turns in the window."""
    earlier: AnswerCursor | None
    """Position of the page with earlier turns."""
    searched_back_to: datetime | None
    """Start of the searched time range if it was truncated."""
    users: Sequence[str]
    """The users of these turns."""
    scorers: Sequence[str]


@from_one_snapshot
def load_session(context: InsightContext, view: ViewParams, name: str, after: AnswerCursor | None) -> SessionInsight:
    """Load the newest turns of a session in the window, or the turns before a position."""
    overall = context.store.trends.window_summary(since=view.since, until=view.until)
    scorer = choose_scorer(overall.services, view.scorer)
    chosen = AnswerFilter(since=view.since, until=view.until, service=view.service, session=name, state="any")
    page = context.store.answers.search(chosen, sort="newest", after=after, limit=MAX_TURNS)
    scores = context.store.answers.get_scores([answer.exchange.id for answer in page.answers])
    turns = []
    for answer in reversed(page.answers):
        own = scores.get(answer.exchange.id, ())
        newest = {score.scorer: score for score in sorted(own, key=lambda score: (score.scorer, str(score.scored_at)))}
        turns.append(SessionTurn(answer=answer, scores=list(newest.values())))
    summary = context.store.answers.summarize_matches(replace(chosen, scorer=scorer)) if scorer else None
    return SessionInsight(
        name=name,
        turns=turns,
        total=context.store.answers.count_matches(chosen),
        scorer=scorer,
        estimate=summary.estimate if summary else None,
        earlier=page.next_cursor,
        searched_back_to=page.searched_back_to,
        users=sorted({turn.exchange.user for turn in turns if turn.exchange.user}),
        scorers=sorted({counts.scorer for counts in overall.coverage if counts.scorer}),
    )


def session_window(exchange: Exchange) -> Mapping[str, str | None]:
    """Return the view parameters of a link from an answer to its session: a fixed window around the answer."""
    since, until = exchange.started_at - BEFORE_ANSWER, exchange.started_at + AFTER_ANSWER
    return {"window": None, "since": since.isoformat(), "until": until.isoformat()}
