"""Simulated cases: services of several sizes and the changes applied to them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from streams.recipe import Change

PER_DAY = (20, 100, 300, 1000)
WANDER = (0.01, 0.02)
PHASE = 30
"""Number of days over which false alerts are counted, and of days simulated after a recovery."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of service."""

    per_day: int
    """Scores per day."""
    wander: float

    def __str__(self) -> str:
        """Return the label used in tables: "100, 0.01"."""
        return f"{self.per_day}, {self.wander:g}"


@dataclass(frozen=True, slots=True)
class Case:
    """A change and the number of services to which it is applied."""

    name: str
    days: int
    """Number of simulated days, including the baseline days."""
    services: int
    change: Change | None = None
    lasts: float = inf
    """Duration of the change in days."""
    once: bool = False
    """Whether the simulation stops at the first alert at or after the onset."""
    only: tuple[int, ...] = PER_DAY
    """Scores per day of the cells that include this case."""


SERVICES, LASTING, YEARS = 150, 75, 60
TWICE_UP_TO = 300
"""With up to this many scores per day, twice as many services are simulated, because they are cheap."""
NULL, YEAR = "null", "year"
MIXES = ("mix -.038", "mix -.075")
ONSETS = {
    "shift .05": Change(shift=0.05),
    "shift .10": Change(shift=0.10),
    "shift .20": Change(shift=0.20),
    "support .20": Change(shift=0.20, only="support"),
    "refusal .10": Change(refusal=0.10),
    "ramp .10": Change(shift=0.10, ramp_days=7),
}
LASTS = {f".{size:02} for 28 d": Change(shift=size / 100) for size in (3, 4, 5, 7, 10)} | {
    "refusal .10 for 28 d": Change(refusal=0.10)
}
BACKS = {f".{size:02} for 15 d": Change(shift=size / 100) for size in (5, 7, 10)} | {
    "refusal .10 for 15 d": Change(refusal=0.10),
    "support .20 for 15 d": Change(shift=0.20, only="support"),
}
DECAY = "decay .10"
LASTS_DAYS, BACK_DAYS, DECAY_DAYS = 28, 15, 30


def cases() -> tuple[Case, ...]:
    """Return all cases."""
    return (
        Case(NULL, 14 + PHASE, SERVICES),
        Case(YEAR, 14 + 365, YEARS),
        Case(MIXES[0], 17 + PHASE, SERVICES, Change(shares=(0.35, 0.35, 0.30))),
        Case(MIXES[1], 17 + PHASE, SERVICES, Change(shares=(0.2, 0.35, 0.45))),
        *(Case(name, 31, SERVICES, change, once=True) for name, change in ONSETS.items()),
        *(Case(name, 17 + LASTS_DAYS, LASTING, change, LASTS_DAYS) for name, change in LASTS.items()),
        *(Case(name, 17 + BACK_DAYS + PHASE, LASTING, change, BACK_DAYS) for name, change in BACKS.items()),
        Case(
            DECAY,
            17 + DECAY_DAYS,
            SERVICES,
            Change(shift=0.10, ramp_days=DECAY_DAYS),
            DECAY_DAYS,
            once=True,
            only=(100,),
        ),
    )
