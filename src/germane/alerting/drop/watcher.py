"""Evaluation of drop rules. Each evaluation processes new scores from the database and returns the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from germane.alert import IMPROVEMENT, Alert, ScoreLevel, Severity
from germane.alerting.detector.bet_grid import tolerance
from germane.alerting.drop.baselines import (
    LEARNING_PERIOD,
    MIN_BASELINE_SPAN,
    BaselineLearner,
    BaselineVersions,
    accept_baseline,
)
from germane.alerting.drop.improvement import is_guard_due, learn_guard
from germane.alerting.drop.new_routes import BadLevel, bad_levels, was_better
from germane.alerting.drop.scope import attribute_scope, is_new_route, load_sampled_scores, score_query
from germane.alerting.drop.score_levels import (
    MIN_TRAILING_SCORES,
    TRAILING_WINDOW,
    affected_routes,
    baseline_level,
    compared_levels,
    covered_routes,
    fallen_routes,
    is_below,
    recent_scores,
    score_level,
)
from germane.alerting.drop.session import DetectorSession, FiringDrop, is_firing, rule_parameters_hash
from germane.alerting.notifier import SELECTED
from germane.alerting.rule_result import RuleResult
from germane.baseline import POOLED_ROUTE
from germane.exchange import matches_attributes
from germane.settings import Drop
from germane.storage import BaselineKey, BaselineReason, BaselineVersion, DetectorScore, DetectorState, TrackingStore

BATCH: Final = 2000
"""Maximum number of scores that one evaluation processes in a single transaction."""
REFRESH_INTERVAL: Final = timedelta(minutes=10)
"""Minimum time between updates to a firing alert's values while scores arrive."""
LATE: Final = timedelta(hours=6)
"""Minimum age of the answer that makes a detector fire at which the alert says that the answers were scored late."""
SAME_INCIDENT: Final = timedelta(days=2)
"""Maximum time between the onsets of two scorers that fell together. The onset of a bad level is known to the day."""
_CLOCK_MARGIN: Final = timedelta(seconds=1)
_UNTIL_EVIDENCE: Final = 400 * 86_400.0
"""Maximum time in seconds that an alert stays in the recovering state until its detector resolves it."""
Names = tuple[str, str]
"""Service and scorer."""
AlertsByKey = Mapping[str, Alert]
"""Open alerts by key."""


class DetectorInputs(Protocol):
    """Reads new scores and stored detector states. Implemented by stores and backtests."""

    def list_new_scores(self, limit: int, *, attributes: bool = False) -> list[DetectorScore]:
        """Return up to ``limit`` scores that the detectors have not processed yet, in order of arrival."""

    def list_states(self, known: Sequence[DetectorState] = ()) -> list[DetectorState]:
        """Return the states of all detectors. Unchanged states may be taken from ``known``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropEvaluation:
    """The result of one evaluation. The caller writes all of it in one transaction."""

    results: Sequence[RuleResult] = ()
    detector_states: Sequence[DetectorState] = ()
    """Detector states that have changed."""
    processed_score_ids: Sequence[int] = ()
    """Queue ids of the processed scores."""
    more: bool = False
    """Whether more scores are waiting."""


@dataclass(frozen=True, slots=True)
class _ShownResults:
    """A session's bad results, reused until the findings change or, while scores arrive, for a refresh interval."""

    results: Sequence[RuleResult]
    findings: tuple[bool, frozenset[str], bool]
    at: datetime


