"""From what services were told to figures beside what was reported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from streams import rival
from streams.bands import (
    DECAY_REPORTED,
    PER_DROP,
    PREMATURE,
    RIVAL_REPORTED,
    Figure,
    alarms_figure,
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
    alarms,
    back,
    delay,
    found,
    in_all_per_drop,
    mean,
    notifications,
    per_drop,
    premature,
    share,
    told,
)
from streams.recipe import Floats
from streams.watched import Outcome

Outcomes = Mapping[str, Sequence[Outcome]]
"""By case."""
Rivals = Mapping[str, Sequence[tuple[Floats, float, float]]]
"""By case the falls that the rival goes by, onset and end."""
TUNED_TO = 0.1
"""False alarms in 30 days."""
FLAPPING = ".07 for 15 d"
RIVAL_CASES = (NULL, *MIXES, "shift .05", "shift .10", FLAPPING)
ONE_ROUTE = (NULL, "shift .05", "shift .10")
"""Cases in which each of the rival's streams is one route."""


def figures_of(cell: Cell, outcomes: Outcomes) -> list[Figure]:
    """Return the figures of one kind of service, of those cases that were simulated."""
    figures: list[Figure] = []
    for case, some in outcomes.items():
        if case in (NULL, YEAR, *MIXES):
            days = 365 if case == YEAR else PHASE
            figures.append(alarms_figure(cell, case, alarms(some, days, from_onset=case in MIXES)))
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
        share_figure(cell, case, "found", told(some), share_found),
        plain_figure(cell, case, "per drop", per_drop(some), ratio, PER_DROP[size_of(case)]),
    ]


def _recovery(cell: Cell, case: str, some: Sequence[Outcome]) -> list[Figure]:
    most = 2 * PER_DROP.get(size_of(case), PER_DROP["10"])
    return [
        median_figure(cell, case, back(some, 0.5), reported(cell, case, 0)),
        plain_figure(cell, case, "90 %", back(some, 0.9), reported(cell, case, 1)),
        plain_figure(cell, case, "premature", premature(some), most=PREMATURE.get(size_of(case))),
        plain_figure(cell, case, "per drop", in_all_per_drop(some), most=most),
    ]


def _decay(cell: Cell, some: Sequence[Outcome]) -> list[Figure]:
    share_found, hours = DECAY_REPORTED[cell.per_day, cell.wander]
    return [
        share_figure(cell, DECAY, "found", found(some, 24 * DECAY_DAYS), share_found),
        median_figure(cell, DECAY, delay(some), hours),
    ]


def rival_figures(cell: Cell, rivals: Rivals) -> list[Figure]:
    """Return the figures of the rival's rule, as it is and tuned on the streams in which nothing happens."""
    nulls = [falls for falls, _, _ in rivals[NULL]]
    tuned = rival.tuned(nulls, TUNED_TO)
    known = RIVAL_REPORTED.get(cell.per_day, (None, None, None)) if cell.wander == 0.01 else (None, None, None)
    figures = [plain_figure(cell, NULL, "rival: alarms", mean([len(rival.alarms(one)) for one in nulls]), known[0])]
    for case in MIXES:
        during = [sum(onset <= at < end for at in rival.alarms(one)) for one, onset, end in rivals[case]]
        figures.append(plain_figure(cell, case, "rival: alarms", mean(during)))
    for case in ("shift .05", "shift .10"):
        figures.append(plain_figure(cell, case, "rival: p7", _within(rivals[case], rival.THRESHOLD)))
        tuned_reported = known[1] if case == "shift .05" else None
        figures.append(plain_figure(cell, case, "rival, tuned: p7", _within(rivals[case], tuned), tuned_reported))
    crossings = [sum(at >= onset for at, _ in rival.turns(one)) for one, onset, _ in rivals[FLAPPING]]
    return [*figures, plain_figure(cell, FLAPPING, "rival: per drop", mean(crossings), known[2])]


def _within(streams: Sequence[tuple[Floats, float, float]], threshold: float) -> Measured:
    firsts = [
        min((at - onset for at in rival.alarms(falls, threshold) if at >= onset), default=math.inf)
        for falls, onset, _ in streams
    ]
    return share([first <= WEEK for first in firsts])
