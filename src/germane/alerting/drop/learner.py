"""Baselines learned from live scores: for a new fingerprint, and for routes that join later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from germane.alerting.drop.history import (
    DAY,
    learn_from_batch,
    learn_from_store,
    load_sampled_scores,
    score_query,
    to_batch,
)
from germane.alerting.drop.scope import add_routes
from germane.baseline import POOLED_ROUTE, Baseline
from germane.storage import BaselineKey, BaselineReason, BaselineVersion, TrackingStore

LEARNING_PERIOD: Final = timedelta(days=14)
"""Two of each weekday, so that a weekly rhythm does not look like a drop; a route with two scores a day has 28 by then.
A longer period would leave a new service unwatched during its first problems."""
MIN_SCORES_TO_JOIN: Final = 30
"""Scores of a new route that are needed to add it to a baseline."""


class BaselineVersions(Protocol):
    """Versions of baselines: those of a store, or of a backtest.

    With a ``holder``, methods write nothing if another process holds the leader lease.
    """

    def list_versions(self, *, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:
        """Return active and learning baselines; unchanged versions may be taken from ``known``."""

    def begin_learning(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        *,
        since: datetime,
        until: datetime,
        holder: tuple[str, str] | None = None,
    ) -> BaselineVersion | None:
        """Start to learn a baseline; the active one stays active meanwhile. Return None if one is being learned."""

    def extend_learning(self, version_id: int, until: datetime, *, holder: tuple[str, str] | None = None) -> bool:
        """Extend learning; return False if it has ended."""

    def cancel_learning(self, version_id: int, *, holder: tuple[str, str] | None = None) -> bool:
        """Cancel learning, because no scores arrive; return False if it has ended."""

    def activate_baseline(self, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
        """Finish learning and replace the active version; return False if learning has ended."""


class BaselineLearner:
    """Starts, extends and completes baselines.

    Args:
        store: Where the scores are.
        versions: The baselines; by default those of the store.
        holder: Name of the leader lease and its owner, required to start or extend a baseline; None in a backtest.
        learning_period: How long a baseline is learned.
    """

    def __init__(
        self,
        store: TrackingStore,
        versions: BaselineVersions | None = None,
        *,
        holder: tuple[str, str] | None,
        learning_period: timedelta = LEARNING_PERIOD,
    ) -> None:
        self._store = store
        self._versions = versions or store.baselines
        self._holder = holder
        self._learning_period = learning_period
        self._known: list[BaselineVersion] = []

    def load_versions(self) -> list[BaselineVersion]:
        """Return active and learning baselines."""
        self._known = self._versions.list_versions(known=self._known)
        return self._known

    def complete_due(self, now: datetime) -> list[BaselineVersion]:
        """Complete all baselines whose learning period is over; return active and learning baselines."""
        versions = self.load_versions()
        due = [version for version in versions if version.status == "learning" and version.until <= now]
        for version in due:
            active = next((one for one in versions if one.key == version.key and one.status == "active"), None)
            if active is not None and active.baseline is not None:
                self._add_new_routes(version, active.baseline, now)
                continue
            baseline = learn_from_store(self._store, version.key, version.since, version.until)
            if baseline.routes:
                self._activate(version, baseline)
            else:
                self._extend(version, now)
        return self.load_versions() if due else versions

    def start(self, key: BaselineKey, reason: BaselineReason, since: datetime) -> None:
        """Start to learn a baseline."""
        until = since + self._learning_period
        self._versions.begin_learning(key, reason, since=since, until=until, holder=self._holder)

    def _extend(self, version: BaselineVersion, now: datetime) -> None:
        """Learn for another day, or stop if no score came for a whole learning period; the next score restarts it."""
        recent = score_query(version.key, version.until - self._learning_period, version.until)
        if self._store.detectors.count_past_scores(recent):
            # At least a day, and past all days during which no process was running.
            until = version.until + max(1, (now - version.until) // DAY) * DAY
            self._versions.extend_learning(version.id, until, holder=self._holder)
        else:
            self._versions.cancel_learning(version.id, holder=self._holder)

    def _add_new_routes(self, version: BaselineVersion, active: Baseline, now: datetime) -> None:
        """Add routes that have enough scores to the active baseline. The numbers of other routes do not change."""
        arrivals = load_sampled_scores(self._store, version.key, version.since, version.until, active.sampling_rate)
        arrivals = [arrival for arrival in arrivals if is_new_route(active, arrival.route)]
        first_seen: dict[str, datetime] = {}
        for arrival in arrivals:
            first_seen.setdefault(arrival.route, arrival.arrived_at)
        counts = Counter(arrival.route for arrival in arrivals)
        # A day's grace: routes of one launch join together although their first scores came at different times.
        latest = version.until - self._learning_period + DAY
        ready = {route for route, at in first_seen.items() if at <= latest and counts[route] >= MIN_SCORES_TO_JOIN}
        if not ready:
            self._extend(version, now)
            return
        batch = to_batch([arrival for arrival in arrivals if arrival.route in ready])
        newcomers = learn_from_batch(version.key, batch, version.since, version.until, active.sampling_rate)
        self._activate(version, add_routes(active, newcomers))
        rest = [arrival for arrival in arrivals if arrival.route not in ready]
        if rest:
            self.start(version.key, "route_joined", rest[0].arrived_at)

    def _activate(self, version: BaselineVersion, baseline: Baseline) -> None:
        release = self._store.detectors.most_common_release(score_query(version.key, version.since, version.until))
        # Without the leader lease: reading two busy weeks may take longer than the lease lasts. If two processes
        # complete the same baseline, the first one counts.
        self._versions.activate_baseline(version.id, baseline, release)


def is_new_route(baseline: Baseline, route: str) -> bool:
    """Return whether a route is not watched yet and may join the baseline."""
    watched = route in baseline.routes or (POOLED_ROUTE in baseline.routes and route in baseline.pooled)
    return not watched and route != POOLED_ROUTE