class DropWatcher:
    """Evaluates drop rules. All state is stored in the database; memory contains only caches.

    Args:
        store: The store that contains the scores.
        rules: The drop rules.
        holder: Name of the leader lease and its owner; None in a backtest.
        clock: Returns the current time in UTC.
        learning_period: Length of a baseline's learning period.
        batch: Maximum number of scores per evaluation.
        inputs: New scores and detector states. Defaults to the store's.
        versions: Baselines. Defaults to the store's.
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
        self._holder = holder
        self._clock = clock
        self._batch = batch
        self._learner = BaselineLearner(store, versions, holder=holder, learning_period=learning_period)
        self._states: list[DetectorState] = []
        self._shown: dict[tuple[str, str, str], _ShownResults] = {}
        """The last bad results, by rule, service and scorer."""

    def reset(self) -> None:
        """Recompute all results next time, because the last ones were not written or another process has taken over."""
        self._shown.clear()

    def evaluate(self, open_alerts: AlertsByKey | None = None) -> DropEvaluation:
        """Process new scores, and return the results.

        Args:
            open_alerts: Open alerts by key, or None if they are unknown. If a detector is firing and there is no open
                alert, a person has resolved the alert, and the detector starts over.
        """
        now = self._clock()
        self._states = self._inputs.list_states(self._states)
        versions = self._learner.complete_due(now, self._states)
        scoped = any(rule.attributes for rule in self._rules)
        arrivals = self._inputs.list_new_scores(self._batch, attributes=scoped)
        if self._start_learning(arrivals, versions):
            versions = self._learner.load_versions()
        if self._accept_improvements(versions, open_alerts or {}, now):
            versions = self._learner.load_versions()
        sessions = self._run_sessions(arrivals, versions, open_alerts)
        for session in sessions:
            self._compare_with_first_answers(session)
            self._guard_improvement(session, min(now, session.seen_at or now))
        by_session = _by_session(open_alerts or {})
        results = [
            result
            for session in sessions
            for result in self._results(
                session,
                min(now, session.seen_at or now),
                by_session.get((session.rule.name, session.service, session.scorer), {}),
            )
        ]
        known = open_alerts or {}
        alerts: list[Alert | RuleResult] = [*known.values(), *results]
        results = [
            each
            for each in results
            if each.key in known or is_drop(each) or not fell_together(each.rule, each.labels, each.onset, alerts)
        ]
        progress = [session.progress() for session in sessions]
        return DropEvaluation(
            results=results,
            detector_states=[state for state in progress if state],
            processed_score_ids=[arrival.id for arrival in arrivals],
            more=len(arrivals) == self._batch,
        )

    def _accept_improvements(
        self, versions: Sequence[BaselineVersion], open_alerts: AlertsByKey, now: datetime
    ) -> bool:
        """Accept open improvements if their rule has ``accept_improvements``.

        An improvement is accepted at a later time than it fired, so that a repeated evaluation of the same time, after
        a crash or in another process, changes nothing.
        Return whether there are any; their baselines have been replaced, by this process or by another one.
        """
        rules = {rule.name for rule in self._rules if rule.accept_improvements}
        improved = [
            alert
            for alert in open_alerts.values()
            if alert.type == IMPROVEMENT and alert.rule in rules and (alert.fired_at or now) < now
        ]
        active = {version.id: version for version in versions if version.status == "active"}
        accepted = False
        for alert in improved if self._holder is not None else ():
            names = (alert.rule, alert.service, alert.scorer)
            for state in self._states:
                version = active.get(state.baseline_id)
                if version is not None and (state.rule, state.service, state.scorer) == names:
                    accept_baseline(self._store, version, alert.onset or alert.starts_at, now)
                    accepted = True
        return accepted

    def _start_learning(self, arrivals: Sequence[DetectorScore], versions: Sequence[BaselineVersion]) -> bool:
        """Start learning baselines for new fingerprints and routes. Return whether there are any."""
        active = {version.key: version for version in versions if version.status == "active"}
        learning = {version.key for version in versions if version.status == "learning"}
        # These keys omit the fingerprint, to recognize streams that have a baseline from another judge.
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
        """Run a session for each rule, service and scorer that has new scores or whose result may have changed."""
        states = {(state.rule, state.service, state.scorer): state for state in self._states}
        by_session = _by_session(open_alerts or {})
        active = {version.id for version in versions if version.status == "active"}
        sessions = []
        for rule in self._rules:
            watched = _group_watched(rule, arrivals)
            stored = {(service, scorer) for name, service, scorer in states if name == rule.name}
            for names in sorted(stored | watched.keys()):
                if rule.scorer not in {None, names[1]}:
                    continue
                progress, scores = states.get((rule.name, *names)), watched.get(names, [])
                alerts = by_session.get((rule.name, *names), {}).values()
                is_dismissed, dismissed_routes = False, set[str]()
                if open_alerts is not None:
                    is_dismissed, dismissed_routes = _dismissals(progress, alerts, open_alerts.values())
                has_input = scores or alerts or is_dismissed or dismissed_routes
                if open_alerts is not None and not has_input and _is_up_to_date(progress, rule, active):
                    continue  # the detector would only return its last result again
                session = DetectorSession(
                    rule,
                    names,
                    versions,
                    progress=progress,
                    fingerprint=scores[0].fingerprint if scores else "",
                    dismissed=is_dismissed,
                    dismissed_routes=dismissed_routes,
                )
                session.process(scores)
                sessions.append(session)
        return sessions

    def _compare_with_first_answers(self, session: DetectorSession) -> None:
        """Find out whether levels that are low without a baseline were low before, too. All stored answers count."""
        for name, bad in session.bad_levels.items():
            if bad.is_first and bad.fell is None:
                since, until = (datetime.fromtimestamp(at, UTC) for at in (0, bad.onset))
                scores = load_sampled_scores(self._store, session.key, since, until, 1.0, by_answer=True)
                routes = [score for score in scores if session.rule.matches_route(score.route)]
                values = [0.0 if score.is_zero else score.value for score in routes if name in ("", score.route)]
                bad.fell = was_better(bad, values)

    def _guard_improvement(self, session: DetectorSession, now: datetime) -> None:
        """Watch an improved level for drops from its third day on, although nobody has accepted it as the baseline."""
        improvement, guard, baseline = session.improvement, session.guard_baseline, session.baseline
        if improvement is None or baseline is None:
            if guard is not None and not session.guards_evidence:
                session.guard(None)
        elif not session.guards_evidence and is_guard_due(guard, improvement.onset, now):
            learned = learn_guard(self._store, session.key, baseline, improvement.onset, now)
            if learned is not None:
                session.guard(learned)

    def _results(
        self, session: DetectorSession, now: datetime, open_alerts: Mapping[str, Alert]
    ) -> Iterator[RuleResult]:
        """Yield the results of a session that has processed its scores: for its drop, new routes and improvement."""
        good = RuleResult(
            rule=session.rule.name,
            type=session.rule.type,
            labels={"service": session.service, "scorer": session.scorer},
            state="good",
            pending=session.rule.pending,
            severity=session.rule.severity,
            reason=session.ended or "recovered",
            fingerprint=session.key.fingerprint,
        )
        bad = self._recent_bad_results(session, good, now, open_alerts)
        if session.is_improvement_proposed:  # it is not proposed again once a person has resolved its alert
            proposals = {result.key for result in bad if result.type == IMPROVEMENT} - open_alerts.keys()
            bad = [result for result in bad if result.key not in proposals]
            if proposals:
                session.decline_improvement()
        session.is_improvement_proposed |= any(result.type == IMPROVEMENT for result in bad)
        yield from bad
        if session.is_watching or session.ended:
            keys = {result.key for result in bad}
            for alert in open_alerts.values():
                if alert.key not in keys:
                    yield self._resolution(session, alert, good, now)

    def _recent_bad_results(
        self, session: DetectorSession, good: RuleResult, now: datetime, open_alerts: Mapping[str, Alert]
    ) -> Sequence[RuleResult]:
        """Return a session's bad results: the cached ones, unless a drop has just fired or they are outdated."""
        names = (session.rule.name, session.service, session.scorer)
        firing, shown = session.fired or session.firing, self._shown.pop(names, None)
        if not (firing or any(session.findings)):
            return ()
        has_changed = shown is None or session.fired or shown.findings != session.findings
        if shown is None or has_changed or (session.processed and not timedelta() <= now - shown.at < REFRESH_INTERVAL):
            results = [
                _as_notified(result, open_alerts.get(result.key), session.rule, now)
                for result in self._bad_results(session, firing, good, now)
            ]
            shown = _ShownResults(results, session.findings, now)
        self._shown[names] = shown
        return shown.results

    def _resolution(self, session: DetectorSession, alert: Alert, good: RuleResult, now: datetime) -> RuleResult:
        """Return the result that resolves an open alert."""
        resolved = replace(good, type=alert.type, labels=alert.labels)
        number = (alert.details.get("baseline") or {}).get("version")
        is_replaced = session.version is None or session.version.number != number
        has_joined = not is_drop(alert) and session.baseline is not None and alert.route in session.baseline.routes
        if (alert.type == IMPROVEMENT and is_replaced) or (alert.type != IMPROVEMENT and has_joined):
            resolved = replace(resolved, reason="new_baseline")
        return resolved if session.ended else self._with_levels(resolved, session, now)

    def _bad_results(
        self, session: DetectorSession, firing: FiringDrop | None, good: RuleResult, now: datetime
    ) -> Iterator[RuleResult]:
        if firing is not None:
            scores = self._scores_since(session, firing.onset, now)
            self._update_affected(session, scores)
            for route in session.affected:
                yield self._drop_result(session, firing, route, scores, good, now)
        for route, bad in ((route, bad) for route, bad in session.bad_levels.items() if not bad.fell):
            yield self._new_route_result(session, route, bad, good, now)
        improvement = session.improvement
        if improvement is not None and firing is None and now - improvement.onset >= MIN_BASELINE_SPAN:
            labels = {**good.labels, "change": IMPROVEMENT}
            result = replace(good, type=IMPROVEMENT, labels=labels, state="bad", severity="info", pending=0.0)
            details = {**self._baseline_details(session), "accepts": session.rule.accept_improvements}
            yield self._with_levels(replace(result, onset=improvement.onset, details=details), session, now)

    def _update_affected(self, session: DetectorSession, scores: Sequence[DetectorScore]) -> None:
        """Decide, until the drop ends or spreads, whether alerts name the affected routes or the whole service."""
        baseline, min_drop = session.reference, session.rule.min_drop
        assert baseline is not None  # noqa: S101 - as above
        names_all = bool(session.rule.routes)
        affected: set[str | None] = set(affected_routes(baseline, scores, min_drop, names_all=names_all))
        if session.fired is not None or not session.firing or not session.affected:
            session.affected = tuple(sorted(affected, key=str)) or (None,)
            session.compared = covered_routes(baseline, scores)
            return
        if None in session.affected:
            return
        affected |= set(fallen_routes(baseline, scores, min_drop))
        session.affected = tuple(sorted({*session.affected, *affected}, key=str))

    def _drop_result(
        self,
        session: DetectorSession,
        firing: FiringDrop,
        route: str | None,
        scores: Sequence[DetectorScore],
        good: RuleResult,
        now: datetime,
    ) -> RuleResult:
        """Return the result for a drop, given the scores since its onset: on one route, or with None in the service."""
        rule, baseline = session.rule, session.reference
        assert baseline is not None  # noqa: S101 - a detector fires only against a baseline
        late = self._late_answers(session, scores)
        recent = recent_scores(baseline, late or scores, late[-1].answered_at if late else now, route)
        # session.compared was set when the affected routes were decided. If it is empty, no routes can be compared.
        compared = compared_levels(baseline, recent, route, routes=session.compared if route is None else None)
        before, current = compared or (baseline_level(baseline), None)
        severity: Severity = rule.severity
        if rule.critical_drop is not None and current and is_below(current, before.mean - rule.critical_drop):
            severity = "critical"

        committed, zero = tolerance(baseline, min_drop=rule.min_drop)
        details: dict[str, Any] = {"tolerance": {"committed": committed, "zero": zero}}
        if late:
            newest = [score for score in scores if score.answered_at > now - TRAILING_WINDOW]
            newer = _level_if_back(compared_levels(baseline, newest, route), rule.min_drop)
            details["late"] = {"until": late[-1].answered_at.isoformat(), "newer": newer}
        if rule.routes or rule.attributes:
            details[SELECTED] = True
        details |= self._baseline_details(session) | self._changed_release(session, firing.onset, now)
        return replace(
            good,
            labels=good.labels if route is None else {**good.labels, "route": route},
            state="bad",
            severity=severity,
            value=current.mean if current else None,
            current=current,
            baseline=before,
            onset=firing.onset,
            details=details,
        )

    def _late_answers(self, session: DetectorSession, scores: Sequence[DetectorScore]) -> list[DetectorScore]:
        """Return the answers of a drop that has just fired, if they were scored so late that it may be over by now."""
        at = None if session.fired is None else session.fired.at
        if at is None or self._clock() - at < LATE:
            return []
        return [score for score in scores if score.answered_at <= at]

    def _new_route_result(
        self, session: DetectorSession, route: str, bad: BadLevel, good: RuleResult, now: datetime
    ) -> RuleResult:
        """Return the result for bad answers on one route, or on several, that have no baseline."""
        baseline, onset = session.baseline, datetime.fromtimestamp(bad.onset, UTC)
        rate, since = baseline.sampling_rate if baseline else 1.0, max(onset, now - TRAILING_WINDOW)
        until = max(now, since) + _CLOCK_MARGIN
        scores = load_sampled_scores(self._store, session.key, since, until, rate, by_answer=True)
        routes = {*bad.routes}
        if POOLED_ROUTE in routes:  # there are too many new routes to list
            routes |= {score.route for score in scores if baseline is None or is_new_route(baseline, score.route)}
        current = score_level([score for score in scores if score.route in routes])
        critical_drop = session.rule.critical_drop
        is_critical = critical_drop is not None and current and is_below(current, bad.reference - critical_drop)
        details: dict[str, Any] = {"replaces": bad.vanished} if bad.vanished else {"new_route": True}
        if baseline is not None and not bad.vanished and not bad.is_first:
            means = [each.mean for each in baseline.routes.values()]
            details["other_routes"] = [min(means), max(means)]
        return replace(
            good,
            labels={**good.labels, "route": route} if route else good.labels,
            state="bad",
            severity="critical" if is_critical else good.severity,
            value=current.mean if current else None,
            current=current,
            baseline=None if bad.n is None else ScoreLevel(mean=bad.reference, n=round(bad.n)),
            onset=onset,
            details=details | self._changed_release(session, onset, now),
        )

    def _with_levels(self, result: RuleResult, session: DetectorSession, now: datetime) -> RuleResult:
        """Add the last day's level and the baseline's level to a result."""
        scores = self._scores_since(session, now - TRAILING_WINDOW, now)
        route, covered = result.labels.get("route"), session.compared or None
        compared = session.reference and compared_levels(
            session.reference, scores, route, routes=covered if route is None else None
        )
        if not compared:
            return result
        before, current = compared
        return replace(result, current=current, baseline=before, value=current.mean)

    def _baseline_details(self, session: DetectorSession) -> dict[str, Any]:
        version, baseline = session.version, session.reference
        if version is None or baseline is None:
            return {}
        reason = version.reason if baseline is not session.guard_baseline else IMPROVEMENT
        return {"baseline": {"version": version.number, "since": f"{baseline.since:%Y-%m-%d}", "reason": reason}}

    def _changed_release(self, session: DetectorSession, onset: datetime, now: datetime) -> dict[str, Any]:
        """Return the application's model and prompt version if they have changed since the baseline was learned.

        The result is a detail of the alert, ``release``, which maps each changed name to ``[before, now]``. If nothing
        has changed, the result is empty, so an alert still names a change that has been reverted.
        """
        version = session.version
        if version is None or version.baseline is None:
            return {}
        query = score_query(version.key, onset, max(now, onset) + _CLOCK_MARGIN, by_answer=True)
        current = self._store.detectors.most_common_release(query)
        names = ("model", "prompt_version")
        pairs = zip(names, (version.model, version.prompt_version), current, strict=True)
        changed = {name: [before, after] for name, before, after in pairs if before != after and after is not None}
        return {"release": changed} if changed else {}

    def _scores_since(self, session: DetectorSession, since: datetime, now: datetime) -> list[DetectorScore]:
        baseline = session.reference
        routes = {*baseline.routes, *baseline.pooled} if baseline else set()
        rate = session.baseline.sampling_rate if session.baseline else 1.0
        until = max(now, since) + _CLOCK_MARGIN
        scores = load_sampled_scores(self._store, session.key, since, until, rate, by_answer=True)
        scores.sort(key=lambda score: score.answered_at)
        return [score for score in scores if score.route in routes and session.rule.matches_route(score.route)]


