"""Who asks what, and when: the same visits in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from germane.demo.corpus import Corpus, Question

LENGTH = 90.0
"""Seconds for which visitors come."""
FAULT_AT = 36.0
"""Seconds from the first visit to the moment at which one route's index goes wrong."""
BROKEN_ROUTE = "setup"
"""The route whose index goes wrong."""
PACE = 1.25
"""Visits per second, over all routes: as many as a small judge on one core keeps up with."""

_ROUND = ("setup",) * 3 + ("billing",) * 2 + ("api",) * 2
"""Routes of seven visits: most visitors have just bought a station."""
_UNEVEN = 0.8
"""How much of the time to the next visit is chance."""
_SEED = 20
_Card = TypeVar("_Card")


@dataclass(frozen=True, slots=True)
class Visit:
    """One question, asked at one moment."""

    at: float
    """Seconds from the start."""
    question: Question


def plan_visits(corpus: Corpus, *, length: float = LENGTH, pace: float = PACE) -> list[Visit]:
    """Return the visits of a run, earliest first: ``pace`` of them per second for ``length`` seconds.

    Routes come in rounds that are each shuffled, so that any stretch of time holds about as much of every route as any
    other. A route's questions are shuffled too, and none comes again before all of them have been asked.
    """
    chance = random.Random(_SEED)
    decks = {route: _deal(corpus.questions_of(route), chance) for route in sorted(set(_ROUND))}
    routes = _deal(_ROUND, chance)
    return [
        Visit((number + _UNEVEN * chance.random()) / pace, next(decks[next(routes)]))
        for number in range(round(length * pace))
    ]


def _deal(cards: Sequence[_Card], chance: random.Random) -> Iterator[_Card]:
    """Deal the cards without end, shuffled anew each time they run out."""
    while True:
        yield from chance.sample(cards, len(cards))
