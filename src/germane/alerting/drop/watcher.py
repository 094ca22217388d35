"""The drop rule over a database: each evaluation processes the new scores and returns the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from germane.alert import Alert, Cause, Severity, alert_key
from germane.alerting.detector import tolerance
from germane.alerting.drop.baselines import LEARNING_PERIOD, BaselineLearner, BaselineVersions, is_new_route
from germane.alerting.drop.scope import attribute_scope, load_sampled_scores, matches_scope, score_query
from germane.alerting.drop.score_levels import (
    TRAILING_WINDOW,
    baseline_level,
    contributor_change,
    score_level,
    trailing_drop,
)
from germane.alerting.drop.session import DetectorSession, FiringDrop, rule_parameters_hash
from germane.alerting.rule_result import RuleResult
from germane.settings import Drop
from germane.storage import BaselineKey, BaselineReason, BaselineVersion, DetectorScore, DetectorState, TrackingStore

BATCH: Final = 2000
"""Maximum number of scores that one evaluation processes, in one transaction."""
REFRESH_INTERVAL: Final = timedelta(minutes=10)
"""Time between updates to a firing alert's values while scores arrive."""
_CLOCK_MARGIN: Final = timedelta(seconds=1)
Names = tuple[str, str]
"""Service and scorer."""
AlertsByKey = Mapping[str, Alert]
"""Open alerts by key."""


