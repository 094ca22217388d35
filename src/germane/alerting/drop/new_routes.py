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
from math import hypot, inf, sqrt
from statistics import fmean, pvariance
from typing import Any, Final, NamedTuple

from germane.alerting.detector.limiter import DAY, UserLimit
from germane.alerting.drop.scope import is_new_route
from germane.baseline import CORRELATED_DAYS, POOLED_ROUTE, Baseline
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
Once a route has vanished, 3 expected scores are enough for others that the new routes can have replaced, too."""
_TOGETHER: Final = 3 * DAY
_REPLACED: Final = 0.5
"""New routes have replaced the routes that vanished if half of their traffic moved to new routes within three days. Old
names may be in use together with new ones before, and by a few clients afterwards."""
_CHECKED_SCORES: Final = 16
"""Number of scores between two checks for routes that were replaced."""
_GONE: Final = 8 * DAY
"""Bad routes have vanished if they had no answer for a week."""
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


def excluded_until(progress: DetectorState) -> dict[str, float]:
    """Return, by new route, the time of the scores that must not join the baseline, because they were bad, or worse
    than those of the routes that vanished.
    """
    newcomers = progress.state.get("newcomers") or {}
    excluded = {route for level in bad_levels(progress).values() for route in level["routes"]}
    excluded |= set(newcomers["days"]) if newcomers.get("is_worse") else set()
    return {**newcomers.get("ended", {}), **dict.fromkeys(excluded, inf)}


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
        self._new_count: int = state.get("new_count", 0)
        start: dict[str, list[float]] = {}
        if baseline is not None:
            seen = [self._count, self._new_count, baseline.until.timestamp()]
            start = dict.fromkeys(baseline.routes, seen)
        self._seen: dict[str, list[float]] = start | state.get("last_seen", {})
        """For each route of the baseline: its last score, as numbers of scores in all and on new routes, and a time."""
        self._started: list[float] = state.get("started_at") or []
        """The first score on a route that is still new, in the same way."""
        self._replaced: dict[str, list[float]] = state.get("replaced", {})
        """For each route that was replaced: its last score, in the same way, and the number of its later scores."""
        self._ended: dict[str, float] = state.get("ended", {})
        """For each route whose bad level has ended: the time of the end."""
        self._users = UserLimit(state.get("users"))
        self._is_worse: bool = state.get("is_worse", False)
        if not any(self._is_new(route) for route in self._days):
            self._started, self._is_worse = [], False
        if not all(self._is_new(route) or route in watched for route in state.get("days", {})):
            self._replaced = {}  # what replaced them has joined the baseline

    @property
    def has_baseline(self) -> bool:
        """Whether there is a baseline whose routes are not judged."""
        return self._baseline is not None

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {
            "bad": {name: asdict(level) for name, level in sorted(self.bad.items())},
            "days": self._days,
            "last_seen": self._seen,
            "count": self._count,
            "new_count": self._new_count,
            "started_at": self._started,
            "replaced": self._replaced,
            "ended": self._ended,
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
            if self._count % _CHECKED_SCORES == 0:
                self._find_replaced()
        if self._days and scores:
            self._find_replaced()
            self._forget_old_days()
            self._end_recovered(scores[-1].answered_at.timestamp())
            self._judge()

    def have_replaced(self, routes: Collection[str], *, has_same_alert: bool) -> bool:
        """Return whether new routes have replaced all of some routes, and are as good or have the same alert."""
        windows = self._windows([*filter(self._is_new, self._days)], ASSUMED_WANDER)[1:]
        are_good = windows and not self.bad and windows[0].mean >= self._references()[0].mean - self._min_drop / 2
        is_told = has_same_alert and _ALL in self.bad
        return self._replaced.keys() >= set(routes) and bool(are_good or is_told)

    def _is_new(self, route: str) -> bool:
        # The pool among the new routes is not the one in the baseline.
        return self._baseline is None or route == POOLED_ROUTE or is_new_route(self._baseline, route)

    def _add(self, score: DetectorScore) -> None:
        at = score.answered_at.timestamp()
        is_watched = score.route in self._days
        is_new = self._baseline is None or is_new_route(self._baseline, score.route)
        self._count += 1
        if not is_new and self._baseline is not None:
            self._add_known(POOLED_ROUTE if score.route in self._baseline.pooled else score.route, at)
        if not (is_new or is_watched) or not self._users.admits(score.user, at):
            return
        if is_new and not self._started:
            self._started = [self._count - 1, self._new_count, at]
        self._new_count += is_new
        value = 0.0 if score.is_zero else min(1.0, max(0.0, score.value))
        route = score.route if is_watched or len(self._days) < MAX_ROUTES else POOLED_ROUTE
        day = self._days.setdefault(route, {}).setdefault(str(int(at // DAY)), [0, 0.0, 0.0, at])
        day[:] = [day[0] + 1, day[1] + value, day[2] + value**2, min(day[3], at)]

    def _add_known(self, route: str, at: float) -> None:
        if route in self._seen:
            self._seen[route] = [self._count, self._new_count, max(at, self._seen[route][2])]
        if since := self._replaced.get(route):
            since[3] += 1
            usual = self._shares().get(route, 0.0) * (self._count - since[0])
            if since[3] > max(_EXPECTED_SCORES, _REPLACED * usual):  # it is back
                del self._replaced[route]

    def _end(self, name: str, at: float) -> None:
        """End a bad level. Earlier scores on its routes do not count any more."""
        for route in self.bad.pop(name).routes:
            self._ended[route] = at
            self._days[route] = {day: sums for day, sums in self._days.get(route, {}).items() if sums[3] >= at}
        self._days = {route: days for route, days in self._days.items() if days}

    def _forget_old_days(self) -> None:
        newest = max(int(day) for days in self._days.values() for day in days)
        for route, days in self._days.items():
            self._days[route] = {day: sums for day, sums in days.items() if int(day) > newest - WINDOWS[-1]}
        self._days = {route: days for route, days in self._days.items() if days}

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
        told = {route for bad in self.bad.values() if not bad.fell for route in bad.routes}
        rest = [route for route in new if route not in told]
        name = rest[0] if len(rest) == 1 and self._baseline is not None else _ALL
        self._find(name, rest, together, self._windows(rest, together.wander, together.deviation))
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

    def _end_recovered(self, now: float) -> None:
        """End bad levels whose scores have risen, or whose routes have vanished. The reference never changes."""
        for name, bad in list(self.bad.items()):
            newest = max((int(day) for route in bad.routes for day in self._days.get(route, ())), default=0)
            is_gone = now - newest * DAY > _GONE
            if not bad.fell and (is_gone or name == _ALL):
                told = {route for level in self.bad.values() for route in level.routes}
                later = {
                    route for route, days in self._days.items() if min(each[3] for each in days.values()) > bad.onset
                }
                bad.routes += sorted(route for route in later - told if self._is_new(route))
                is_gone = is_gone and not later - told
            for window in self._windows(bad.routes, ASSUMED_WANDER)[1:]:
                has_risen = window.mean - 2 * window.error > (bad.level + bad.reference) / 2
                if has_risen and window.mean >= bad.reference - self._min_drop / 2:
                    self._end(name, window.since)
                    break
            else:
                if is_gone:
                    self._end(name, now)

    def _references(self) -> tuple[Reference, Reference]:
        """Return the levels that all new routes together and that each of them is compared with."""
        low = low_level(self._baseline)
        chosen = Reference(low, MIN_DEVIATION, ASSUMED_WANDER, float("inf"), ())
        if not self._replaced or self._baseline is None:
            return chosen, chosen
        shares, routes = self._shares(), self._baseline.routes
        vanished = {name: (shares[name], routes[name]) for name in self._replaced if name in shares}
        if not vanished:
            return chosen, chosen
        total = sum(share for share, _ in vanished.values())
        mean = sum(share * route.mean for share, route in vanished.values()) / total
        variance = sum(
            share * (route.deviation**2 + (route.mean - mean) ** 2) for share, route in vanished.values()
        ) / total  # fmt: skip
        wander = sum(share * route.wander for share, route in vanished.values()) / total
        new = self._new_count - min(self._replaced[name][1] for name in vanished)
        expected = sum(share * (self._count - self._replaced[name][0]) for name, (share, _) in vanished.items())
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

    def _shares(self) -> dict[str, float]:
        """Return the shares of the routes in the baseline, except those that vanished before there were new ones."""
        if self._baseline is None or not self._started:
            return {}
        earliest = self._started[2] - _TOGETHER
        names = {name for name in self._seen if name in self._replaced or self._seen[name][2] >= earliest}
        per_day = {name: each.scores_per_day for name, each in self._baseline.routes.items() if name in names}
        return {name: number / sum(per_day.values()) for name, number in per_day.items() if number}

    def _find_replaced(self) -> None:
        """Remember the routes that have vanished when the traffic of new routes grew accordingly."""
        if self._baseline is None or not self._started:
            return
        routes = self._baseline.routes
        shares = {name: share for name, share in self._shares().items() if name not in self._replaced}
        most = _TOGETHER / DAY * sum(routes[name].scores_per_day for name in shares)
        silence = {name: self._count - self._seen[name][0] for name in shares}
        least = {name: max(_GAPS * routes[name].longest_gap, _EXPECTED_SCORES / shares[name]) for name in shares}
        recent = {name for name in shares if silence[name] <= max(most, 2 * least[name])}
        if not (silent := [name for name in recent if silence[name] > least[name]]):
            return
        first = max(silent, key=lambda name: (shares[name], name))
        gone = {name for name in recent if silence[name] > _EXPECTED_WITH_OTHERS / shares[name]}
        count, new, _ = self._seen[first]
        before = max(0.0, new - self._started[1]) / max(count - self._started[0], least[first])
        now = (self._new_count - new) / silence[first]
        for names in (gone, {first}):
            if now >= before + _REPLACED * (1 - before) * sum(shares[name] for name in names):
                self._replaced |= {name: [*self._seen[name], 0] for name in names}
                break
