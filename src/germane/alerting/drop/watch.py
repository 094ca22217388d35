"""The rule ``drop`` over a database: each look takes the scores that have come, and says what they mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from germane.alert import Alert, Cause, Severity, key_of
from germane.alerting.detector import tolerance
from germane.alerting.drop import figures
from germane.alerting.drop.history import heard, past_of
from germane.alerting.drop.learner import LEARN_FOR, Learner, is_strange
from germane.alerting.drop.scope import in_scope, scope_of
from germane.alerting.drop.session import Firing, Post, Rule, hash_of
from germane.alerting.rule_result import Verdict
from germane.storage import Arrival, BaselineVersion, Key, Progress, Store

KIND: Final = "drop"
BATCH: Final = 2000
"""Scores that are taken in one look: one transaction."""
REFRESH: Final = timedelta(minutes=10)
"""How old the numbers of an alert may become while scores come in."""
SOON: Final = timedelta(seconds=1)
Names = tuple[str, str]
"""Service and scorer."""
Open = Mapping[str, Alert]
"""The alerts that are open, by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look found. It counts once progress and consumed arrivals are written, both in one transaction."""

    verdicts: Sequence[Verdict] = ()
    progress: Sequence[Progress] = ()
    consumed: Sequence[int] = ()
    """Ids of arrivals."""
    more: bool = False
    """Whether others wait that did not fit."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What an alert shows, and when that was."""

    found: Verdict
    at: datetime


