"""Streams as the detector that ships sees them, and as the rival does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from germane.monitor.detector import Detector, Seen, learn
from streams import rival
from streams.cases import Case, Cell
from streams.recipe import BASELINE_DAYS, ROUTES, START, Floats, Route, Stream, stream

Turns = tuple[tuple[float, bool], ...]
"""(hour since the beginning, whether it fires: else it resolves), in order."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one service was told."""

    onset: float
    """Hour at which the change began, if there was one."""
    end: float
    """Hour at which it was over; infinite: it was not."""
    turns: Turns


def random_of(seed: int, cell: Cell, case: str, number: int) -> np.random.Generator:
    """Return the random numbers of one service: they depend on nothing but its place."""
    return np.random.default_rng([seed, cell.per_day, round(1000 * cell.wander), crc32(case.encode()), number])


def streamed(seed: int, cell: Cell, case: Case, number: int, routes: tuple[Route, ...] = ROUTES) -> Stream:
    """Return the scores of one service."""
    random = random_of(seed, cell, case.name, number)
    return stream(
        random, cell.per_day, cell.wander, days=case.days, change=case.change, lasts=case.lasts, routes=routes
    )


def watched(seed: int, cell: Cell, case: Case, number: int) -> Outcome:
    """Return what the detector says of one service that has its two knobs at their defaults."""
    found = streamed(seed, cell, case, number)
    step = 1 if case.once else 7
    return Outcome(found.onset, found.end, detected(found, days=case.days, once=case.once, step=step))


def detected(stream: Stream, *, days: int, once: bool = False, step: int = 1) -> Turns:
    """Return the turns of a detector that learned the first 14 days and is fed the rest, ``step`` days at once.

    With ``once`` it ends with the batch of the first alarm at or after the onset.
    """
    begins = 24 * BASELINE_DAYS
    learned = learn(
        seen(stream, 0, begins),
        service="shop",
        scorer="answer_relevancy",
        fingerprint="simulated",
        since=START,
        until=START + begins * 3600,
    )
    detector, turns = Detector(learned), list[tuple[float, bool]]()
    for hour in range(begins, 24 * days, 24 * step):
        new = detector.feed(seen(stream, hour, hour + 24 * step))
        turns += [((turn.at - START) / 3600, turn.state == "firing") for turn in new]
        if once and any(fires and at >= stream.onset for at, fires in turns):
            break
    return tuple(turns)


def seen(stream: Stream, since: float, until: float) -> Seen:
    """Return the scores of these hours as the detector takes them."""
    first, last = np.searchsorted(stream.hours, [since, until])
    part = slice(first, last)
    names = np.array(stream.names, dtype=object)
    return Seen(
        routes=names[stream.routes[part]].tolist(),
        values=stream.values[part],
        zeros=stream.zeros[part],
        times=START + 3600 * stream.hours[part],
    )


def rival_falls(seed: int, cell: Cell, case: Case, number: int, *, one_route: bool) -> tuple[Floats, Stream]:
    """Return the falls that the rival goes by; of ``one_route`` streams a third have each route."""
    routes = (ROUTES[number % len(ROUTES)],) if one_route else ROUTES
    found = streamed(seed, cell, case, number, routes)
    return rival.falls(found), found


def first_alarm(outcome: Outcome) -> float:
    """Return how many hours after the onset the first alarm came; infinite: none did."""
    return min((at - outcome.onset for at, fires in outcome.turns if fires and at >= outcome.onset), default=math.inf)
