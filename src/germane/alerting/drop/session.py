"""One detector at its post: that of one rule, service and scorer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from germane.alert import ResolveReason, Severity
from germane.alerting.detector import Carrier, Detector, kept
from germane.alerting.drop.history import seen
from germane.alerting.drop.scope import in_scope, narrowed, scope_of
from germane.baseline import Baseline
from germane.storage import Arrival, BaselineVersion, Key, Progress

ENOUGH: Final = 20
"""Scores in a row of another judge that make it the one to go by: fewer are not enough data for anything. One that
only now and then stands in for the usual judge never takes over."""


class Lead:
    """Follows one fingerprint until another one has the majority: a vote, each score of another counting against it."""

    def __init__(self, fingerprint: str, votes: int = ENOUGH) -> None:
        self.fingerprint = fingerprint
        self._votes = votes

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Lead:
        """Return it as it was."""
        return cls(state["fingerprint"], state["votes"])

    def state(self) -> dict[str, Any]:
        """Return what it knows, ready for JSON."""
        return {"fingerprint": self.fingerprint, "votes": self._votes}

    def follow(self, arrivals: Sequence[Arrival]) -> int:
        """Count scores up to the one with which another fingerprint takes over; return how many that were.

        All of them, when none does.
        """
        if all(one.fingerprint == self.fingerprint for one in arrivals):
            self._votes = min(ENOUGH, self._votes + len(arrivals))
            return len(arrivals)
        for place, one in enumerate(arrivals):
            if one.fingerprint == self.fingerprint:
                self._votes = min(ENOUGH, self._votes + 1)
            elif self._votes > 1:
                self._votes -= 1
            else:
                self.fingerprint, self._votes = one.fingerprint, ENOUGH
                return place + 1
        return len(arrivals)


class Rule(Protocol):
    """What a rule says that watches for drops."""

    @property
    def name(self) -> str: ...
    @property
    def severity(self) -> Severity: ...
    @property
    def scorer(self) -> str | None: ...
    @property
    def routes(self) -> Sequence[str]: ...
    @property
    def attributes(self) -> dict[str, str]: ...
    @property
    def pending(self) -> float: ...
    @property
    def min_drop(self) -> float: ...
    @property
    def false_alarms_per_year(self) -> float: ...
    @property
    def critical_drop(self) -> float | None: ...

    def takes(self, route: str) -> bool:
        """Whether it looks at a route."""
        ...


class Firing(NamedTuple):
    """What is known of a drop as it was found."""

    evidence: float
    """False alarms a year as rare as this."""
    onset: datetime
    carriers: tuple[Carrier, ...]
    """The strongest first."""


def hash_of(rule: Rule) -> str:
    """Return a hash of all by which a detector goes."""
    names = ("routes", "attributes", "min_drop", "false_alarms_per_year")
    said = json.dumps({name: getattr(rule, name) for name in names}, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


class Post:
    """Follows the judge that scores now, goes by its baseline, and is fed its scores.

    Args:
        versions: of all baselines, those that are learned or gone by.
        progress: how far it had come; None at the first score.
        fingerprint: of that score.
        dismissed: whether a person has said that what fires is over: it begins anew.
    """

    def __init__(
        self,
        rule: Rule,
        names: tuple[str, str],
        versions: Sequence[BaselineVersion],
        *,
        progress: Progress | None,
        fingerprint: str,
        dismissed: bool = False,
    ) -> None:
        self.rule = rule
        self.service, self.scorer = names
        self.ended: ResolveReason | None = None
        """Why what fired is over, where it has not recovered."""
        self.fired: Firing | None = None
        """What began to fire with the scores of now."""
        self.fed = 0
        """How many scores its detector was given."""
        self._before = progress
        self._versions: dict[Key, BaselineVersion] = {}
        for one in versions:  # what is active comes before what is learned beside it
            if one.key not in self._versions or one.status == "active":
                self._versions[one.key] = one
        self._lead = Lead.read(progress.state["lead"]) if progress else Lead(fingerprint)
        self._seen_at = progress.seen_at if progress else None
        self._detector: Detector | None = None
        self._go_by(None if dismissed else progress)

    @property
    def key(self) -> Key:
        """What its baseline is of."""
        return Key(self.service, self.scorer, self._lead.fingerprint, scope_of(self.rule.attributes))

    @property
    def version(self) -> BaselineVersion | None:
        """What it goes by, or what it waits for."""
        return self._versions.get(self.key)

    @property
    def baseline(self) -> Baseline | None:
        """What it goes by, of the routes that its rule looks at; None while nothing is learned of them."""
        version = self.version
        found = version.baseline and narrowed(version.baseline, self.rule.takes) if version else None
        return found if found and found.routes else None

    @property
    def is_watching(self) -> bool:
        """Whether it goes by anything."""
        return self._detector is not None

    @property
    def firing(self) -> Firing | None:
        """What fires now."""
        return _firing_of(self._detector.state()) if self._detector and self._detector.firing else None

    def take(self, arrivals: Sequence[Arrival]) -> None:
        """Take scores of its service and scorer, in the order of their arrival."""
        while arrivals:
            before = self._lead.fingerprint
            count = self._lead.follow(arrivals)
            self._feed([one for one in arrivals[:count] if one.fingerprint == before])
            self._seen_at = arrivals[count - 1].arrived_at
            if self._lead.fingerprint == before:
                return
            if self.firing:
                self.ended = "judge_changed"
            self.fired = None
            self._go_by(None)
            arrivals = arrivals[count - 1 :]

    def progress(self) -> Progress | None:
        """Return how far it has come; None where that is where it was."""
        before, version = self._before, self.version
        detector = self._detector
        now = Progress(
            rule=self.rule.name,
            service=self.service,
            scorer=self.scorer,
            parameters=hash_of(self.rule),
            baseline_id=version.id if version else 0,
            state={"lead": self._lead.state(), "detector": detector.state() if detector else None},
            log_evidence=None if detector is None or detector.log_evidence == float("-inf") else detector.log_evidence,
            seen_at=self._seen_at,
            row_version=before.row_version if before else 0,
        )
        return None if now == before else now

    def _go_by(self, progress: Progress | None) -> None:
        """Take up a detector, where it was if its baseline and rule are those that it went by."""
        state, before = (progress.state["detector"], progress.baseline_id) if progress else (None, 0)
        was_firing = state is not None and _firing_of(state) is not None
        version, baseline = self.version, self.baseline
        if progress and progress.parameters != hash_of(self.rule):
            state, self.ended = None, "rule_removed" if was_firing else None
        elif state and version and version.id != before and version.reason != "route_joined":
            state = None
        knobs = {"min_drop": self.rule.min_drop, "false_alarms_per_year": self.rule.false_alarms_per_year}
        self._detector = Detector(baseline, **knobs, state=state) if baseline else None
        if was_firing and not self.ended and not (self._detector and self._detector.firing):
            self.ended = "new_baseline"

    def _feed(self, arrivals: Sequence[Arrival]) -> None:
        if self._detector is None or not (baseline := self.baseline):
            return
        mine = [one for one in arrivals if self._concerns(baseline, one)]
        turns = self._detector.feed(seen(mine))
        self.fed += len(mine)
        fired = [turn for turn in turns if turn.state == "firing"]
        if fired:
            last = fired[-1]
            self.fired = Firing(last.evidence, datetime.fromtimestamp(last.onset, UTC), last.carriers)

    def _concerns(self, baseline: Baseline, one: Arrival) -> bool:
        # What came earlier is part of what was learned.
        later = one.arrived_at >= baseline.until and kept(one.exchange_id, baseline.keep)
        return later and self.rule.takes(one.route) and in_scope(self.key.scope, one.attributes)


def _firing_of(state: dict[str, Any]) -> Firing | None:
    found = state["firing"]
    if not found:
        return None
    carriers = tuple(Carrier(**carrier) for carrier in found["carriers"])
    return Firing(found["evidence"], datetime.fromtimestamp(found["onset"], UTC), carriers)