def _level_if_back(levels: tuple[ScoreLevel, ScoreLevel] | None, min_drop: float) -> float | None:
    """Return the current mean if it is back at the baseline, given the baseline's and the current level."""
    if levels is None or levels[1].n < MIN_TRAILING_SCORES or levels[0].mean - levels[1].mean > min_drop / 2:
        return None
    return levels[1].mean


def _as_notified(result: RuleResult, alert: Alert | None, rule: Drop, now: datetime) -> RuleResult:
    """Adjust a bad result to match its open alert, so that the alert does not flap when a mean is near a limit.

    A critical alert stays critical until it resolves. An alert starts recovering when the mean of the last day is
    within half of ``min_drop`` of the baseline, and keeps recovering until the difference exceeds ``min_drop``. No
    reminders are sent while it is recovering. It resolves when the evidence shows a lasting recovery.
    """
    if alert is None or result.type != rule.type:
        return result
    if alert.severity == "critical":
        result = replace(result, severity="critical")
    before, current, onset = result.baseline, result.current, result.onset
    if before is None or current is None or onset is None:
        return result
    is_known = current.n >= MIN_TRAILING_SCORES and now - onset >= TRAILING_WINDOW
    limit = rule.min_drop if alert.state == "recovering" else rule.min_drop / 2
    has_recovered = is_known and before.mean - current.mean <= limit
    return replace(result, state="good", keep_firing_for=_UNTIL_EVIDENCE) if has_recovered else result


