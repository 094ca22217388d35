"""Who asks what, and when: the same visits in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from germane.demo.corpus import ROUTES, Corpus, Question

LENGTH = 90.0
"""Seconds from the first visit to the last."""
FAULT_AT = 40.0
"""Seconds from the first visit to the moment at which one route's index goes wrong."""
BROKEN_ROUTE = "setup"
"""The route whose index goes wrong."""
PACE = 1.8
"""Visits per second, over all routes."""
_UNEVEN = 0.8
"""By how much of the mean gap a visit may come early or late."""
_SEED = 20
_Card = TypeVar("_Card")


@dataclass(frozen=True, slots=True)
class Visit:
    """One question, asked at one moment."""

    at: float
    """Seconds from the start."""
    question: Question


def plan_visits(
    corpus: Corpus, *, length: float = LENGTH, pace: float = PACE, routes: Sequence[str] = ROUTES
) -> list[Visit]:
    """Return the visits of a run, earliest first: ``pace`` of them per second for ``length`` seconds.

    The routes take turns in an order that is shuffled anew for each round, so that any stretch of time holds about as
    many visits of each. A route's questions come in shuffled order, and none comes again before all have been asked.
    """
    chance = random.Random(_SEED)
    decks = {route: _deal(corpus.questions_of(route), chance) for route in routes}
    turns = _deal(routes, chance)
    count = round(length * pace)
    return [
        Visit((number + _UNEVEN * (chance.random() - 0.5)) / pace if number else 0.0, next(decks[next(turns)]))
        for number in range(count)
    ]


def _deal(cards: Sequence[_Card], chance: random.Random) -> Iterator[_Card]:
    """Deal the cards without end, shuffled anew each time they run out."""
    while True:
        yield from chance.sample(cards, len(cards))
