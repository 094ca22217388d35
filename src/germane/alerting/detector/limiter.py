"""Limits on the scores that a detector processes: the baseline's rate of scores, and a few scores per user per hour.

A detector's evidence grows with the number of scores, and all scores from one day share that day's level. The detector
is calibrated for both effects at the baseline's traffic. If traffic grows, scores are downsampled to the baseline's
rate. If one user asks two hundred questions in a row, the scores are not independent, so only a few of them count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from germane.alerting.detector.score_batch import BoolArray, FloatArray
from germane.baseline import POOLED_ROUTE, Baseline

MAX_SCORES_PER_USER: Final = 3
"""Maximum number of scores per user per hour that are processed. benchmarks/families.py simulates bursts with this
limit."""
MAX_GROWTH: Final = 1.3
"""Maximum traffic on a route, relative to the baseline's daily average, before its scores are downsampled. This factor
is above 1 because weekdays have more traffic than the average day."""
HOUR: Final = 3600.0
DAY: Final = 86_400.0
_USER_HASH: Final = blake2b(digest_size=4, key=b"germane.detector.user")


class UserLimit:
    """Selects at most three scores per user and clock hour. All scores from unknown users are selected.

    Args:
        state: A result of :meth:`state` to continue from.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._hour = int(state["hour"]) if state else 0
        self._counts: dict[str, int] = dict(state["counts"]) if state else {}

    def admits(self, user: str | None, at: float) -> bool:
        """Count a score, and return whether to process it.

        Args:
            user: The user or session; None if neither is known.
            at: Arrival time of the score, as a Unix timestamp in seconds.
        """
        if user is None:
            return True
        hour = int(at // HOUR)
        if hour != self._hour:
            self._hour, self._counts = hour, {}
        keyed = _USER_HASH.copy()
        keyed.update(user.encode(errors="replace"))
        key = keyed.hexdigest()
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        return count < MAX_SCORES_PER_USER

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data. It contains hashes of the current hour's users."""
        return {"hour": self._hour, "counts": self._counts}


class StreamLimiter:
    """Selects the scores that a detector processes.

    A route's traffic is the number of its scores, with weights that decay exponentially over a day.

    Args:
        baseline: The detector's baseline.
        state: A result of :meth:`state` to continue from.
    """

    def __init__(self, baseline: Baseline, state: Mapping[str, Any] | None = None) -> None:
        self._users = UserLimit(state["users"] if state else None)
        self._limits = {name: MAX_GROWTH * route.scores_per_day for name, route in baseline.routes.items()}
        self._pooled = baseline.pooled
        self._traffic = {name: [route.scores_per_day, 0.0] for name, route in baseline.routes.items()}
        """Scores per day and the time of the last score, by route."""
        if state:
            self._traffic |= {name: pair for name, pair in state["traffic"].items() if name in self._limits}

    def select(
        self, routes: Sequence[str], users: Sequence[str | None], draws: FloatArray, times: FloatArray
    ) -> BoolArray:
        """Return a mask of the scores to process. Scores from routes that are not in the baseline are not selected.

        Args:
            routes: Route of each score, in order of arrival.
            users: User or session of each score; None if neither is known.
            draws: A random number in [0, 1) for each score, independent of the score's value.
            times: Arrival times as Unix timestamps in seconds.
        """
        selected = np.zeros(len(routes), dtype=np.bool_)
        for index, (route, user, draw, at) in enumerate(
            zip(routes, users, draws.tolist(), times.tolist(), strict=True)
        ):
            name = POOLED_ROUTE if route in self._pooled else route
            limit = self._limits.get(name)
            if limit is None or not self._users.admits(user, at):
                continue
            pair = self._traffic[name]
            traffic, last = pair
            traffic = traffic * math.exp(-max(0.0, at - last) / DAY) + 1 if last else traffic
            self._traffic[name] = [traffic, max(at, last)]
            selected[index] = draw * traffic < limit
        return selected

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {"users": self._users.state(), "traffic": self._traffic}