def is_drop(alert: Alert | RuleResult) -> bool:
    """Return whether an alert is about a drop below the baseline, rather than a new route or an improvement."""
    return alert.type == "drop" and not (alert.details.get("new_route") or alert.details.get("replaces"))


def fell_together(
    rule: str, labels: Mapping[str, str], onset: datetime | None, alerts: Iterable[Alert | RuleResult]
) -> bool:
    """Return whether a bad level began with the drop of another scorer on its route, whose alert names both."""
    others = [alert for alert in alerts if is_drop(alert) and alert.rule == rule and alert.labels != labels]
    onsets = [alert.onset for alert in others if {**alert.labels, "scorer": ""} == {**labels, "scorer": ""}]
    return onset is not None and any(at is not None and abs(at - onset) <= SAME_INCIDENT for at in onsets)


def _by_session(alerts: AlertsByKey) -> dict[tuple[str, str, str], dict[str, Alert]]:
    """Group the alerts of drop rules by (rule, service, scorer). Each group maps keys to alerts."""
    found: dict[tuple[str, str, str], dict[str, Alert]] = {}
    for key, alert in alerts.items():
        if alert.type in {"drop", IMPROVEMENT} and alert.scorer is not None:
            found.setdefault((alert.rule, alert.service, alert.scorer), {})[key] = alert
    return found


