"""Kinds of streams other than a steady service: growing traffic, bursts, long-memory wander, many routes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streams.recipe import (
    BASELINE_DAYS,
    MEAN_FROM_HOUR,
    MEAN_SWING,
    ONSET_DAY,
    ROUTES,
    Change,
    Floats,
    Route,
    Routes,
    Stream,
    arrivals,
    scores,
    stream,
)

PARETO, LONGEST_SESSION = 1.3, 200
"""Exponent of the distribution of the number of questions in one session, and the upper limit of this number."""
LONG_MEMORY = 0.95
TWELVE = tuple(
    Route(f"route-{number:02}", mean, 20, 0.05, 1 / number**1.2)
    for number, mean in enumerate(np.linspace(0.88, 0.70, 12).tolist(), start=1)
)


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of stream."""

    name: str
    per_day: int
    wander: float
    growth: float = 1.0
    """Factor by which traffic grows after the baseline."""
    user_deviation: float | None = None
    """Standard deviation of the users' levels; None if each user asks one question."""
    anonymous: bool = False
    """Whether scores in bursts carry neither user nor session."""
    long_memory: bool = False
    """Whether the levels of consecutive days have a correlation of 0.95."""
    weekly: float = 0.0
    """Amount by which the level falls at weekends."""
    change: Change | None = None
    lasts: float = np.inf
    """Duration of the change in days."""
    onset_day: int = ONSET_DAY
    """Day on which the change begins."""
    relearns: bool = False
    """Whether the baseline is relearned after two weeks of different traffic, as in production."""
    routes: tuple[Route, ...] = ROUTES

    @property
    def title(self) -> str:
        """The family's name with the number of scores per day."""
        return f"{self.name}, {self.per_day} a day"


STEADY = tuple(Family("quiet, wander 0.02", n, 0.02) for n in (100, 300, 1000))
"""The families on which the rivals are tuned."""
QUIET = (
    *STEADY,
    *(Family("quiet, wander 0.01", n, 0.01) for n in (100, 300, 1000)),
    *(Family(f"traffic times {growth}", 100, 0.01, growth=growth) for growth in (3, 10, 50)),
    Family("traffic times 10, wander 0.02", 100, 0.02, growth=10),
    Family("traffic times 10, learned again", 100, 0.01, growth=10, relearns=True),
    Family("traffic times 10, learned again, wander 0.02", 100, 0.02, growth=10, relearns=True),
    *(Family(f"bursts, user sd {sd}", n, 0.01, user_deviation=sd) for sd in (0.05, 0.1) for n in (100, 1000)),
    *(
        Family(f"bursts without user, sd {sd}", n, 0.01, user_deviation=sd, anonymous=True)
        for sd in (0.05, 0.1)
        for n in (100, 1000)
    ),
    *(Family("weekly cycle 0.03", n, 0.01, weekly=0.03) for n in (100, 1000)),
    *(Family("long-memory wander 0.02", n, 0.02, long_memory=True) for n in (100, 1000)),
    *(
        Family(
            f"traffic moves to the worst route, wander {wander}", 100, wander, change=Change(shares=(0.2, 0.35, 0.45))
        )
        for wander in (0.01, 0.02)
    ),
)
FEW_REFUSALS = tuple(replace(route, zeros=0.02) for route in ROUTES)
DROPS = (
    *(
        Family(f"shift {size:.2f}", n, 0.02, change=Change(shift=size), lasts=14)
        for size in (0.05, 0.10, 0.20)
        for n in (10, 100, 300, 1000, 5000)
    ),
    *(Family("shift 0.05, wander 0.01", n, 0.01, change=Change(shift=0.05), lasts=14) for n in (100, 1000)),
    *(Family("shift 0.10 over 7 days", n, 0.02, change=Change(shift=0.1, ramp_days=7), lasts=14) for n in (100, 1000)),
    *(
        Family("smallest of three routes 0.20", n, 0.02, change=Change(shift=0.2, only="support"), lasts=14)
        for n in (100, 1000)
    ),
    *(
        Family("one of twelve routes 0.40", n, 0.02, change=Change(shift=0.4, only="route-03"), lasts=14, routes=TWELVE)
        for n in (100, 1000)
    ),
    *(Family("refusals, mean 0.10 lower", n, 0.02, change=Change(refusal=0.10), lasts=14) for n in (100, 1000)),
    *(
        Family("refusals from 2 to 15%", n, 0.02, change=Change(zeros=0.13), lasts=14, routes=FEW_REFUSALS)
        for n in (100, 1000)
    ),
    *(Family("two hours 0.40", n, 0.02, change=Change(shift=0.4), lasts=2 / 24) for n in (100, 1000)),
    *(
        Family(
            f"shift 0.10, traffic times 10, {when} learned again",
            100,
            0.02,
            growth=10,
            relearns=True,
            change=Change(shift=0.10),
            lasts=14,
            onset_day=day,
        )
        for when, day in (("before it is", ONSET_DAY), ("after it was", 2 * BASELINE_DAYS + 2))
    ),
)
DROP_DAYS = ONSET_DAY + 1 + 14 + 21
"""Number of days that are simulated for a drop on the usual day. If the drop is later, as many days are added."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service's scores, with their users."""

    stream: Stream
    users: Routes | None = None
    """User number for each score; None if every score has a different user."""


