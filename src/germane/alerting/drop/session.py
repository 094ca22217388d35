"""The detector for one rule, service and scorer, between two evaluations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from germane.alert import ResolveReason
from germane.alerting.detector import Contributor, Detector, is_sampled
from germane.alerting.drop.scope import attribute_scope, matches_scope, restrict_to_routes, to_batch
from germane.baseline import Baseline
from germane.settings import Drop
from germane.storage import BaselineKey, BaselineVersion, DetectorScore, DetectorState

SCORES_TO_SWITCH: Final = 20
"""Consecutive scores with another fingerprint after which the session switches to it. A judge that is only used
occasionally never becomes active."""


class ActiveFingerprint:
    """The fingerprint that a session follows, decided by a running majority vote.

    Each score with the active fingerprint adds a vote, up to 20; each score with another one removes a vote.
    """

    def __init__(self, fingerprint: str, votes: int = SCORES_TO_SWITCH) -> None:
        self.fingerprint = fingerprint
        self._votes = votes

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ActiveFingerprint:
        """Restore the vote from a result of :meth:`state`."""
        return cls(state["fingerprint"], state["votes"])

    def state(self) -> dict[str, Any]:
        """Return the state as JSON data."""
        return {"fingerprint": self.fingerprint, "votes": self._votes}

    def count_votes(self, arrivals: Sequence[DetectorScore]) -> int:
        """Count votes up to and including the score that makes another fingerprint active.

        Returns:
            The number of counted scores: all of them if the active fingerprint does not change.
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
    """A drop, as of the time when the detector fired."""

    evidence: float
    """Rarity of the drop, in false alerts per year."""
    onset: datetime
    contributors: tuple[Contributor, ...]
    """Strongest first."""


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
    """Follows the active fingerprint for one service and scorer, and runs a detector against its baseline.

    Args:
        rule: The drop rule.
        names: Service and scorer.
        versions: All active and learning baselines.
        progress: The stored state; None at the first score.
        fingerprint: Fingerprint of the first score.
        dismissed: Whether a person has resolved the firing alert, so that the detector starts over.
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
    ) -> None:
        self.rule = rule
        self.service, self.scorer = names
        self.ended: ResolveReason | None = None
        """Why a firing drop ended without recovery."""
        self.fired: FiringDrop | None = None
        """The drop that the detector found in the processed scores; None if it did not fire."""
        self.processed = 0
        """Number of scores that the detector has processed."""
        self._before = progress
        self._versions: dict[BaselineKey, BaselineVersion] = {}
        for version in versions:  # an active version takes precedence over one that is being learned
            if version.key not in self._versions or version.status == "active":
                self._versions[version.key] = version
        if progress:
            self._active = ActiveFingerprint.from_state(progress.state["active_fingerprint"])
        else:
            self._active = ActiveFingerprint(fingerprint)
        self._seen_at = progress.seen_at if progress else None
        self._detector: Detector | None = None
        self._start_detector(None if dismissed else progress)

    @property
    def key(self) -> BaselineKey:
        """Key of the baseline in use."""
        return BaselineKey(self.service, self.scorer, self._active.fingerprint, attribute_scope(self.rule.attributes))

    @property
    def version(self) -> BaselineVersion | None:
        """The baseline version in use, or the one that is being learned."""
        return self._versions.get(self.key)

    @property
    def baseline(self) -> Baseline | None:
        """The active baseline, restricted to the rule's routes; None while it is being learned."""
        version = self.version
        if version is None or version.baseline is None:
            return None
        baseline = restrict_to_routes(version.baseline, self.rule.matches_route)
        return baseline if baseline.routes else None

    @property
    def is_watching(self) -> bool:
        """Whether there is a baseline to compare with."""
        return self._detector is not None

    @property
    def firing(self) -> FiringDrop | None:
        """The drop that is firing now."""
        if self._detector is None or not self._detector.firing:
            return None
        firing = self._detector.state()["firing"]
        contributors = tuple(Contributor(**contributor) for contributor in firing["contributors"])
        return FiringDrop(firing["evidence"], datetime.fromtimestamp(firing["onset"], UTC), contributors)

    def process(self, arrivals: Sequence[DetectorScore]) -> None:
        """Process the service and scorer's scores in order of arrival."""
        scope = attribute_scope(self.rule.attributes)
        while arrivals:
            before = self._active.fingerprint
            count = self._active.count_votes(arrivals)
            if self._detector is not None and (baseline := self.baseline):
                scores = [
                    arrival
                    for arrival in arrivals[:count]
                    if arrival.fingerprint == before
                    and arrival.arrived_at >= baseline.until  # earlier scores are part of the baseline
                    and is_sampled(arrival.exchange_id, baseline.sampling_rate)
                    and self.rule.matches_route(arrival.route)
                    and matches_scope(scope, arrival.attributes)
                ]
                for transition in self._detector.process(to_batch(scores)):
                    if transition.state == "firing":
                        onset = datetime.fromtimestamp(transition.onset, UTC)
                        self.fired = FiringDrop(transition.evidence, onset, transition.contributors)
                self.processed += len(scores)
            self._seen_at = arrivals[count - 1].arrived_at
            if self._active.fingerprint == before:
                return
            if self.firing:
                self.ended = "judge_changed"
            self.fired = None
            self._start_detector(None)
            arrivals = arrivals[count - 1 :]

    def progress(self) -> DetectorState | None:
        """Return the state to store; None if it has not changed."""
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
            },
            log_evidence=detector.log_evidence if detector and has_evidence else None,
            seen_at=self._seen_at,
            row_version=before.row_version if before else 0,
        )
        return None if progress == before else progress

    def _start_detector(self, progress: DetectorState | None) -> None:
        """Start a detector. It continues from the stored state unless baseline or rule settings have changed."""
        state, before = (progress.state["detector"], progress.baseline_id) if progress else (None, 0)
        was_firing = state is not None and bool(state["firing"])
        version, baseline = self.version, self.baseline
        if progress and progress.parameters != rule_parameters_hash(self.rule):
            state, self.ended = None, "rule_removed" if was_firing else None
        elif state and version and version.id != before and version.reason != "route_joined":
            state = None
        self._detector = None
        if baseline:
            self._detector = Detector(
                baseline,
                min_drop=self.rule.min_drop,
                false_alerts_per_year=self.rule.false_alerts_per_year,
                state=state,
            )
        if was_firing and not self.ended and not (self._detector and self._detector.firing):
            self.ended = "new_baseline"