def _group_watched(rule: Drop, arrivals: Iterable[DetectorScore]) -> dict[Names, list[DetectorScore]]:
    """Group the scores that a rule watches by service and scorer."""
    groups: dict[Names, list[DetectorScore]] = {}
    for arrival in arrivals:
        if _watches(rule, arrival):
            groups.setdefault((arrival.service, arrival.scorer), []).append(arrival)
    return groups


def _dismissals(
    progress: DetectorState | None, alerts: Collection[Alert], known: Collection[Alert]
) -> tuple[bool, set[str]]:
    """Return whether a person has resolved the alert of a firing drop, and the bad new routes without an open alert.

    An alert about a drop and one about new routes have the same key if both are about the whole service.
    """
    if progress is None:
        return False, set()
    open_drops = [alert for alert in alerts if alert.type == "drop"]
    labels, bad = {"service": progress.service, "scorer": progress.scorer}, set[str]()
    for name, level in bad_levels(progress).items():
        own, onset = labels | ({"route": name} if name else {}), datetime.fromtimestamp(level["onset"], UTC)
        if not (level.get("fell") or fell_together(progress.rule, own, onset, known)):
            bad.add(name)
    bad -= {alert.route or "" for alert in open_drops}
    return is_firing(progress) and not any(is_drop(alert) or alert.route is None for alert in open_drops), bad


def _is_up_to_date(progress: DetectorState | None, rule: Drop, active: Collection[int]) -> bool:
    """Return whether a state belongs to the rule as it is configured, and to an active baseline."""
    if progress is None:
        return False
    return progress.parameters == rule_parameters_hash(rule) and progress.baseline_id in active


def _watches(rule: Drop, arrival: DetectorScore) -> bool:
    matches = rule.scorer in {None, arrival.scorer} and rule.matches_route(arrival.route)
    return matches and matches_attributes(arrival.attributes, rule.attributes)
