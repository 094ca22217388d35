"""Whether the routes that alerts name are the routes that got worse."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from germane.alerting.detector.detector import Detector
from germane.alerting.drop.score_levels import affected_routes
from germane.storage import DetectorScore
from streams.families import DROP_DAYS, TWELVE, Family
from streams.production import BEGINS, DAY, limited, score_batch, simulated
from streams.recipe import START, Change, Stream

Named = Literal["exact", "service", "wrong", "none"]
"""What the first alert names: exactly the routes that got worse, the whole service although only some routes got worse,
other routes, or nothing, because no alert fires. If all routes got worse, the whole service is exact."""
MIN_DROP = 0.05

ATTRIBUTED = (
    *(
        Family("one of three routes 0.40", n, 0.02, change=Change(shift=0.4, only="support"), lasts=14)
        for n in (100, 1000)
    ),
    *(
        Family(
            f"{place} of twelve routes 0.40", n, 0.02, change=Change(shift=0.4, only=name), lasts=14, routes=TWELVE
        )
        for place, name in (("third", "route-03"), ("tenth", "route-10"))
        for n in (100, 1000)
    ),
    *(
        Family(f"all three routes {size:.2f}", n, 0.02, change=Change(shift=size), lasts=14)
        for size in (0.1, 0.2)
        for n in (100, 1000)
    ),
    *(
        Family("all twelve routes 0.20", n, 0.02, change=Change(shift=0.2), lasts=14, routes=TWELVE)
        for n in (100, 1000)
    ),
    *(
        Family("refusals of all three routes, 0.10", n, 0.02, change=Change(refusal=0.1), lasts=14)
        for n in (100, 1000)
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttributionRow:
    """Numbers of services in a family, by what the first alert names."""

    family: str
    services: int
    exact: int
    service: int
    wrong: int
    none: int


def attribute(seed: int, family: Family, number: int) -> Named:
    """Return what the first alert after the onset names. Rules are evaluated every hour."""
    random, made = simulated(seed, family, DROP_DAYS, number)
    baseline, stream = limited(random, made)
    detector = Detector(baseline)
    expected = {family.change.only} - {""} if family.change else set[str]()
    for hour in range(BEGINS, DAY * DROP_DAYS):
        fired = [each for each in detector.process(score_batch(stream, hour, hour + 1)) if each.state == "firing"]
        if fired and fired[0].at >= START + 3600 * stream.onset:
            named = set(affected_routes(baseline, _arrivals(stream, fired[0].onset, hour + 1), MIN_DROP))
            return "exact" if named == expected else "wrong" if named else "service"
    return "none"


def _arrivals(stream: Stream, since: float, until_hour: float) -> list[DetectorScore]:
    """Return the scores in a range of hours, in the form in which the database returns them."""
    times = START + 3600 * stream.hours
    return [
        DetectorScore(
            id=int(index),
            service="shop",
            route=stream.names[stream.routes[index]],
            scorer="answer_relevancy",
            fingerprint="simulated",
            exchange_id=str(index),
            value=float(stream.values[index]),
            is_zero=bool(stream.values[index] <= 0),
            arrived_at=(at := datetime.fromtimestamp(float(times[index]), UTC)),
            answered_at=at,
        )
        for index in np.flatnonzero((times >= since) & (stream.hours < until_hour))
    ]
