"""Figures computed from the outcomes of simulated services, with the reported values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from streams import hourly_rule
from streams.bands import (
    DECAY_REPORTED,
    HOURLY_RULE_REPORTED,
    PER_DROP,
    PREMATURE,
    Figure,
    alerts_figure,
    median_figure,
    plain_figure,
    reported,
    share_figure,
    size_of,
)
from streams.cases import BACKS, DECAY, DECAY_DAYS, LASTS, MIXES, NULL, ONSETS, PHASE, YEAR, Cell
from streams.measures import (
    WEEK,
    Measured,
    alerted,
    alerts,
    delay,
    found,
    in_all_per_drop,
    mean,
    notifications,
    per_drop,
    premature,
    recovery_delay,
    share,
)
from streams.recipe import Floats
from streams.watched import Outcome

Outcomes = Mapping[str, Sequence[Outcome]]
"""Outcomes by case."""
HourlyFalls = Mapping[str, Sequence[tuple[Floats, float, float]]]
"""Hourly falls, onset and end of each stream, by case."""
TUNED_TO = 0.1
"""Number of false alerts in 30 days to which the hourly rule is tuned."""
FLAPPING = ".07 for 15 d"
HOURLY_RULE_CASES = (NULL, *MIXES, "shift .05", "shift .10", FLAPPING)
ONE_ROUTE = (NULL, "shift .05", "shift .10")
"""Cases in which the hourly rule watches each route separately."""


def figures_of(cell: Cell, outcomes: Outcomes) -> list[Figure]:
    """Return the figures of one kind of service for the simulated cases."""
    figures: list[Figure] = []
    for case, some in outcomes.items():
        if case in (NULL, YEAR, *MIXES):
            days = 365 if case == YEAR else PHASE
            figures.append(alerts_figure(cell, case, alerts(some, days, from_onset=case in MIXES)))
        elif case in ONSETS:
            figures += _onset(cell, case, some)
        elif case in LASTS:
            figures += _lasting(cell, case, some)
        elif case in BACKS:
            figures += _recovery(cell, case, some)
        elif case == DECAY:
            figures += _decay(cell, some)
    return figures


def _onset(cell: Cell, case: str, some: Sequence[Outcome]) -> list[Figure]:
    return [
        share_figure(cell, case, "p7", found(some, WEEK), reported(cell, case, 0)),
        median_figure(cell, case, delay(some), reported(cell, case, 1)),
    ]


def _lasting(cell: Cell, case: str, some: Sequence[Outcome]) -> list[Figure]:
    both, share_found = reported(cell, case, 0), reported(cell, case, 1)
    ratio = None if not both or not share_found else both / share_found
    return [
        plain_figure(cell, case, "notifications", notifications(some), both),
        share_figure(cell, case, "found", alerted(some), share_found),
        plain_figure(cell, case, "per drop", per_drop(some), ratio, PER_DROP[size_of(case)]),
    ]


def _recovery(cell: Cell, case: str, some: Sequence[Outcome]) -> list[Figure]:
    most = 2 * PER_DROP.get(size_of(case), PER_DROP["10"])
    return [
        median_figure(cell, case, recovery_delay(some, 0.5), reported(cell, case, 0)),
        plain_figure(cell, case, "90%", recovery_delay(some, 0.9), reported(cell, case, 1)),
        plain_figure(cell, case, "premature", premature(some), most=PREMATURE.get(size_of(case))),
        plain_figure(cell, case, "per drop", in_all_per_drop(some), most=most),
    ]


def _decay(cell: Cell, some: Sequence[Outcome]) -> list[Figure]:
    share_found, hours = DECAY_REPORTED[cell.per_day, cell.wander]
    return [
        share_figure(cell, DECAY, "found", found(some, 24 * DECAY_DAYS), share_found),
        median_figure(cell, DECAY, delay(some), hours),
    ]


def hourly_rule_figures(cell: Cell, streams: HourlyFalls) -> list[Figure]:
    """Return the figures of the hourly rule, with its default threshold and tuned on streams without a change."""
    nulls = [falls for falls, _, _ in streams[NULL]]
    tuned = hourly_rule.tuned(nulls, TUNED_TO)
    known = HOURLY_RULE_REPORTED.get(cell.per_day, (None, None, None)) if cell.wander == 0.01 else (None, None, None)
    figures = [
        plain_figure(cell, NULL, "hourly rule: alerts", mean([len(hourly_rule.alerts(one)) for one in nulls]), known[0])
    ]
    for case in MIXES:
        during = [sum(onset <= at < end for at in hourly_rule.alerts(one)) for one, onset, end in streams[case]]
        figures.append(plain_figure(cell, case, "hourly rule: alerts", mean(during)))
    for case in ("shift .05", "shift .10"):
        figures.append(plain_figure(cell, case, "hourly rule: p7", _within(streams[case], hourly_rule.THRESHOLD)))
        tuned_reported = known[1] if case == "shift .05" else None
        figures.append(
            plain_figure(cell, case, "hourly rule, tuned: p7", _within(streams[case], tuned), tuned_reported)
        )
    crossings = [sum(at >= onset for at, _ in hourly_rule.transitions(one)) for one, onset, _ in streams[FLAPPING]]
    return [*figures, plain_figure(cell, FLAPPING, "hourly rule: per drop", mean(crossings), known[2])]


def _within(streams: Sequence[tuple[Floats, float, float]], threshold: float) -> Measured:
    firsts = [
        min((at - onset for at in hourly_rule.alerts(falls, threshold) if at >= onset), default=math.inf)
        for falls, onset, _ in streams
    ]
    return share([first <= WEEK for first in firsts])
