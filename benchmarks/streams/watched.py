"""Synthetic streams that are run through the production detector and the hourly rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from germane.alerting.detector import Detector, ScoreBatch, learn_baseline
from streams import hourly_rule
from streams.cases import Case, Cell
from streams.recipe import BASELINE_DAYS, ROUTES, START, Floats, Route, Stream, stream

Transitions = tuple[tuple[float, bool], ...]
"""Transitions in order: the hour since the start, and True if the alert fires or False if it resolves."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulated service's change and alerts."""

    onset: float
    """Hour at which the change begins, if there is one."""
    end: float
    """Hour at which the change ends; infinite if it does not."""
    transitions: Transitions


def random_of(seed: int, cell: Cell, case: str, number: int) -> np.random.Generator:
    """Return the random generator of one service; it depends only on these arguments."""
    return np.random.default_rng([seed, cell.per_day, round(1000 * cell.wander), crc32(case.encode()), number])


def streamed(seed: int, cell: Cell, case: Case, number: int, routes: tuple[Route, ...] = ROUTES) -> Stream:
    """Return the scores of one service."""
    random = random_of(seed, cell, case.name, number)
    return stream(
        random, cell.per_day, cell.wander, days=case.days, change=case.change, lasts=case.lasts, routes=routes
    )


def watched(seed: int, cell: Cell, case: Case, number: int) -> Outcome:
    """Run the detector with default parameters over one service."""
    found = streamed(seed, cell, case, number)
    step = 1 if case.once else 7
    return Outcome(found.onset, found.end, detected(found, days=case.days, once=case.once, step=step))


def detected(stream: Stream, *, days: int, once: bool = False, step: int = 1) -> Transitions:
    """Return the transitions of a detector that learns from the first 14 days and processes the rest.

    It processes ``step`` days per batch. With ``once``, it stops after the batch with the first alert after the onset.
    """
    begins = 24 * BASELINE_DAYS
    baseline = learn_baseline(
        score_batch(stream, 0, begins),
        service="shop",
        scorer="answer_relevancy",
        fingerprint="simulated",
        since=START,
        until=START + begins * 3600,
    )
    detector, transitions = Detector(baseline), list[tuple[float, bool]]()
    for hour in range(begins, 24 * days, 24 * step):
        new = detector.process(score_batch(stream, hour, hour + 24 * step))
        transitions += [((one.at - START) / 3600, one.state == "firing") for one in new]
        if once and any(fires and at >= stream.onset for at, fires in transitions):
            break
    return tuple(transitions)


def score_batch(stream: Stream, since: float, until: float) -> ScoreBatch:
    """Return the scores of these hours in the detector's input format."""
    first, last = np.searchsorted(stream.hours, [since, until])
    part = slice(first, last)
    names = np.array(stream.names, dtype=object)
    return ScoreBatch(
        routes=names[stream.routes[part]].tolist(),
        values=stream.values[part],
        zeros=stream.zeros[part],
        times=START + 3600 * stream.hours[part],
    )


def hourly_falls(seed: int, cell: Cell, case: Case, number: int, *, one_route: bool) -> tuple[Floats, Stream]:
    """Return one service's hourly falls and its stream. With ``one_route``, the service has only one of the routes."""
    routes = (ROUTES[number % len(ROUTES)],) if one_route else ROUTES
    found = streamed(seed, cell, case, number, routes)
    return hourly_rule.falls(found), found


def first_alert(outcome: Outcome) -> float:
    """Return the hours from the onset to the first alert; infinite if there is none."""
    return min(
        (at - outcome.onset for at, fires in outcome.transitions if fires and at >= outcome.onset), default=math.inf
    )
