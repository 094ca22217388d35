"""Stories of real services, run through production alert evaluation in memory.

Deploys rename routes, scores arrive late, improvements are lost again, scorers answer 0 or 1, and services are bad from
their first answer. A story with a change counts the alerts that find it; a story without one counts false alerts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

import numpy as np

from germane.alert import IMPROVEMENT
from streams.families import Family, Service, part, service
from streams.memory import changes, scores_of
from streams.production import DAY
from streams.recipe import ROUTES, START, Change, Floats, Stream
from streams.rivals import Hourly, alerts, weekly_z

DEPLOY_DAY: Final = 21
YEAR: Final = 14 + 365
FALL_DAYS: Final = DEPLOY_DAY + 1 + 17
HARD: Final = "hard"
"""Name of a route that is added later, whose answers are worse than all others from its first answer on."""


@dataclass(frozen=True, slots=True)
class Story:
    """A kind of service, with what happens to it."""

    name: str
    per_day: int = 100
    wander: float = 0.02
    fall: float = 0.0
    """Amount by which the mean falls on the day of the deploy."""
    only: str = ""
    """The only route that falls and is renamed; empty for all routes."""
    renames: bool = False
    every_days: int = 0
    """Days between two renames over a whole year; 0 for one rename."""
    late_days: int = 0
    """Number of days whose scores arrive a day late, from the day of the deploy on."""
    lasts: float = np.inf
    """Duration of the fall in days."""
    rises: float = 0.0
    """Amount by which the level rises three weeks before the fall."""
    binary: bool = False
    """Whether each score is 0 or 1."""
    lower: float = 0.0
    """Amount by which the service is worse from its first answer."""
    weekends: float = 1.0
    """Share of the scores at weekends that are kept."""
    holidays: bool = False
    """Whether two weeks have a twentieth of the usual traffic."""
    mondays: bool = False
    """Whether the service has a route with 20 scores on Mondays and none on other days."""
    growth: float = 1.0
    adds: bool = False
    """Whether a route with a mean of 0.60 is added on the day of the deploy, with a tenth of the traffic."""
    long_memory: bool = False

    @property
    def title(self) -> str:
        """The story's name with the number of scores per day."""
        wander = "" if self.wander == 0.02 else f", wander {self.wander}"
        return f"{self.name}{wander}, {self.per_day} a day"

    @property
    def is_quiet(self) -> bool:
        """Whether every alert is a false one."""
        return not (self.fall or self.lower)

    @property
    def days(self) -> int:
        """Number of days that are simulated."""
        if self.is_quiet:
            return YEAR
        return FALL_DAYS + (DEPLOY_DAY if self.rises else 0)


@dataclass(frozen=True, slots=True)
class Told:
    """The alerts of one service."""

    fired: list[float]
    """Hours at which alerts fire."""
    onsets: list[float]
    """For each alert, the estimated onset in hours."""
    recovered: int
    """Number of alerts that resolve as recovered while the fall lasts."""
    onset: float
    """Hour at which the fall begins; infinite without one."""
    weekly: Floats
    """The statistic of the weekly z-test."""


_RENAMED = "all routes renamed"
QUIET_STORIES: Final = (
    Story("quiet"),
    Story("quiet", 1000),
    Story("quiet", 1000, 0.01),
    Story("growth times 10", growth=10),
    Story("growth times 10", 100, 0.01, growth=10),
    Story("long-memory wander", long_memory=True),
    Story(f"{_RENAMED} every 60 days, no fall", 100, renames=True, every_days=60),
    Story(f"{_RENAMED} every 60 days, no fall", 300, renames=True, every_days=60),
    Story("one route renamed every 60 days, no fall", 100, only="docs", renames=True, every_days=60),
    Story("harder route added", 100, adds=True),
    Story("backlog of two days, no fall", 100, late_days=2),
    Story("scores of 0 or 1", 100, binary=True),
    Story("scores of 0 or 1", 300, binary=True),
    Story("nearly empty weekends", 100, weekends=0.03),
    Story("holiday weeks", 100, holidays=True),
    Story("route on Mondays only", 100, mondays=True),
)
DROP_STORIES: Final = (
    *(
        Story(f"{_RENAMED}, fall of {fall:.2f}", n, fall=fall, renames=True)
        for fall in (0.2, 0.3)
        for n in (30, 100, 300)
    ),
    *(Story("one route renamed, fall of 0.25", n, fall=0.25, only="docs", renames=True) for n in (100, 300)),
    Story(f"{_RENAMED}, fall of 0.40 on one", 100, fall=0.4, only="faq", renames=True),
    Story("backlog, one bad day of 0.25", 300, fall=0.25, late_days=1, lasts=1),
    Story("backlog, fall of 0.20", 100, fall=0.2, late_days=2),
    *(
        Story("rise of 0.08 not accepted, then a fall of 0.07", n, wander, fall=0.07, rises=0.08)
        for wander in (0.01, 0.02)
        for n in (100, 300, 1000)
    ),
    *(Story("scores of 0 or 1, fall of 0.10", n, fall=0.1, binary=True) for n in (100, 300)),
    *(Story("bad from the first answer", n, lower=0.45) for n in (30, 100)),
    Story("shift 0.05", 1000, fall=0.05),
    Story("shift 0.10", 100, fall=0.10),
    Story("route on Mondays only, fall of 0.40", 100, fall=0.4, only="monday", mondays=True),
)


