"""Baselines that are learned from live scores or set by people.

A baseline is learned for each new fingerprint, and for routes that join later. People can accept a level as the new
baseline, or import a baseline from stored scores or from a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import hypot, log, sqrt
from typing import Final, Protocol

import numpy as np

from germane import sanitize
from germane.alerting.detector.score_batch import ScoreBatch, sampling_rate
from germane.alerting.drop.carry_over import carry_over, load_committed_shift
from germane.alerting.drop.new_routes import excluded_until
from germane.alerting.drop.scope import (
    DAY,
    add_routes,
    first_arrival,
    is_new_route,
    learn_from_batch,
    learn_from_store,
    load_sampled_scores,
    score_query,
    to_batch,
    with_routes,
)
from germane.baseline import Baseline
from germane.errors import UsageError
from germane.storage import (
    BaselineKey,
    BaselineReason,
    BaselineVersion,
    DetectorScore,
    DetectorState,
    TrackingStore,
)

LEARNING_PERIOD: Final = timedelta(days=14)
"""Default length of the learning period. It covers each weekday twice, so a weekly pattern does not look like a drop,
and a route with two scores per day collects 28 scores. With a longer period, a new service would not be watched when
its first problems occur."""
PROVISIONAL_SPAN: Final = DAY
"""Minimum length of the period that a provisional baseline is learned from. It covers all hours of a day."""
MIN_PROVISIONAL_SCORES: Final = 200
"""Minimum number of scores that a provisional baseline requires."""
PROVISIONAL_WANDER: Final = 0.03
"""Minimum wander in a provisional baseline. It is needed because a single day does not show day-to-day differences.
Drops smaller than about four times this value are not detected until learning is complete. benchmarks/early.py
simulates the false alerts."""
_PROVISIONAL_CHECKS: Final = timedelta(minutes=10)
"""Minimum time between two counts of the scores of a stream whose baseline is being learned."""
MIN_SCORES_TO_JOIN: Final = 30
"""Minimum number of scores that a new route needs to join a baseline."""
MIN_BASELINE_SPAN: Final = timedelta(days=3)
"""Minimum length of the period that a baseline is learned from. Shorter periods do not show day-to-day differences."""
ASSUMED_WANDER: Final = 0.01
"""Day-to-day wander of a steady service, which is assumed for scores without timestamps."""
TRAFFIC_FACTOR: Final = 3.0
"""Minimum factor by which traffic must grow, in each of two weeks, for a baseline to be learned again at once."""
MAX_WINDOW: Final = timedelta(days=56)
"""Maximum length of the period that a baseline is learned from."""
MAX_LEVEL_CHANGE: Final = 0.02
"""Maximum change of a service's mean since its baseline at which the baseline is learned again, so that neither a small
drop nor a temporary improvement becomes the baseline. A single route may change by ``MAX_ROUTE_CHANGE``."""
MAX_ROUTE_CHANGE: Final = 0.05
LEVEL_ERRORS: Final = 1.5
"""Standard errors of the baseline's level by which it may change in addition. Otherwise, a baseline from two unusual
weeks would never be corrected."""
MAX_EVIDENCE: Final = 0.5
"""Maximum share of the evidence that makes the detector fire at which a baseline is learned again."""
_CHECKS: Final = timedelta(days=1)
"""Minimum time between two checks of whether to learn a baseline again."""


class BaselineVersions(Protocol):
    """Reads and writes baseline versions. Implemented by stores and backtests.

    Methods that take a ``holder`` write nothing if another process holds the leader lease.
    """

    def list_versions(self, *, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:
        """Return the active and learning versions. Unchanged versions may be taken from ``known``."""

    def begin_learning(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        *,
        since: datetime,
        until: datetime,
        holder: tuple[str, str] | None = None,
    ) -> BaselineVersion | None:
        """Start learning a baseline. The active version stays active. Return None if one is already being learned."""

    def extend_learning(self, version_id: int, until: datetime, *, holder: tuple[str, str] | None = None) -> bool:
        """Extend learning until a given time. Return False if learning has already ended."""

    def cancel_learning(self, version_id: int, *, holder: tuple[str, str] | None = None) -> bool:
        """Cancel learning because no scores are arriving. Return False if learning has already ended."""

    def activate_provisional(
        self,
        learning: BaselineVersion,
        found: Baseline,
        release: tuple[str | None, str | None],
        *,
        holder: tuple[str, str] | None = None,
    ) -> BaselineVersion | None:
        """Activate a provisional baseline, and continue learning as the returned version."""

    def activate_baseline(self, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
        """Finish learning and replace the active version. Return False if learning has already ended."""

    def replace_baseline(
        self,
        key: BaselineKey,
        reason: BaselineReason,
        found: Baseline,
        release: tuple[str | None, str | None],
        *,
        replaces: int | None = None,
    ) -> BaselineVersion | None:
        """Store and activate a baseline. Return None if ``replaces`` is no longer the active version."""


class BaselineLearner:
    """Starts, extends and completes the learning of baselines.

    Args:
        store: The store that contains the scores.
        versions: The baselines. Defaults to the store's.
        holder: Name of the leader lease and its owner, required to start or extend learning; None in a backtest.
        learning_period: Length of the learning period.
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
        self._counted: dict[int, datetime] = {}
        """Time at which the scores of a version's stream were last counted, by version id."""

    def load_versions(self) -> list[BaselineVersion]:
        """Return the active and learning versions."""
        self._known = self._versions.list_versions(known=self._known)
        return self._known

    def complete_due(self, now: datetime, states: Sequence[DetectorState] = ()) -> list[BaselineVersion]:
        """Complete baselines at the end of their learning period, and start provisional ones. Return all versions."""
        versions = self.load_versions()
        active = {version.key: version for version in versions if version.status == "active"}
        learning = [version for version in versions if version.status == "learning"]
        firing_ids, improved_ids = _firing_baselines(states, "detector"), _firing_baselines(states, "improvement")
        # Do not relearn while a new route is being learned: the route joins first.
        settled = active.keys() - {version.key for version in learning}
        has_changed = False
        for version in active.values():
            if version.key in settled and version.id not in firing_ids | improved_ids:
                has_changed |= self._keep_learning(version, _evidence_for(version, states), now)
        for version in learning:
            current = active.get(version.key)
            if version.until > now:
                is_open = current is None or current.is_provisional
                has_changed |= (is_open and self._carry_over(version, active.values())) or (
                    current is None and self._start_provisional(version, now)
                )
            else:
                is_firing = current is not None and current.id in firing_ids
                self._complete(version, current, now, states, is_firing=is_firing)
                has_changed = True
        return self.load_versions() if has_changed else versions

    def _complete(
        self,
        version: BaselineVersion,
        current: BaselineVersion | None,
        now: datetime,
        states: Sequence[DetectorState],
        *,
        is_firing: bool,
    ) -> None:
        """Complete a baseline whose learning period is over, or extend it."""
        if current is not None and current.baseline is not None and not current.is_provisional:
            # A level that is bad, or worse than that of the routes that vanished, must not become a route's normal
            # level unless a person accepts it.
            names = (version.key.service, version.key.scorer)
            watching = [progress for progress in states if (progress.service, progress.scorer) == names]
            times = sorted((at, route) for progress in watching for route, at in excluded_until(progress).items())
            bad = {route: at for at, route in times}
            self._add_new_routes(version, current.baseline, now, excluded=bad)
            return
        # While a drop fires against the provisional baseline, the dropped level must not become the baseline.
        baseline = learn_from_store(self._store, version.key, version.since, version.until)
        if baseline.routes and not is_firing:
            self._activate(version, baseline)
        else:  # also if there are too few scores
            self._extend(version, now)

    def _carry_over(self, version: BaselineVersion, active: Iterable[BaselineVersion]) -> bool:
        """Activate the last judge's baseline, if any, for a new judge, once both have scored the anchors."""
        stream = (version.key.service, version.key.scorer, version.key.scope)
        earlier = [
            other
            for other in active
            if (other.key.service, other.key.scorer, other.key.scope) == stream and other.key != version.key
        ]
        last = max(earlier, key=lambda other: other.created_at, default=None)
        # A backtest reads the anchors of today.
        if last is None or last.baseline is None or self._holder is None:
            return False
        shift = load_committed_shift(self._store, version.key.scorer, last.key.fingerprint, version.key.fingerprint)
        if shift is None:
            return False
        found = carry_over(last.baseline, version.key.fingerprint, shift, version.since)
        release = (last.model, last.prompt_version)
        self._versions.replace_baseline(version.key, "carried_over", found, release)
        return True

    def _start_provisional(self, version: BaselineVersion, now: datetime) -> bool:
        """Learn and activate a provisional baseline if there are enough scores. Return whether there are enough."""
        is_early = now - version.since < PROVISIONAL_SPAN
        if is_early or now - self._counted.get(version.id, version.since) < _PROVISIONAL_CHECKS:
            return False
        self._counted[version.id] = now
        for until in (version.since + PROVISIONAL_SPAN, now):
            query = score_query(version.key, version.since, until)
            if self._store.detectors.count_past_scores(query) < MIN_PROVISIONAL_SCORES:
                continue
            baseline = learn_from_store(self._store, version.key, version.since, until)
            if baseline.n >= MIN_PROVISIONAL_SCORES:
                release = self._store.detectors.most_common_release(query)
                self._versions.activate_provisional(version, widen(baseline), release, holder=self._holder)
                return True
        return False

    def _keep_learning(self, version: BaselineVersion, evidence: float, now: datetime) -> bool:
        """Learn an active baseline again from its old and all newer scores, if they are twice as many days or if there
        is more traffic.

        Two weeks show a level and its wander only roughly. The old scores keep their weight, so a slow decline moves
        the baseline only a little. With more traffic, the detector processes more scores, so it detects drops sooner.
        Return whether the baseline has been replaced, by this process or by another one at the same time.
        """
        active, period = version.baseline, self._learning_period
        if active is None or version.reason in ("provisional", "imported") or evidence > MAX_EVIDENCE:
            return False
        # The window ends a whole number of days after the baseline. The result is therefore the same if another process
        # repeats the check after this one has been killed.
        until = active.until + (now - active.until) // _CHECKS * _CHECKS
        if until - version.until < period or self._counted.get(version.id) == until:
            return False
        self._counted[version.id] = until
        days = active.until - active.since
        is_older = days < MAX_WINDOW and until - active.since >= min(2 * days, MAX_WINDOW)
        has_grown = self._has_grown(version, active, until)
        if not (is_older or has_grown):
            return False
        recent = self._store.detectors.count_past_scores(score_query(version.key, until - period, until))
        rate = sampling_rate(recent / (period / DAY))
        loaded = load_sampled_scores(self._store, version.key, active.since, until, rate)
        arrivals = [arrival for arrival in loaded if not is_new_route(active, arrival.route)]  # those join on their own
        new = sum(arrival.arrived_at >= active.until for arrival in arrivals)
        per_day = sum(arrival.arrived_at >= until - period for arrival in arrivals) / (period / DAY)
        # Only a few questions per user per hour count, so that a burst from one user does not look like traffic.
        has_grown &= per_day / rate >= TRAFFIC_FACTOR * active.scores_per_day / active.sampling_rate
        if not new or not (is_older or has_grown):
            return False
        learned = learn_from_batch(version.key, to_batch(arrivals), active.since, until, rate)
        if not learned.routes or not is_same_level(active, learned, share=new / len(arrivals)):
            return False
        release = self._store.detectors.most_common_release(score_query(version.key, until - period, until))
        learned = (
            learned.with_traffic(per_day / learned.scores_per_day) if has_grown else _since_first(learned, arrivals)
        )
        found = add_routes(learned, active)
        # This is a single write without the leader lease, for the same reasons as in `_activate`: a killed process
        # leaves nothing behind, and if two processes do the same, the first one wins.
        reason: BaselineReason = "traffic_changed" if has_grown else "extended"
        self._versions.replace_baseline(version.key, reason, found, release, replaces=version.id)
        return True

    def _has_grown(self, version: BaselineVersion, active: Baseline, until: datetime) -> bool:
        """Return whether each half of the last learning period had more traffic than the baseline."""
        half = self._learning_period / 2
        expected = active.scores_per_day / active.sampling_rate * (half / DAY)
        return all(
            self._store.detectors.count_past_scores(score_query(version.key, end - half, end))
            >= TRAFFIC_FACTOR * expected
            for end in (until - half, until)
        )

    def start(self, key: BaselineKey, reason: BaselineReason, since: datetime) -> None:
        """Start learning a baseline from the scores since a given time."""
        until = since + self._learning_period
        self._versions.begin_learning(key, reason, since=since, until=until, holder=self._holder)

    def _extend(self, version: BaselineVersion, now: datetime) -> None:
        """Extend learning by at least a day, or cancel it if no score arrived for a whole learning period."""
        recent = score_query(version.key, version.until - self._learning_period, version.until)
        if self._store.detectors.count_past_scores(recent):
            # Extend by at least a day, or by the number of days on which no process was running.
            until = version.until + max(1, (now - version.until) // DAY) * DAY
            self._versions.extend_learning(version.id, until, holder=self._holder)
        else:
            self._versions.cancel_learning(version.id, holder=self._holder)

    def _add_new_routes(
        self, version: BaselineVersion, active: Baseline, now: datetime, *, excluded: Mapping[str, float]
    ) -> None:
        """Add new routes with enough scores to the active baseline. The values of existing routes do not change."""
        arrivals = load_sampled_scores(self._store, version.key, version.since, version.until, active.sampling_rate)
        arrivals = [
            arrival
            for arrival in arrivals
            if is_new_route(active, arrival.route) and arrival.answered_at.timestamp() >= excluded.get(arrival.route, 0)
        ]
        first_seen: dict[str, datetime] = {}
        for arrival in arrivals:
            first_seen.setdefault(arrival.route, arrival.arrived_at)
        counts = Counter(arrival.route for arrival in arrivals)
        # Routes that were launched together join together, even if their first scores arrived up to a day apart.
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
        # This does not require the leader lease, because reading two busy weeks may take longer than the lease lasts.
        # If two processes complete the same baseline, the first one wins.
        self._versions.activate_baseline(version.id, baseline, release)


def _firing_baselines(states: Iterable[DetectorState], detector: str) -> set[int]:
    """Return the ids of the baselines against which a detector fires."""
    return {progress.baseline_id for progress in states if (progress.state.get(detector) or {}).get("firing")}


def _since_first(baseline: Baseline, arrivals: Iterable[DetectorScore]) -> Baseline:
    """Return a baseline in which the traffic of each route is that since its first score."""
    first: dict[str, datetime] = {}
    for arrival in arrivals:
        first.setdefault(arrival.route, arrival.arrived_at)
    factors = {
        name: (baseline.until - baseline.since) / max(DAY, baseline.until - first.get(name, baseline.since))
        for name in baseline.routes
    }
    routes = {
        name: replace(
            route,
            scores_per_day=factors[name] * route.scores_per_day,
            committed_per_day=factors[name] * route.committed_per_day,
        )
        for name, route in baseline.routes.items()
    }
    return with_routes(baseline, routes)


def _evidence_for(version: BaselineVersion, states: Iterable[DetectorState]) -> float:
    """Return the most evidence for a drop below a baseline, as a share of what makes the default rule fire."""
    found = [each.log_evidence for each in states if each.baseline_id == version.id and each.log_evidence is not None]
    per_day = version.baseline.scores_per_day if version.baseline else 0.0
    return max(found, default=0.0) / max(1.0, log(365 * per_day)) if per_day else 0.0


def is_same_level(before: Baseline, now: Baseline, *, share: float = 1.0) -> bool:
    """Return whether neither a service nor any of its routes has noticeably changed its level between two baselines.

    ``share`` is the share of newer scores in the second baseline.
    """
    routes = [(before.routes[name], now.routes[name]) for name in before.routes.keys() & now.routes.keys()]
    n = max(1, sum(old.n for old, _ in routes))
    fall = sum(old.n * (old.mean - new.mean) for old, new in routes) / n
    wander = sum(old.n * old.wander for old, _ in routes) / n

    def is_same(change: float, most: float, n: int, deviation: float, wander: float) -> bool:
        error = hypot(deviation / sqrt(n), wander * before.wander_in_mean)
        return abs(change) <= share * (most + LEVEL_ERRORS * error)

    return is_same(fall, MAX_LEVEL_CHANGE, n, before.deviation, wander) and all(
        is_same(old.mean - new.mean, MAX_ROUTE_CHANGE, old.n, old.deviation, old.wander) for old, new in routes
    )


def widen(baseline: Baseline) -> Baseline:
    """Return a baseline with every wander raised to at least ``PROVISIONAL_WANDER``."""
    routes = {
        name: replace(
            route,
            committed_wander=max(PROVISIONAL_WANDER, route.committed_wander),
            zero_wander=max(PROVISIONAL_WANDER, route.zero_wander),
        )
        for name, route in baseline.routes.items()
    }
    return replace(baseline, routes=routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineExample:
    """A score that was computed outside germane."""

    route: str
    value: float
    zero: bool
    """Whether the answer is noncommittal."""
    at: datetime | None = None
    """Time of the answer; None if unknown."""


def firing_onset(store: TrackingStore, version: BaselineVersion) -> datetime | None:
    """Return the estimated start of the earliest current drop or improvement against a baseline, or None."""
    states = [
        state
        for progress in store.detectors.list_states()
        if progress.baseline_id == version.id
        for state in (
            progress.state.get("detector"),
            (progress.state.get("guard") or {}).get("detector") or progress.state.get("improvement"),
        )
    ]
    onsets = [state["firing"]["onset"] for state in states if state and state["firing"]]
    return datetime.fromtimestamp(min(onsets), UTC) if onsets else None


def accept_baseline(
    store: TrackingStore, version: BaselineVersion, since: datetime, now: datetime, *, by: str | None = None
) -> BaselineVersion | None:
    """Accept the scores since a given time as the new baseline, which ends a firing drop.

    If the scores span less than three days, or if there are too few, a new baseline is learned, starting at that time.
    Until learning is complete, only large drops are detected, starting after one day and 200 scores.

    Returns:
        The new version, or None if another process changed the baseline first.
    """
    since = first_arrival(store, version.key, since, now)
    if now - since >= MIN_BASELINE_SPAN:
        baseline = learn_from_store(store, version.key, since, now)
        if baseline.routes:
            release = store.detectors.most_common_release(score_query(version.key, since, now))
            return store.baselines.replace_baseline(
                version.key, "accepted", baseline, release, replaces=version.id, by=by
            )
    until = max(since + LEARNING_PERIOD, now + DAY)
    return store.baselines.restart_learning(
        version.key, "accepted", since=since, until=until, replaces=version.id, by=by
    )


def accept_new_route(
    store: TrackingStore,
    version: BaselineVersion,
    route: str,
    since: datetime,
    now: datetime,
    *,
    by: str | None = None,
) -> BaselineVersion | None:
    """Add a route with at least 30 scores at its current, bad level. Return None if the baseline has changed."""
    active = version.baseline
    if active is None:
        return None
    scores = load_sampled_scores(store, version.key, since, now, active.sampling_rate)
    scores = [score for score in scores if score.route == route]
    if len(scores) < MIN_SCORES_TO_JOIN:
        raise UsageError(
            f"route {sanitize.line(route, 100)} has {sanitize.count_noun(len(scores), 'score')} since "
            f"{since:%Y-%m-%d %H:%M} UTC; {MIN_SCORES_TO_JOIN} are needed to add it to the baseline"
        )
    newcomer = learn_from_batch(version.key, to_batch(scores), since, now, active.sampling_rate)
    release = (version.model, version.prompt_version)
    return store.baselines.replace_baseline(
        version.key, "accepted", add_routes(active, newcomer), release, replaces=version.id, by=by
    )


def import_baseline_from_history(
    store: TrackingStore, key: BaselineKey, since: datetime, now: datetime
) -> BaselineVersion | None:
    """Create a baseline from stored scores instead of learning it from new scores.

    Raises:
        UsageError: There are too few scores, or they span less than three days.
    """
    since = first_arrival(store, key, since, now)
    if now - since < MIN_BASELINE_SPAN:
        count = store.detectors.count_past_scores(score_query(key, since, now))
        hours = (now - since) / timedelta(hours=1)
        raise UsageError(
            f"{count} scores over {hours:.1f} h are too few for a baseline of {key.scorer} for {key.service}: "
            "one route needs at least 30 scores over 3 days, so that day-to-day differences can be measured; "
            "choose an earlier start, wait, or import a file"
        )
    baseline = learn_from_store(store, key, since, now)
    _require_routes(baseline)
    return store.baselines.replace_baseline(
        key, "imported", baseline, store.detectors.most_common_release(score_query(key, since, now))
    )


def import_baseline_from_examples(
    store: TrackingStore, key: BaselineKey, examples: Sequence[BaselineExample], *, per_day: float | None, now: datetime
) -> BaselineVersion | None:
    """Create a baseline from scores that were computed outside germane.

    Args:
        store: The store to which the baseline is written.
        key: The baseline's key.
        examples: The scores.
        per_day: The service's scores per day; required if the examples have no timestamps.
        now: Current time in UTC.

    Raises:
        UsageError: There are too few examples, or their rate is unknown.
    """
    baseline = learn_from_examples(key, examples, per_day=per_day, now=now)
    _require_routes(baseline)
    return store.baselines.replace_baseline(key, "imported", baseline, (None, None))


def learn_from_examples(
    key: BaselineKey, examples: Sequence[BaselineExample], *, per_day: float | None, now: datetime
) -> Baseline:
    """Learn a baseline from scores that were computed outside germane.

    Raises:
        UsageError: Only some examples have timestamps, their timestamps span less than three days, or no example has a
            timestamp and ``per_day`` is missing.
    """
    dates = [example.at for example in examples if example.at is not None]
    if dates:
        if len(dates) < len(examples):
            raise UsageError(f"{len(examples) - len(dates)} of {len(examples)} rows have no timestamp (at)")
        since, until = min(dates), max(dates) + timedelta(seconds=1)
        times = [date.timestamp() for date in dates]
        if until - since < MIN_BASELINE_SPAN:
            raise UsageError("the rows span less than three days: omit their timestamps and pass the scores per day")
    elif per_day is None:
        raise UsageError("the rows have no timestamps (at): pass the number of scores per day")
    else:
        since, until = now - timedelta(days=len(examples) / per_day), now
        times = np.linspace(since.timestamp(), now.timestamp(), len(examples), endpoint=False).tolist()
    batch = ScoreBatch(
        [example.route for example in examples],
        np.array([example.value for example in examples], dtype=np.float64),
        np.array([example.zero for example in examples], dtype=np.bool_),
        np.array(times, dtype=np.float64),
    )
    rate = sampling_rate(len(examples) / ((until - since) / DAY))
    baseline = learn_from_batch(key, batch, since, until, rate)
    if not dates:  # evenly spaced examples do not show how the level wanders
        routes = {
            name: replace(route, committed_wander=ASSUMED_WANDER, zero_wander=ASSUMED_WANDER)
            for name, route in baseline.routes.items()
        }
        baseline = replace(baseline, routes=routes)
    # All examples count for the baseline, but the detector will process only a sample.
    return baseline.with_traffic(rate)


def _require_routes(baseline: Baseline) -> None:
    if not baseline.routes:
        raise UsageError(f"{baseline.n} scores are too few for a baseline: one route needs at least 30")
