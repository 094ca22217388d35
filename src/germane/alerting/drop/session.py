"""A session that runs the detectors for one rule, service and scorer during one evaluation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np

from germane.alert import ResolveReason
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.limiter import StreamLimiter
from germane.alerting.detector.score_batch import is_sampled, sampling_draw
from germane.alerting.drop.improvement import mirrored_baseline, mirrored_scores
from germane.alerting.drop.new_routes import BadLevel, Newcomers, bad_levels
from germane.alerting.drop.scope import attribute_scope, restrict_to_routes, to_batch
from germane.baseline import Baseline
from germane.exchange import matches_attributes
from germane.settings import Drop
from germane.storage import BaselineKey, BaselineVersion, DetectorScore, DetectorState

SET_BY_PEOPLE: Final = ("accepted", "imported")
"""Reasons of baselines that a person has set."""
SCORES_TO_SWITCH: Final = 20
"""Number of consecutive scores with another fingerprint after which a session switches to it. A judge that is used only
occasionally never becomes active."""


class ActiveFingerprint:
    """The fingerprint that a session follows, determined by a running majority vote.

    Each score with the active fingerprint adds a vote, up to 20. Each score with another fingerprint removes a vote.
    """

    def __init__(self, fingerprint: str, votes: int = SCORES_TO_SWITCH) -> None:
        self.fingerprint = fingerprint
        self._votes = votes

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ActiveFingerprint:
        """Restore the fingerprint and its votes from a result of :meth:`state`."""
        return cls(state["fingerprint"], state["votes"])

    def state(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data."""
        return {"fingerprint": self.fingerprint, "votes": self._votes}

    def count_votes(self, arrivals: Sequence[DetectorScore]) -> int:
        """Count votes, up to the score that makes another fingerprint active. Return the number of counted scores."""
        if all(arrival.fingerprint == self.fingerprint for arrival in arrivals):
            self._votes = min(SCORES_TO_SWITCH, self._votes + len(arrivals))
            return len(arrivals)
        for index, arrival in enumerate(arrivals):
            if arrival.fingerprint == self.fingerprint:
                self._votes = min(SCORES_TO_SWITCH, self._votes + 1)
            elif self._votes > 1:
                self._votes -= 1
            else:
                self.fingerprint, self._votes = arrival.fingerprint, SCORES_TO_SWITCH
                return index + 1
        return len(arrivals)


class FiringDrop(NamedTuple):
    """A drop or an improvement at the time the detector fired."""

    onset: datetime
    """Estimated start; UTC."""
    at: datetime | None = None
    """Time of the answer that made the detector fire, if it has just fired; UTC."""


def rule_parameters_hash(rule: Drop) -> str:
    """Return a hash of the rule settings that the detector depends on."""
    parameters = {
        "routes": rule.routes,
        "attributes": rule.attributes,
        "min_drop": rule.min_drop,
        "false_alarms_per_year": rule.false_alerts_per_year,  # the key that stored hashes use
    }
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:16]


