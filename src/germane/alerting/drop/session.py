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
from germane.alerting.detector.drop_evidence import Contributor
from germane.alerting.detector.limiter import StreamLimiter
from germane.alerting.detector.score_batch import is_sampled, sampling_draw
from germane.alerting.drop.improvement import mirrored_baseline, mirrored_scores
from germane.alerting.drop.new_routes import new_route_baseline, without_zeros
from germane.alerting.drop.scope import attribute_scope, is_new_route, restrict_to_routes, to_batch
from germane.baseline import Baseline
from germane.exchange import matches_attributes
from germane.settings import Drop
from germane.storage import BaselineKey, BaselineVersion, DetectorScore, DetectorState

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
        """Count votes up to and including the score that makes another fingerprint active.

        Returns:
            The number of scores that were counted. If the active fingerprint does not change, this is all of them.
        """
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
    contributors: tuple[Contributor, ...]
    """Contributors to the drop, strongest first."""


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
        dismissed_routes: New routes for which a person has resolved the firing alert.
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
        """Arrival time of the last score; UTC. Levels refer to this time, because more scores may be queued."""
        self._detector: Detector | None = None
        self._limiter: StreamLimiter | None = None
        self._improvement: Detector | None = None
        self._new_routes: dict[str, Detector] = {}
        """Detectors for routes that are not in the baseline yet, by route."""
        self._start_detectors(progress, dismissed=dismissed)
        for route in dismissed_routes:
            self._new_routes.pop(route, None)

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
        """Whether there is a baseline to compare scores with."""
        return self._detector is not None

    @property
    def firing(self) -> FiringDrop | None:
        """The drop that is currently firing, if any."""
        return None if self._detector is None else _firing_of(self._detector)

    @property
    def improvement(self) -> FiringDrop | None:
        """The current improvement, if any. Its contributors refer to the mirrored scores."""
        return None if self._improvement is None else _firing_of(self._improvement)

    @property
    def bad_new_routes(self) -> dict[str, FiringDrop]:
        """New routes with bad answers, each with its onset and contributors."""
        found = {route: _firing_of(detector) for route, detector in self._new_routes.items()}
        return {route: firing for route, firing in found.items() if firing is not None}

    @property
    def findings(self) -> tuple[bool, frozenset[str], bool]:
        """A summary of the findings: whether a drop is firing, the new routes with bad answers, and whether there is an
        improvement.
        """
        return self.firing is not None, frozenset(self.bad_new_routes), self.improvement is not None

    def process(self, arrivals: Sequence[DetectorScore]) -> None:
        """Process the scores for this service and scorer, in order of arrival."""
        while arrivals:
            before = self._active.fingerprint
            count = self._active.count_votes(arrivals)
            if baseline := self.baseline:
                self._process_sampled(
                    baseline,
                    [
                        arrival
                        for arrival in arrivals[:count]
                        if arrival.fingerprint == before
                        and arrival.arrived_at >= baseline.until  # earlier scores are part of the baseline
                        and is_sampled(arrival.exchange_id, baseline.sampling_rate)
                        and self.rule.matches_route(arrival.route)
                        and matches_attributes(arrival.attributes, self.rule.attributes)
                    ],
                )
            self.seen_at = arrivals[count - 1].arrived_at
            if self._active.fingerprint == before:
                return
            if self.firing:
                self.ended = "judge_changed"
            self.fired = None
            self._start_detectors(None)
            arrivals = arrivals[count - 1 :]

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
                "new_routes": {route: detector.state() for route, detector in sorted(self._new_routes.items())},
            },
            log_evidence=detector.log_evidence if detector and has_evidence else None,
            seen_at=self.seen_at,
            row_version=before.row_version if before else 0,
        )
        return None if progress == before else progress

    def _process_sampled(self, baseline: Baseline, scores: Sequence[DetectorScore]) -> None:
        """Process scores that arrived after the baseline's window, match the rule, and were sampled."""
        if self._detector is None or self._limiter is None or self._improvement is None:
            return
        limited = self._limiter.select(
            [score.route for score in scores],
            [score.user for score in scores],
            np.array([sampling_draw(score.exchange_id) / baseline.sampling_rate for score in scores]),
            np.array([score.arrived_at.timestamp() for score in scores]),
        )
        batch = to_batch([score for score, is_selected in zip(scores, limited, strict=True) if is_selected])
        for transition in self._detector.process(batch):
            if transition.state == "firing":
                self.fired = FiringDrop(datetime.fromtimestamp(transition.onset, UTC), transition.contributors)
        self._improvement.process(mirrored_scores(batch))
        new = [score for score in scores if is_new_route(baseline, score.route)]
        for route in sorted({score.route for score in new}):
            detector = self._new_routes.setdefault(route, self._create_detector(new_route_baseline(baseline, route)))
            detector.process(without_zeros(to_batch([score for score in new if score.route == route])))
        self.processed += len(scores)

    def _create_detector(self, baseline: Baseline, state: Mapping[str, Any] | None = None) -> Detector:
        rule = self.rule
        return Detector(baseline, min_drop=rule.min_drop, false_alerts_per_year=rule.false_alerts_per_year, state=state)

    def _start_detectors(self, progress: DetectorState | None, *, dismissed: bool = False) -> None:
        """Start the detectors. They continue from the stored state unless the baseline or the rule has changed.

        Args:
            progress: The stored state, if any.
            dismissed: Whether a person has resolved the alert about the firing drop. If so, the detector starts over.
        """
        state, baseline = self._usable_state(progress), self.baseline
        self._detector = self._limiter = self._improvement = None
        self._new_routes = {}
        self.affected = tuple(state.get("affected", ()))
        self.compared = tuple(state.get("compared", ()))
        self.is_improvement_proposed = state.get("improvement_proposed", False)
        if baseline:
            self._detector = self._create_detector(baseline, None if dismissed else state.get("detector"))
            self._limiter = StreamLimiter(baseline, state.get("limiter"))
            self._improvement = self._create_detector(mirrored_baseline(baseline), state.get("improvement"))
            self._new_routes = {
                route: self._create_detector(new_route_baseline(baseline, route), stored)
                for route, stored in state.get("new_routes", {}).items()
                if is_new_route(baseline, route)
            }
        was_firing = progress and not dismissed and (progress.state.get("detector") or {}).get("firing")
        if progress and was_firing and not (self._detector and self._detector.firing):
            is_same_rule = progress.parameters == rule_parameters_hash(self.rule)
            self.ended = "new_baseline" if is_same_rule else "rule_removed"  # changed parameters make another rule

    def _usable_state(self, progress: DetectorState | None) -> Mapping[str, Any]:
        """Return the stored state from which the detectors continue; empty if the baseline or the rule has changed."""
        if progress is None or progress.parameters != rule_parameters_hash(self.rule):
            return {}
        # A route that joins leaves the other routes' baselines, and so their evidence, as they are.
        version = self.version
        is_replaced = version and version.id != progress.baseline_id and version.reason != "route_joined"
        return {} if is_replaced else progress.state


def _firing_of(detector: Detector) -> FiringDrop | None:
    firing = detector.state()["firing"] if detector.firing else None
    if firing is None:
        return None
    contributors = tuple(Contributor(**contributor) for contributor in firing["contributors"])
    return FiringDrop(datetime.fromtimestamp(firing["onset"], UTC), contributors)
