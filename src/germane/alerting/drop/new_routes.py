"""Detection of bad answers on routes that have no baseline, from their first answer on.

A new route has no level of its own from which it could drop. If other routes vanished when it appeared, as after a
deploy that renames routes, the new routes together are compared with the vanished routes together, and each of them
with the worst vanished route. Answers beyond the traffic of the vanished routes are compared with a level that is low
for both the scorer and the service. So are all routes until a service's first baseline has been learned. Cosine scores
have no fixed bands, so once there is a baseline, low means a fixed distance below the other routes.

A level is bad if the mean of the last 1 to 16 days is ``CERTAINTY`` standard errors below the reference. A route that
appears is a rare event, so unlike the drop detector, this test needs no false-alert rate per year.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import hypot, sqrt
from statistics import fmean, pvariance
from typing import Any, Final, NamedTuple

from germane.alerting.detector.limiter import DAY, UserLimit
from germane.alerting.drop.scope import is_new_route
from germane.baseline import CORRELATED_DAYS, POOLED_ROUTE, Baseline, RouteBaseline
from germane.score import COSINE_SCORERS, LOW_SCORE
from germane.storage import DetectorScore, DetectorState

COSINE_DISTANCE: Final = 0.15
"""Distance below the lowest mean of the other routes at which a new route's cosine scores count as low."""
CERTAINTY: Final = 4.0
"""Minimum distance between a level and its reference, in standard errors. It is large because many windows and days are
compared."""
MIN_SCORES: Final = 20
"""Minimum number of scores in a window."""
WINDOWS: Final = (1, 2, 4, 8, 16)
"""Lengths in days."""
MIN_DEVIATION: Final = 0.1
"""Minimum standard deviation that is assumed for scores, because a few scores may happen to be equal."""
ASSUMED_WANDER: Final = 0.02
"""Minimum day-to-day wander that is assumed for a level."""
MAX_WORSENING: Final = 0.02
"""New routes join the baseline only if their mean is at most this much below their reference."""
MAX_ROUTES: Final = 200
"""Maximum number of new routes that are judged one by one. Further routes are pooled."""
_GAPS: Final = 1.5
_EXPECTED_SCORES: Final = 16.0
_EXPECTED_WITH_OTHERS: Final = 3.0
"""A route has vanished if it has been silent for 1.5 times its longest gap in the baseline, and for at least the time
in which 16 scores were expected. Both are measured in scores of the service, which nights and weekends do not affect.
Once a route has vanished, 3 expected scores are enough for the others that have been silent since the new routes
appeared."""
_TOGETHER: Final = 3 * DAY
"""A route that vanished longer than this before the first new route appeared was not replaced by it."""
_EXPLAINED: Final = 1.5
"""New routes with up to 1.5 times the traffic of the vanished routes are a replacement for them."""
_ALL: Final = ""


class Reference(NamedTuple):
    """The level that new routes are compared with."""

    mean: float
    deviation: float
    wander: float
    n: float
    """Number of scores that it was learned from; infinite for a level that was chosen."""
    vanished: tuple[str, ...]
    """The routes that it was learned from; empty if none vanished."""


@dataclass(slots=True)
class BadLevel:
    """A bad level of one new route or of all of them. It keeps the reference that it was compared with."""

    onset: float
    """Unix timestamp in seconds."""
    routes: list[str]
    reference: float
    n: float | None
    """Number of scores in the reference; None for a level that was chosen."""
    level: float
    """The mean when it was found."""
    vanished: list[str]
    is_first: bool
    """Whether the service had no baseline."""
    fell: bool | None = None
    """Whether the first answers were better, so only a baseline can measure the fall; None if not known yet."""


def was_better(bad: BadLevel, earlier: Sequence[float]) -> bool:
    """Return whether the scores from before a low level were not low, and clearly better than it."""
    if not earlier:
        return False
    mean = fmean(earlier)
    error = hypot(sqrt(max(MIN_DEVIATION**2, pvariance(earlier)) / len(earlier)), ASSUMED_WANDER)
    return mean >= bad.reference and mean - bad.level >= CERTAINTY * error


class _Window(NamedTuple):
    n: int
    mean: float
    error: float
    """Standard error, including the usual variation between days."""
    since: float


def low_level(baseline: Baseline | None) -> float:
    """Return the mean score, in [0, 1], below which a route counts as bad if it replaces no other."""
    if baseline is None:
        return LOW_SCORE
    lowest = min(route.mean for route in baseline.routes.values())
    return max(0.0, lowest - COSINE_DISTANCE) if baseline.scorer in COSINE_SCORERS else min(LOW_SCORE, lowest)


def bad_levels(progress: DetectorState) -> dict[str, Any]:
    """Return the bad levels in a stored detector state, by route; an empty name stands for all new routes."""
    found: dict[str, Any] = (progress.state.get("newcomers") or {}).get("bad", {})
    return found