class DetectorSession:
    """Follows the active fingerprint for one service and scorer, and runs the detectors against its baseline.

    Args:
        rule: The drop rule.
        names: Service and scorer.
        versions: All active and learning baseline versions.
        progress: The stored state; None before the first score.
        fingerprint: Fingerprint of the first score. It is used if there is no stored state.
        dismissed: Whether a person has resolved the alert about the firing drop. If so, the detector starts over.
        dismissed_routes: Names of the bad levels of new routes whose firing alert a person has resolved.
    """

    def __init__(
        self,
        rule: Drop,
        names: tuple[str, str],
        versions: Sequence[BaselineVersion],
        *,
        progress: DetectorState | None,
        fingerprint: str,
        dismissed: bool = False,
        dismissed_routes: Collection[str] = (),
    ) -> None:
        self.rule = rule
        self.service, self.scorer = names
        self.ended: ResolveReason | None = None
        """The reason a firing drop ended without recovery, or None."""
        self.fired: FiringDrop | None = None
        """The drop that the detector found in the processed scores; None if it has not fired."""
        self.affected: tuple[str | None, ...] = ()
        """The routes for which the firing drop has alerts; None stands for an alert about the whole service."""
        self.compared: tuple[str, ...] = ()
        """The routes that the levels of the firing drop cover. A route that joins the baseline later is not added."""
        self.processed = 0
        """Number of sampled scores that the session has processed."""
        self.is_improvement_proposed = False
        """Whether the current improvement has already been proposed."""
        self._before = progress
        self._versions: dict[BaselineKey, BaselineVersion] = {}
        for version in versions:  # an active version takes precedence over one that is being learned
            if version.key not in self._versions or version.status == "active":
                self._versions[version.key] = version
        if progress:
            self._active = ActiveFingerprint.from_state(progress.state["active_fingerprint"])
        else:
            self._active = ActiveFingerprint(fingerprint)
        self.seen_at = progress.seen_at if progress else None
        """Time of the newest answer; UTC. Levels refer to this time, because more scores may be queued."""
        self._detector: Detector | None = None
        self._limiter: StreamLimiter | None = None
        self._improvement: Detector | None = None
        self._guard: Detector | None = None
        """Detector of drops below an improved level that is not the baseline."""
        self.guard_baseline: Baseline | None = None
        """The improved level."""
        self._newcomers = Newcomers(None, rule.min_drop)
        self._start_detectors(progress, dismissed=dismissed)
        self._newcomers.forget(name for name in dismissed_routes if name in self._newcomers.bad)

    @property
    def key(self) -> BaselineKey:
        """The key of the baseline in use."""
        return BaselineKey(self.service, self.scorer, self._active.fingerprint, attribute_scope(self.rule.attributes))

    @property
    def version(self) -> BaselineVersion | None:
        """The baseline version in use or, if there is none, the version that is being learned."""
        return self._versions.get(self.key)

    @property
    def baseline(self) -> Baseline | None:
        """The baseline in use, restricted to the rule's routes; None if there is none or if no route matches."""
        version = self.version
        if version is None or version.baseline is None:
            return None
        baseline = restrict_to_routes(version.baseline, self.rule.matches_route)
        return baseline if baseline.routes else None

    @property
    def is_watching(self) -> bool:
        """Whether scores are compared with a baseline or, until one has been learned, with a level that is low."""
        return self.version is not None

    @property
    def _is_first_judge(self) -> bool:
        """Whether no other fingerprint has a baseline for this service and scorer."""
        return all(key.fingerprint == self.key.fingerprint for key in self._versions if key[:2] == self.key[:2])

    @property
    def firing(self) -> FiringDrop | None:
        """The drop that is currently firing, if any."""
        found = None if self._detector is None else _firing_of(self._detector)
        return _firing_of(self._guard) if found is None and self._guard is not None else found

    @property
    def reference(self) -> Baseline | None:
        """The baseline that the firing drop is compared with: an improved level only if there is no larger drop."""
        is_guarded = self._guard is not None and self._guard.firing
        return self.guard_baseline if is_guarded and not (self._detector and self._detector.firing) else self.baseline

    @property
    def improvement(self) -> FiringDrop | None:
        """The current improvement, if any."""
        return None if self._improvement is None else _firing_of(self._improvement)

    @property
    def bad_levels(self) -> Mapping[str, BadLevel]:
        """Bad levels of new routes by route; an empty name stands for all of them together."""
        return self._newcomers.bad

    @property
    def findings(self) -> tuple[bool, frozenset[str], bool]:
        """A summary of the findings: whether a drop is firing, the new routes with bad answers, and whether there is an
        improvement.
        """
        return self.firing is not None, frozenset(self.bad_levels), self.improvement is not None

    def guard(self, baseline: Baseline | None) -> None:
        """Watch an improved level for drops; with None, stop watching it."""
        baseline = baseline and restrict_to_routes(baseline, self.rule.matches_route)
        self.guard_baseline = baseline
        self._guard = None if baseline is None else self._create_detector(baseline)

    def decline_improvement(self) -> None:
        """Stop watching an improved level that a person has declined. It is kept, so that it is not learned again."""
        self._guard = None

    @property
    def guards_evidence(self) -> bool:
        """Whether the scores may have fallen below the improved level."""
        guard = self._guard
        return guard is not None and (guard.firing or guard.log_evidence > guard.threshold / 2)

    def process(self, arrivals: Sequence[DetectorScore]) -> None:
        """Process the scores for this service and scorer, in order of arrival."""
        while arrivals:
            before = self._active.fingerprint
            count, baseline = self._active.count_votes(arrivals), self.baseline
            rate = baseline.sampling_rate if baseline else 1.0
            scores = [
                arrival
                for arrival in arrivals[:count]
                if arrival.fingerprint == before
                and is_sampled(arrival.exchange_id, rate)
                and self.rule.matches_route(arrival.route)
                and matches_attributes(arrival.attributes, self.rule.attributes)
            ]
            if baseline:  # earlier scores are part of the baseline
                self._process_sampled(baseline, [score for score in scores if score.arrived_at >= baseline.until])
            if self._is_first_judge or self._newcomers.has_baseline:  # a new judge never causes an alert
                self._newcomers.process(scores)
            self.processed += len(scores)
            newest = max(arrival.answered_at for arrival in arrivals[:count])
            self.seen_at = max(newest, self.seen_at or newest)
            if self._active.fingerprint == before:
                self._end_replaced_drop(baseline)
                return
            if self.firing or self.bad_levels:
                self.ended = "judge_changed"
            self.fired = None
            self._start_detectors(None)
            arrivals = arrivals[count - 1 :]

    def _end_replaced_drop(self, baseline: Baseline | None) -> None:
        """End a drop on routes that were replaced, and that have no scores which could show a recovery."""
        if baseline is None or self._detector is None or not self._detector.firing:
            return
        routes = {route for route in self.affected if route} or set(self.compared)
        if routes and self._newcomers.have_replaced(routes, has_same_alert=None in self.affected):
            self._detector, self.fired, self.affected = self._create_detector(baseline), None, ()

    def progress(self) -> DetectorState | None:
        """Return the state to store, or None if it has not changed."""
        before, version, detector = self._before, self.version, self._detector
        has_evidence = detector is not None and detector.log_evidence != float("-inf")
        progress = DetectorState(
            rule=self.rule.name,
            service=self.service,
            scorer=self.scorer,
            parameters=rule_parameters_hash(self.rule),
            baseline_id=version.id if version else 0,
            state={
                "active_fingerprint": self._active.state(),
                "detector": detector.state() if detector else None,
                "affected": list(self.affected) if self.firing else [],
                "compared": list(self.compared) if self.firing else [],
                "limiter": self._limiter.state() if self._limiter else None,
                "improvement": self._improvement.state() if self._improvement else None,
                "improvement_proposed": self.is_improvement_proposed and self.improvement is not None,
                "guard": self._guard_state(),
                "newcomers": self._newcomers.state(),
            },
            log_evidence=detector.log_evidence if detector and has_evidence else None,
            seen_at=self.seen_at,
            row_version=before.row_version if before else 0,
        )
        return None if progress == before else progress

    def _guard_state(self) -> dict[str, Any] | None:
        if self.guard_baseline is None:
            return None
        detector = None if self._guard is None else self._guard.state()
        return {"baseline": self.guard_baseline.as_dict(), "detector": detector}

    def _process_sampled(self, baseline: Baseline, scores: Sequence[DetectorScore]) -> None:
        """Process scores that arrived after the baseline's window, match the rule, and were sampled."""
        if self._detector is None or self._limiter is None or self._improvement is None:
            return
        limited = self._limiter.select(
            [score.route for score in scores],
            [score.user for score in scores],
            np.array([sampling_draw(score.exchange_id) / baseline.sampling_rate for score in scores]),
            np.array([score.answered_at.timestamp() for score in scores]),
        )
        batch = to_batch([score for score, is_selected in zip(scores, limited, strict=True) if is_selected])
        was_guarding = self._guard is not None and not self._guard.firing and not self._detector.firing
        guarded = self._guard.process(batch) if self._guard is not None else []
        found = self._detector.process(batch)
        for transition in [*(guarded if was_guarding else []), *found]:
            if transition.state == "firing":
                onset, at = (datetime.fromtimestamp(each, UTC) for each in (transition.onset, transition.at))
                self.fired = FiringDrop(onset, at)
        self._improvement.process(mirrored_scores(batch))

    def _create_detector(self, baseline: Baseline, state: Mapping[str, Any] | None = None) -> Detector:
        rule = self.rule
        return Detector(baseline, min_drop=rule.min_drop, false_alerts_per_year=rule.false_alerts_per_year, state=state)

    def _start_detectors(self, progress: DetectorState | None, *, dismissed: bool = False) -> None:
        """Start the detectors. They continue from the stored state unless the baseline or the rule has changed."""
        state, baseline = self._usable_state(progress), self.baseline
        self._detector = self._limiter = self._improvement = self._guard = self.guard_baseline = None
        self.affected = tuple(state.get("affected", ()))
        self.compared = tuple(state.get("compared", ()))
        self.is_improvement_proposed = state.get("improvement_proposed", False)
        if baseline:
            self._detector = self._create_detector(baseline, None if dismissed else state.get("detector"))
            self._limiter = StreamLimiter(baseline, state.get("limiter"))
            self._improvement = self._create_detector(mirrored_baseline(baseline), state.get("improvement"))
            if guard := state.get("guard"):
                self.guard_baseline = Baseline.from_dict(guard["baseline"])
                # A dismissed guard is kept without a detector, so that the same improvement is not guarded again.
                if guard["detector"] and not dismissed:
                    self._guard = self._create_detector(self.guard_baseline, guard["detector"])
        self._start_newcomers(progress)
        was_bad = progress and (bad_levels(progress) or (is_firing(progress) and not dismissed))
        if progress and was_bad and not (self.firing or self.bad_levels):
            is_same_rule = progress.parameters == rule_parameters_hash(self.rule)
            self.ended = "new_baseline" if is_same_rule else "rule_removed"  # changed parameters make another rule

    def _start_newcomers(self, progress: DetectorState | None) -> None:
        """Continue to judge new routes, unless a person has set the baseline or the rule has changed."""
        version, state = self.version, None
        if progress is not None and progress.parameters == rule_parameters_hash(self.rule):
            is_set = version and version.reason in SET_BY_PEOPLE and not self._only_adds_routes(version, progress)
            state = None if is_set else progress.state.get("newcomers")
        # A provisional baseline is a day old. Until there is another one, all routes are new.
        is_settled = version is not None and not version.is_provisional
        self._newcomers = Newcomers(self.baseline if is_settled else None, self.rule.min_drop, state)

    def _usable_state(self, progress: DetectorState | None) -> Mapping[str, Any]:
        """Return the stored state from which the detectors continue; empty if the baseline or the rule has changed."""
        if progress is None or progress.parameters != rule_parameters_hash(self.rule):
            return {}
        is_replaced = self.version and not self._only_adds_routes(self.version, progress)
        return {} if is_replaced else progress.state

    @staticmethod
    def _only_adds_routes(version: BaselineVersion, progress: DetectorState) -> bool:
        """Return whether a baseline is the one before, except for routes that joined or that a person accepted."""
        is_old = progress.seen_at is not None and version.until < progress.seen_at
        is_extended = version.reason == "route_joined" or (version.reason == "accepted" and is_old)
        return version.id == progress.baseline_id or is_extended


def is_firing(progress: DetectorState) -> bool:
    """Return whether a drop below the baseline or below an improved level fires, from a stored detector state."""
    states = (progress.state.get("detector"), (progress.state.get("guard") or {}).get("detector"))
    return any(state and state["firing"] for state in states)


def _firing_of(detector: Detector) -> FiringDrop | None:
    firing = detector.state()["firing"] if detector.firing else None
    if firing is None:
        return None
    return FiringDrop(datetime.fromtimestamp(firing["onset"], UTC))