class DetectorInputs(Protocol):
    """New scores and the stored states of detectors; implemented by stores and backtests."""

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:
        """Return up to ``limit`` scores that no detector has processed, in order of arrival."""

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:
        """Return the states of all detectors; unchanged states may be taken from ``known``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropEvaluation:
    """The results of one evaluation, which take effect once states and processed scores are written together."""

    results: Sequence[RuleResult] = ()
    detector_states: Sequence[DetectorState] = ()
    """Changed detector states."""
    processed_score_ids: Sequence[int] = ()
    more: bool = False
    """Whether more scores are waiting."""


class DropWatcher:
    """Evaluates drop rules. All state is in the database; memory only caches what can be read again.

    Args:
        store: Store that holds the scores.
        rules: The drop rules.
        holder: Name of the leader lease and its owner; None in a backtest.
        clock: Current time, UTC.
        learning_period: Length of a baseline's learning period.
        batch: Maximum number of scores per evaluation.
        inputs: New scores and detector states; by default the store's.
        versions: Baselines; by default the store's.
    """

    def __init__(
        self,
        store: TrackingStore,
        rules: Sequence[Drop],
        *,
        holder: tuple[str, str] | None,
        clock: Callable[[], datetime],
        learning_period: timedelta = LEARNING_PERIOD,
        batch: int = BATCH,
        inputs: DetectorInputs | None = None,
        versions: BaselineVersions | None = None,
    ) -> None:
        self._store = store
        self._inputs = inputs or store.detectors
        self._rules = rules
        self._clock = clock
        self._batch = batch
        self._learner = BaselineLearner(store, versions, holder=holder, learning_period=learning_period)
        self._states: list[DetectorState] = []
        self._shown: dict[str, tuple[RuleResult, datetime]] = {}
        """Firing results with the time when they were computed, by alert key."""

    def reset(self) -> None:
        """Recompute all results next time, because the last ones were not written or another process evaluated."""
        self._shown.clear()

    def evaluate(self, open_alerts: AlertsByKey | None = None) -> DropEvaluation:
        """Process new scores; return the results.

        Args:
            open_alerts: Open alerts by key. A detector that fires without one was resolved by a person and starts over.
        """
        now = self._clock()
        self._states = self._inputs.list_states(self._states)
        firing_ids = {state.baseline_id for state in self._states if (state.state["detector"] or {}).get("firing")}
        versions = self._learner.complete_due(now, firing_ids)
        scoped = any(rule.attributes for rule in self._rules)
        arrivals = self._inputs.list_new_scores(self._batch, attributes=scoped)
        if self._start_learning(arrivals, versions):
            versions = self._learner.load_versions()
        sessions = self._run_sessions(arrivals, versions, open_alerts)
        results = [self._result(session, now, open_alerts or {}) for session in sessions]
        progress = [session.progress() for session in sessions]
        return DropEvaluation(
            results=[result for result in results if result],
            detector_states=[state for state in progress if state],
            processed_score_ids=[arrival.id for arrival in arrivals],
            more=len(arrivals) == self._batch,
        )

    def _start_learning(self, arrivals: Sequence[DetectorScore], versions: Sequence[BaselineVersion]) -> bool:
        """Start learning new fingerprints and routes; return whether there were any."""
        active = {version.key: version for version in versions if version.status == "active"}
        learning = {version.key for version in versions if version.status == "learning"}
        # Without the fingerprint, to recognize streams that have a baseline from another judge.
        known_streams = {(version.key.service, version.key.scorer, version.key.scope) for version in versions}
        started = False
        for rule in self._rules:
            scope = attribute_scope(rule.attributes)
            for arrival in arrivals:
                key = BaselineKey(arrival.service, arrival.scorer, arrival.fingerprint, scope)
                if key in learning or not _watches(rule, arrival):
                    continue
                version = active.get(key)
                if version is None:
                    stream = (key.service, key.scorer, key.scope)
                    reason: BaselineReason = "judge_changed" if stream in known_streams else "first"
                    self._learner.start(key, reason, arrival.arrived_at)
                elif version.baseline and not version.is_provisional and is_new_route(version.baseline, arrival.route):
                    self._learner.start(key, "route_joined", arrival.arrived_at)
                else:
                    continue
                learning.add(key)
                started = True
        return started

    def _run_sessions(
        self, arrivals: Sequence[DetectorScore], versions: Sequence[BaselineVersion], open_alerts: AlertsByKey | None
    ) -> list[DetectorSession]:
        """Run the detector of every rule, service and scorer that has new scores or whose result may have changed."""
        states = {(state.rule, state.service, state.scorer): state for state in self._states}
        active = {version.id for version in versions if version.status == "active"}
        by_names: dict[Names, list[DetectorScore]] = {}
        for arrival in arrivals:
            by_names.setdefault((arrival.service, arrival.scorer), []).append(arrival)
        sessions = []
        for rule in self._rules:
            stored = {(service, scorer) for name, service, scorer in states if name == rule.name}
            for names in sorted(stored | by_names.keys()):
                scores = [arrival for arrival in by_names.get(names, []) if _watches(rule, arrival)]
                progress = states.get((rule.name, *names))
                if rule.scorer not in {None, names[1]} or not (scores or progress):
                    continue
                key = alert_key(rule.name, {"service": names[0], "scorer": names[1]})
                fires = progress is not None and bool((progress.state["detector"] or {}).get("firing"))
                has_alert = open_alerts is None or key in open_alerts
                is_unchanged = (
                    progress is not None
                    and progress.parameters == rule_parameters_hash(rule)
                    and progress.baseline_id in active
                )
                if not scores and not has_alert and not fires and is_unchanged:
                    continue  # the detector would only repeat its last result
                session = DetectorSession(
                    rule,
                    names,
                    versions,
                    progress=progress,
                    fingerprint=scores[0].fingerprint if scores else "",
                    dismissed=fires and not has_alert,
                )
                session.process(scores)
                sessions.append(session)
        return sessions

    def _result(self, session: DetectorSession, now: datetime, open_alerts: AlertsByKey) -> RuleResult | None:
        result = RuleResult(
            rule=session.rule.name,
            type=session.rule.type,
            labels={"service": session.service, "scorer": session.scorer},
            state="good",
            pending=session.rule.pending,
            severity=session.rule.severity,
            fingerprint=session.key.fingerprint,
        )
        firing = session.fired or session.firing
        shown, shown_at = self._shown.pop(result.key, (None, now))
        if firing:
            is_fresh = not session.processed or timedelta() <= now - shown_at < REFRESH_INTERVAL
            if shown is None or session.fired or not is_fresh:
                shown, shown_at = self._firing_result(session, firing, result, now, open_alerts.get(result.key)), now
            self._shown[result.key] = shown, shown_at
            return shown
        if session.ended:
            return replace(shown or result, state="good", reason=session.ended, severity=result.severity)
        if not session.is_watching:
            return None
        if result.key not in open_alerts:
            return result
        # Recovered: show the last day next to the baseline.
        current = score_level(self._scores_since(session, now - TRAILING_WINDOW, now))
        baseline = baseline_level(session.baseline) if session.baseline else None
        return replace(result, current=current, baseline=baseline, value=current.mean if current else None)

    def _firing_result(
        self, session: DetectorSession, firing: FiringDrop, result: RuleResult, now: datetime, alert: Alert | None
    ) -> RuleResult:
        rule, baseline, version = session.rule, session.baseline, session.version
        assert baseline is not None  # noqa: S101 - a detector only fires against a baseline
        assert version is not None  # noqa: S101
        scores = self._scores_since(session, firing.onset, now)
        current = score_level(scores)

        severity: Severity = rule.severity
        if rule.critical_drop is not None:
            drop = trailing_drop(baseline, scores, now)
            # A critical alert stays critical until it resolves; otherwise it would flap with means near the limit.
            was_critical = alert is not None and alert.severity == "critical"
            if was_critical or (drop is not None and drop > rule.critical_drop):
                severity = "critical"

        learned = (version.model, version.prompt_version)
        query = score_query(version.key, firing.onset, max(now, firing.onset) + _CLOCK_MARGIN)
        release = zip(
            ("model", "prompt_version"), learned, self._store.detectors.most_common_release(query), strict=True
        )
        changes = [contributor_change(contributor, baseline, scores) for contributor in firing.contributors]
        cause: Cause = "refusals_rising" if firing.contributors[0].half == "zero" else "answers_drifting"
        committed, zero = tolerance(baseline, min_drop=rule.min_drop)
        details: dict[str, Any] = {
            "contributors": [change.as_dict() for change in changes if change],
            "tolerance": {"committed": committed, "zero": zero},
            "baseline": {"version": version.number, "since": f"{baseline.since:%Y-%m-%d}", "reason": version.reason},
            # What changed in the application since the baseline was learned, as [before, now].
            "release": {name: [before, now] for name, before, now in release if before != now and now is not None},
        }
        return replace(
            result,
            state="bad",
            severity=severity,
            cause=cause,
            value=current.mean if current else None,
            current=current,
            baseline=baseline_level(baseline),
            evidence=firing.evidence,
            onset=firing.onset,
            details=details,
        )

    def _scores_since(self, session: DetectorSession, since: datetime, now: datetime) -> list[DetectorScore]:
        baseline = session.baseline
        routes = {*baseline.routes, *baseline.pooled} if baseline else set()
        rate = baseline.sampling_rate if baseline else 1.0
        until = max(now, since) + _CLOCK_MARGIN
        scores = load_sampled_scores(self._store, session.key, since, until, rate)
        return [score for score in scores if score.route in routes and session.rule.matches_route(score.route)]


def _watches(rule: Drop, arrival: DetectorScore) -> bool:
    matches = rule.scorer in {None, arrival.scorer} and rule.matches_route(arrival.route)
    return matches and matches_scope(attribute_scope(rule.attributes), arrival.attributes)