def routes_to_exclude(progress: DetectorState) -> set[str]:
    """Return the new routes that must not join the baseline, because their level is bad or worse than what vanished."""
    newcomers = progress.state.get("newcomers") or {}
    bad = {route for level in bad_levels(progress).values() for route in level["routes"]}
    return bad | (set(newcomers["days"]) if newcomers.get("is_worse") else set())


class Newcomers:
    """Judges the routes of one service and scorer that have no baseline.

    Args:
        baseline: The service's baseline; None until the first one has been learned.
        min_drop: Smallest drop that matters.
        state: A result of :meth:`state` to continue from.
    """

    def __init__(self, baseline: Baseline | None, min_drop: float, state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self._baseline = baseline
        self._min_drop = min_drop
        found = {name: BadLevel(**level) for name, level in state.get("bad", {}).items()}
        self.bad = {
            name: bad
            for name, bad in found.items()
            if (not bad.fell if bad.is_first and baseline else bad.is_first or any(map(self._is_new, bad.routes)))
        }
        """Bad levels by route. The level of all new routes together has an empty name. Bad routes do not join the
        baseline unless a person accepts them, which ends it.
        """
        watched = {route for level in self.bad.values() for route in level.routes}
        self._days: dict[str, dict[str, list[float]]] = {
            route: days for route, days in state.get("days", {}).items() if self._is_new(route) or route in watched
        }
        """For each route and day since the epoch: number, sum and sum of squares of its scores, and the first time."""
        self._count: int = state.get("count", 0)
        start = [] if baseline is None else [(name, baseline.until.timestamp()) for name in baseline.routes]
        self._seen: dict[str, list[float]] = {name: [self._count, at] for name, at in start} | state.get("seen", {})
        """For each route of the baseline: its last score, as a number of scores of the service, and its time."""
        self._started: list[float] = state.get("started") or []
        """The first score on a new route: number of scores of the service before it, and its time."""
        self._users = UserLimit(state.get("users"))
        self._is_worse: bool = state.get("is_worse", False)
        if not any(self._is_new(route) for route in self._days):
            self._started, self._is_worse = [], False

    @property
    def has_baseline(self) -> bool:
        """Whether there is a baseline whose routes are not judged."""
        return self._baseline is not None

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {
            "bad": {name: asdict(level) for name, level in sorted(self.bad.items())},
            "days": self._days,
            "seen": self._seen,
            "count": self._count,
            "started": self._started,
            "users": self._users.state(),
            "is_worse": self._is_worse,
        }

    def forget(self, names: Iterable[str]) -> None:
        """Forget bad levels that a person has resolved, and the scores that they were found in."""
        for name in names:
            for route in self.bad.pop(name).routes:
                self._days.pop(route, None)

    def process(self, scores: Sequence[DetectorScore]) -> None:
        """Process scores, and judge the routes."""
        for score in scores:
            self._add(score)
        if self._days:
            self._forget_old_days()
            self._end_recovered()
            self._judge()

    def _is_new(self, route: str) -> bool:
        return self._baseline is None or is_new_route(self._baseline, route)

    def _add(self, score: DetectorScore) -> None:
        at = score.answered_at.timestamp()
        is_new, is_watched = self._is_new(score.route), score.route in self._days
        self._count += 1
        if not is_new and self._baseline is not None:
            name = POOLED_ROUTE if score.route in self._baseline.pooled else score.route
            if name in self._seen:
                self._seen[name] = [self._count, max(at, self._seen[name][1])]
        if not (is_new or is_watched) or not self._users.admits(score.user, at):
            return
        if is_new and not self._started:
            self._started = [self._count - 1, at]
        value = 0.0 if score.is_zero else min(1.0, max(0.0, score.value))
        route = score.route if is_watched or len(self._days) < MAX_ROUTES else POOLED_ROUTE
        day = self._days.setdefault(route, {}).setdefault(str(int(at // DAY)), [0, 0.0, 0.0, at])
        day[:] = [day[0] + 1, day[1] + value, day[2] + value**2, min(day[3], at)]

    def _forget_old_days(self) -> None:
        newest = max(int(day) for days in self._days.values() for day in days)
        for route, days in list(self._days.items()):
            self._days[route] = {day: sums for day, sums in days.items() if int(day) > newest - WINDOWS[-1]}
            if not self._days[route]:
                del self._days[route]

    def _windows(self, routes: Collection[str], wander: float, deviation: float = MIN_DEVIATION) -> list[_Window]:
        """Return the levels of some routes together over the last days, shortest first."""
        sums = [(int(day), each) for route in routes for day, each in self._days.get(route, {}).items()]
        newest, found = max((day for day, _ in sums), default=0), list[_Window]()
        for length in WINDOWS:
            parts = [(day, each) for day, each in sums if day > newest - length]
            n = int(sum(each[0] for _, each in parts))
            if n < MIN_SCORES or (found and n == found[-1].n):
                continue
            mean = sum(each[1] for _, each in parts) / n
            variance = max(deviation**2, sum(each[2] for _, each in parts) / n - mean**2)
            shared = wander * sqrt(min(1.0, CORRELATED_DAYS / len({day for day, _ in parts})))
            found.append(_Window(n, mean, hypot(sqrt(variance / n), shared), min(each[3] for _, each in parts)))
        return found

    def _judge(self) -> None:
        new = [route for route in self._days if self._is_new(route)]
        together, each = self._references()
        whole = self._windows(new, together.wander, together.deviation)
        self._is_worse = bool(whole) and whole[-1].mean < together.mean - MAX_WORSENING
        if _ALL in self.bad and not self.bad[_ALL].fell:
            return
        name = new[0] if len(new) == 1 and self._baseline is not None else _ALL
        self._find(name, new, together, whole)
        if name == _ALL and (_ALL not in self.bad or self.bad[_ALL].fell):
            for route in new:
                self._find(route, [route], each, self._windows([route], each.wander))

    def _find(self, name: str, routes: Sequence[str], reference: Reference, windows: Sequence[_Window]) -> None:
        """Add a bad level if the scores in any window are clearly below the reference."""
        if name in self.bad or not windows:
            return
        doubt = 0.0
        if self._baseline is not None and reference.n != float("inf"):
            doubt = hypot(reference.deviation / sqrt(reference.n), reference.wander * self._baseline.wander_in_mean)
        clearest = max(windows, key=lambda window: (reference.mean - window.mean) / hypot(window.error, doubt))
        fall = reference.mean - clearest.mean
        if fall >= self._min_drop and fall >= CERTAINTY * hypot(clearest.error, doubt):
            self.bad[name] = BadLevel(
                onset=clearest.since,
                routes=list(routes),
                reference=reference.mean,
                n=None if reference.n == float("inf") else reference.n,
                level=clearest.mean,
                vanished=list(reference.vanished),
                is_first=self._baseline is None,
            )

    def _end_recovered(self) -> None:
        """End bad levels whose scores have risen. The reference never changes, so nothing else can end them."""
        for name, bad in list(self.bad.items()):
            for window in self._windows(bad.routes, ASSUMED_WANDER)[1:]:
                has_risen = window.mean - 2 * window.error > (bad.level + bad.reference) / 2
                if has_risen and window.mean >= bad.reference - self._min_drop / 2:
                    del self.bad[name]
                    break

    def _references(self) -> tuple[Reference, Reference]:
        """Return the levels that all new routes together and that each of them is compared with."""
        low = low_level(self._baseline)
        chosen = Reference(low, MIN_DEVIATION, ASSUMED_WANDER, float("inf"), ())
        vanished = self._vanished()
        if not vanished or self._baseline is None:
            return chosen, chosen
        total = sum(share for share, _ in vanished.values())
        mean = sum(share * route.mean for share, route in vanished.values()) / total
        variance = sum(
            share * (route.deviation**2 + (route.mean - mean) ** 2) for share, route in vanished.values()
        ) / total  # fmt: skip
        wander = sum(share * route.wander for share, route in vanished.values()) / total
        new = sum(day[0] for route, days in self._days.items() if self._is_new(route) for day in days.values())
        expected = total * (self._count - self._started[0])
        explained = min(1.0, _EXPLAINED * expected / max(1.0, new))
        together = Reference(
            explained * mean + (1 - explained) * low,
            sqrt(variance),
            max(ASSUMED_WANDER, wander),
            sum(route.n for _, route in vanished.values()),
            tuple(sorted(vanished)),
        )
        worst = min((route for _, route in vanished.values()), key=lambda route: route.mean)
        return together, together._replace(
            mean=explained * worst.mean + (1 - explained) * low, deviation=worst.deviation, n=worst.n
        )

    def _vanished(self) -> dict[str, tuple[float, RouteBaseline]]:
        """Return the routes that vanished when the new routes appeared, with their shares of the scores."""
        if self._baseline is None or not self._started:
            return {}
        earliest = self._started[1] - _TOGETHER
        routes = {name: self._seen[name] for name in self._baseline.routes if self._seen[name][1] >= earliest}
        known = {name: self._baseline.routes[name] for name in routes}
        total = sum(route.scores_per_day for route in known.values())
        shares = {name: route.scores_per_day / total for name, route in known.items() if route.scores_per_day > 0}
        silence = {name: self._count - routes[name][0] for name in shares}
        if not any(
            silence[name] > max(_GAPS * known[name].longest_gap, _EXPECTED_SCORES / share)
            for name, share in shares.items()
        ):
            return {}
        since = self._count - self._started[0]
        return {
            name: (share, known[name])
            for name, share in shares.items()
            if silence[name] > _EXPECTED_WITH_OTHERS / share and silence[name] >= since
        }