def tell(seed: int, story: Story, number: int) -> Told:
    """Run one service of a story."""
    random = np.random.default_rng([seed, story.per_day, crc32(story.title.encode()), number])
    made, delays = simulated(random, story)
    stream = made.stream
    fired, onsets, recovered = list[float](), list[float](), 0
    for hour, change in changes(scores_of(made, delays), story.days, 24 if story.is_quiet else 3):
        alert, event = change.alert, change.event
        if alert.type == IMPROVEMENT or event is None:
            continue
        if event.type == "fired":
            fired.append(hour)
            onsets.append((alert.onset.timestamp() - START) / 3600 if alert.onset else np.nan)
        elif event.type == "resolved" and alert.resolve_reason == "recovered" and stream.onset < hour < stream.end:
            recovered += 1
    return Told(fired, onsets, recovered, stream.onset, weekly_z(Hourly(stream)))


def simulated(random: np.random.Generator, story: Story) -> tuple[Service, Floats | None]:
    """Return one service of a story, and the hours by which its scores arrive late."""
    onset_day = DEPLOY_DAY + (DEPLOY_DAY if story.rises else 0)
    routes = tuple(replace(route, mean=route.mean - story.lower) for route in ROUTES)
    only = "" if story.only == "monday" else story.only
    fall = 0.0 if story.only == "monday" else story.fall
    change = Change(shift=fall, only=only)
    family = Family(story.name, story.per_day, story.wander, growth=story.growth, change=change, lasts=story.lasts,
                    onset_day=onset_day, routes=routes, long_memory=story.long_memory)  # fmt: skip
    stream = service(random, family, story.days).stream
    day = stream.hours // DAY
    if story.rises:
        risen = (stream.hours >= stream.onset - 21 * DAY) & (stream.values > 0)
        stream = replace(
            stream, values=np.where(risen, np.clip(stream.values + story.rises, 0.001, 1.0), stream.values)
        )
    if story.binary:
        stream = replace(stream, values=(random.random(len(stream.values)) < _smooth(stream)).astype(float))
    keep = np.ones(len(day), dtype=bool)
    if story.weekends < 1:
        keep &= (day % 7 < 5) | (random.random(len(day)) < story.weekends)
    if story.holidays:
        keep &= ~((day >= 40) & (day < 54)) | (random.random(len(day)) < 0.05)
    stream = part(stream, keep)
    if story.mondays:
        stream = _with_mondays(random, story, stream)
    if story.adds:
        late = (stream.hours >= DAY * DEPLOY_DAY) & (random.random(len(stream.hours)) < 0.1)
        hard = np.where(random.random(len(late)) < 0.05, 0.0, random.beta(12, 8, len(late)))
        stream = replace(stream, names=(*stream.names, HARD), values=np.where(late, hard, stream.values),
                         routes=np.where(late, len(stream.names), stream.routes))  # fmt: skip
    if story.renames:
        stream = _renamed(stream, story)
    delays = None
    if story.late_days:
        first = stream.onset if story.fall else DAY * DEPLOY_DAY
        is_late = (stream.hours >= first) & (stream.hours < first + DAY * story.late_days)
        delays = np.where(is_late, float(DAY * story.late_days), 0.0)
    if story.lower:
        stream = replace(stream, onset=0.0)
    elif not story.fall:
        stream = replace(stream, onset=np.inf, end=np.inf)
    return Service(stream), delays


def _smooth(stream: Stream) -> Floats:
    """Return the expected score of each answer: the mean of its route and day."""
    groups = stream.routes * 10_000 + (stream.hours // DAY).astype(np.int64) * 2 + (stream.hours >= stream.onset)
    _, which = np.unique(groups, return_inverse=True)
    return np.asarray((np.bincount(which, stream.values) / np.bincount(which))[which])


def _renamed(stream: Stream, story: Story) -> Stream:
    """Rename routes at the onset, or several times a year."""
    renames = (
        np.maximum(0, (stream.hours // DAY - DEPLOY_DAY) // story.every_days + 1).astype(np.int64)
        if story.every_days
        else (stream.hours >= stream.onset).astype(np.int64)
    )
    is_renamed = np.array([story.fall == 0.4 or story.only in ("", name) for name in stream.names])
    renames = np.where(is_renamed[stream.routes], renames, 0)
    count = len(stream.names)
    names = tuple(f"{name}-v{at + 1}" if at else name for at in range(int(renames.max()) + 1) for name in stream.names)
    return replace(stream, names=names, routes=stream.routes + count * renames)


def _with_mondays(random: np.random.Generator, story: Story, stream: Stream) -> Stream:
    """Add a route with 20 scores each Monday."""
    mondays = np.arange(0, story.days, 7)
    hours = np.sort(DAY * np.repeat(mondays, 20) + random.uniform(8, 18, 20 * len(mondays)))
    means = 0.75 - np.where(hours >= stream.onset, story.fall, 0.0)
    values = random.beta(20 * means, 20 * (1 - means))
    every = np.concatenate([stream.hours, hours])
    order = np.argsort(every, kind="stable")
    routes = np.concatenate([stream.routes, np.full(len(hours), len(stream.names))])[order]
    values = np.concatenate([stream.values, values])[order]
    return replace(stream, names=(*stream.names, "monday"), routes=routes, values=values, hours=every[order])


def weekly_alerts(told: Told, threshold: float) -> list[float]:
    """Return the hours at which the weekly z-test alerts."""
    return [float(at) for at in alerts(told.weekly, threshold)]