class Watch:
    """Looks for drops. It keeps nothing but what it would find again: all that counts is in the database.

    Args:
        rules: of the kind ``drop``.
        holder: the office, and who looks.
        learn_for: how long a baseline is learned.
    """

    def __init__(
        self,
        store: Store,
        rules: Sequence[Rule],
        *,
        holder: tuple[str, str] | None,
        clock: Callable[[], datetime],
        learn_for: timedelta = LEARN_FOR,
        batch: int = BATCH,
    ) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock
        self._batch = batch
        self._learner = Learner(store, holder=holder, learn_for=learn_for)
        self._known: list[Progress] = []
        self._shown: dict[str, _Numbers] = {}
        """By alert key."""

    def forget(self) -> None:
        """Work out anew what alerts show: of what was found nothing came, or others have looked since."""
        self._shown.clear()

    def look(self, open_alerts: Open | None = None) -> Look:
        """Take the scores that nobody has seen; return what follows. Calls the database.

        Args:
            open_alerts: by key. What fires without one was resolved by hand, and begins anew.
        """
        now = self._clock()
        versions = self._learner.current(now)
        scoped = any(rule.attributes for rule in self._rules)
        arrivals = self._store.arrivals(self._batch, attributes=scoped)
        if self._begin(arrivals, versions):
            versions = self._learner.read()
        posts = self._posts(arrivals, versions, open_alerts)
        verdicts = [self._verdict(post, now, open_alerts or {}) for post in posts]
        progress = [post.progress() for post in posts]
        return Look(
            verdicts=[one for one in verdicts if one],
            progress=[one for one in progress if one],
            consumed=[one.id for one in arrivals],
            more=len(arrivals) == self._batch,
        )

    def _begin(self, arrivals: Sequence[Arrival], versions: Sequence[BaselineVersion]) -> bool:
        """Begin to learn what comes for the first time; return whether anything did."""
        known = {one.key: one for one in versions if one.status == "active"}
        learning = {one.key for one in versions if one.status == "learning"}
        began = False
        for rule in self._rules:
            scope = scope_of(rule.attributes)
            for one in arrivals:
                key = Key(one.service, one.scorer, one.fingerprint, scope)
                if key in learning or not _looks_at(rule, one):
                    continue
                active = known.get(key)
                if active is None:
                    others = any(_same(version.key, key) for version in versions)
                    self._learner.begin(key, "judge_changed" if others else "first", one.arrived_at)
                elif active.baseline and is_strange(active.baseline, one.route):
                    self._learner.begin(key, "route_joined", one.arrived_at)
                else:
                    continue
                learning.add(key)
                began = True
        return began

    def _posts(
        self, arrivals: Sequence[Arrival], versions: Sequence[BaselineVersion], open_alerts: Open | None
    ) -> list[Post]:
        self._known = self._store.detectors(self._known)
        known = {(one.rule, one.service, one.scorer): one for one in self._known}
        active = {one.id for one in versions if one.status == "active"}
        by_names: dict[Names, list[Arrival]] = {}
        for one in arrivals:
            by_names.setdefault((one.service, one.scorer), []).append(one)
        posts = []
        for rule in self._rules:
            old = {(service, scorer) for name, service, scorer in known if name == rule.name}
            for names in sorted(old | by_names.keys()):
                mine = [one for one in by_names.get(names, []) if _looks_at(rule, one)]
                progress = known.get((rule.name, *names))
                if rule.scorer not in {None, names[1]} or not (mine or progress):
                    continue
                if mine or not _rests(progress, rule, active, open_alerts):
                    posts.append(self._post(rule, names, versions, progress, mine, open_alerts))
        return posts

    def _post(
        self,
        rule: Rule,
        names: Names,
        versions: Sequence[BaselineVersion],
        progress: Progress | None,
        arrivals: Sequence[Arrival],
        open_alerts: Open | None,
    ) -> Post:
        key = key_of(rule.name, _labels(*names))
        fires = progress is not None and bool((progress.state["detector"] or {}).get("firing"))
        dismissed = fires and open_alerts is not None and key not in open_alerts
        fingerprint = arrivals[0].fingerprint if arrivals else ""
        post = Post(rule, names, versions, progress=progress, fingerprint=fingerprint, dismissed=dismissed)
        post.take(arrivals)
        return post

    def _verdict(self, post: Post, now: datetime, open_alerts: Open) -> Verdict | None:
        plain = Verdict(
            rule=post.rule.name,
            kind=KIND,
            labels=_labels(post.service, post.scorer),
            state="good",
            pending=post.rule.pending,
            severity=post.rule.severity,
            fingerprint=post.key.fingerprint,
        )
        firing = post.fired or post.firing
        if firing:
            self._shown[plain.key] = self._numbers(post, firing, plain, now, open_alerts.get(plain.key))
            return self._shown[plain.key].found
        shown = self._shown.pop(plain.key, None)
        if post.ended:
            return replace(shown.found if shown else plain, state="good", reason=post.ended, severity=plain.severity)
        if not post.is_watching:
            return None
        return self._recovered(post, plain, now) if plain.key in open_alerts else plain

    def _numbers(self, post: Post, firing: Firing, plain: Verdict, now: datetime, alert: Alert | None) -> _Numbers:
        shown = self._shown.get(plain.key)
        if shown and not post.fired and (not post.fed or timedelta() <= now - shown.at < REFRESH):
            return shown
        return _Numbers(self._bad(post, firing, plain, now, alert), now)

    def _bad(self, post: Post, firing: Firing, plain: Verdict, now: datetime, alert: Alert | None) -> Verdict:
        since = self._since(post, firing.onset, now)
        baseline, version = post.baseline, post.version
        assert baseline is not None  # noqa: S101 - it fires
        assert version is not None  # noqa: S101
        current = figures.level_of(since)
        severity = _severity(post.rule, alert, figures.fallen_by(baseline, since, now))
        carriers = [figures.carried(carrier, baseline, since) for carrier in firing.carriers]
        cause: Cause = "refusals_rising" if firing.carriers[0].half == "zero" else "answers_drifting"
        committed, zero = tolerance(baseline, min_drop=post.rule.min_drop)
        details: dict[str, Any] = {
            "carriers": [one.as_dict() for one in carriers if one],
            "tolerance": {"committed": committed, "zero": zero},
            "baseline": {"version": version.number, "since": f"{baseline.since:%Y-%m-%d}", "reason": version.reason},
            "release": self._release(version, firing.onset, now),
        }
        return replace(
            plain,
            state="bad",
            severity=severity,
            cause=cause,
            value=current.mean if current else None,
            current=current,
            baseline=figures.usual(baseline),
            evidence=firing.evidence,
            onset=firing.onset,
            details=details,
        )

    def _recovered(self, post: Post, plain: Verdict, now: datetime) -> Verdict:
        """Return with what it is over: the last day beside the baseline."""
        baseline = post.baseline
        current = figures.level_of(self._since(post, now - figures.TRAILING, now))
        usual = figures.usual(baseline) if baseline else None
        return replace(plain, current=current, baseline=usual, value=current.mean if current else None)

    def _since(self, post: Post, since: datetime, now: datetime) -> list[Arrival]:
        baseline = post.baseline
        known = {*baseline.routes, *baseline.pooled} if baseline else set()
        found = heard(self._store, post.key, since, max(now, since) + SOON, baseline.keep if baseline else 1.0)
        return [one for one in found if one.route in known and post.rule.takes(one.route)]

    def _release(self, version: BaselineVersion, since: datetime, now: datetime) -> dict[str, Any]:
        """Return what of the application is not what it was when the baseline was learned: before and now."""
        usual = (version.model, version.prompt_version)
        current = self._store.release_of(past_of(version.key, since, max(now, since) + SOON))
        names = ("model", "prompt_version")
        pairs = zip(names, usual, current, strict=True)
        return {name: [before, now] for name, before, now in pairs if before != now and now is not None}


def _severity(rule: Rule, alert: Alert | None, fallen: float | None) -> Severity:
    """Return how bad it is: what was critical stays so until it is over, or means near the limit go back and forth."""
    if rule.critical_drop is None:
        return rule.severity
    was_critical = alert is not None and alert.severity == "critical"
    falls_far = fallen is not None and fallen > rule.critical_drop
    return "critical" if was_critical or falls_far else rule.severity


def _rests(progress: Progress | None, rule: Rule, active: Collection[int], open_alerts: Open | None) -> bool:
    """Whether nothing is new of a detector that was fed nothing: it goes by what it went by, and nothing fires."""
    if progress is None or open_alerts is None or progress.parameters != hash_of(rule):
        return False
    fires = bool((progress.state["detector"] or {}).get("firing"))
    is_open = key_of(rule.name, _labels(progress.service, progress.scorer)) in open_alerts
    return progress.baseline_id in active and not fires and not is_open


def _labels(service: str, scorer: str) -> dict[str, str]:
    return {"service": service, "scorer": scorer}


def _looks_at(rule: Rule, one: Arrival) -> bool:
    fits = rule.scorer in {None, one.scorer} and rule.takes(one.route)
    return fits and in_scope(scope_of(rule.attributes), one.attributes)


def _same(one: Key, other: Key) -> bool:
    return (one.service, one.scorer, one.scope) == (other.service, other.scorer, other.scope)