def service(random: np.random.Generator, family: Family, days: int) -> Service:
    """Return one service of a family over ``days``."""
    if family.user_deviation is not None:
        return _bursts(random, family, family.user_deviation, days)
    wander = 0.0 if family.long_memory else family.wander
    found = stream(
        random,
        family.per_day * family.growth,
        wander,
        days=days,
        change=family.change,
        lasts=family.lasts,
        routes=family.routes,
        onset_day=family.onset_day,
    )
    if family.growth > 1:
        late = found.hours >= 24 * BASELINE_DAYS
        found = part(found, late | (random.random(len(late)) < 1 / family.growth))
    level = np.zeros(days)
    if family.long_memory:
        level = family.wander * _long_memory(random, days)
    level = level - family.weekly * (np.arange(days) % 7 >= 5)
    shifts = level[(found.hours // 24).astype(np.int64)]
    values = np.where(found.values > 0, np.clip(found.values + shifts, 0.001, 1.0), 0.0)
    return Service(replace(found, values=values))


def part(found: Stream, kept: np.ndarray) -> Stream:
    """Return the selected scores of a stream."""
    return replace(found, routes=found.routes[kept], values=found.values[kept], hours=found.hours[kept])


def _bursts(random: np.random.Generator, family: Family, deviation: float, days: int) -> Service:
    """Return sessions of up to 200 questions, about one per minute, each with one user, one level and one route."""

    def lengths(count: int) -> Routes:
        return np.minimum(np.floor(random.random(count) ** (-1 / PARETO)), LONGEST_SESSION).astype(np.int64)

    starts = arrivals(random, family.per_day / lengths(200_000).mean(), days)
    counts = lengths(len(starts))
    users = np.repeat(np.arange(len(starts)), counts)
    place = np.arange(len(users)) - np.repeat(np.cumsum(counts) - counts, counts)
    hours = starts[users] + place / 60
    order = np.argsort(hours, kind="stable")
    order = order[hours[order] < 24 * days]
    users, hours = users[order], hours[order]
    which = random.choice(len(family.routes), p=[route.share for route in family.routes], size=len(starts))[users]
    levels = deviation * random.standard_normal(len(starts))
    swing = MEAN_SWING * np.sin(2 * np.pi * (hours % 24 - MEAN_FROM_HOUR) / 24)
    days_of = (hours // 24).astype(np.int64)
    shifts = levels[users] + swing + family.wander * random.standard_normal(days)[days_of]
    values = scores(random, family.routes, which, shifts)
    found = Stream(tuple(route.name for route in family.routes), which, values, hours, np.inf, np.inf)
    return Service(found, None if family.anonymous else users)


def _long_memory(random: np.random.Generator, days: int) -> Floats:
    effects = random.standard_normal(days)
    for day in range(1, days):
        effects[day] = LONG_MEMORY * effects[day - 1] + np.sqrt(1 - LONG_MEMORY**2) * effects[day]
    return effects
