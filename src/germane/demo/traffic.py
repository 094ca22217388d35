"""The demo's traffic: questions and the times at which they are asked, identical in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from germane.demo.corpus import DemoCorpus, DemoQuestion

DURATION: Final = 90.0
"""Duration of the traffic, in seconds."""
FAULT_TIME: Final = 36.0
"""Seconds from the first visit to the fault."""
BROKEN_ROUTE: Final = "setup"
"""Route whose index breaks."""
VISITS_PER_SECOND: Final = 1.25
"""Visits per second to all routes combined. A small judge on one core keeps up with this rate."""
_ROUTE_CYCLE: Final = ("setup",) * 3 + ("billing",) * 2 + ("api",) * 2
"""The routes of seven visits, which are shuffled. Setup is the most common, because most visitors are new."""
_JITTER: Final = 0.8
"""Maximum random delay of a visit, as a share of the mean interval between visits."""
_SEED: Final = 20
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Visit:
    """A question, and the time at which it is asked."""

    at: float
    """Seconds from the start."""
    question: DemoQuestion


def plan_visits(corpus: DemoCorpus, *, duration: float = DURATION, rate: float = VISITS_PER_SECOND) -> list[Visit]:
    """Plan ``rate`` visits per second for ``duration`` seconds, earliest first.

    Routes come in shuffled cycles, so that their shares are about the same in every period. Each question of a route is
    asked once before any of them is repeated.
    """
    generator = random.Random(_SEED)
    questions = {route: _shuffle_forever(corpus.questions_for(route), generator) for route in sorted(set(_ROUTE_CYCLE))}
    routes = _shuffle_forever(_ROUTE_CYCLE, generator)
    return [
        Visit((number + _JITTER * generator.random()) / rate, next(questions[next(routes)]))
        for number in range(round(duration * rate))
    ]


def _shuffle_forever(items: Sequence[_Item], generator: random.Random) -> Iterator[_Item]:
    """Yield the items in random order forever, and shuffle them again after each pass."""
    while True:
        yield from generator.sample(items, len(items))
