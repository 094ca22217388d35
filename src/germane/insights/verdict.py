"""The verdict: whether answers got worse, on which routes, and when that began. Only facts; see ``wording``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from germane.alert import Alert, ScoreLevel
from germane.alerting import Onset
from germane.insights.situation import DAY, Situation, affected_routes, find_rises
from germane.settings import SCORE_RULES, SHARE_RULES
from germane.statistics import Comparison, Estimate
from germane.storage import Coverage

VerdictState = Literal[
    "worse", "recovering", "better", "unchanged", "new", "judge_changed", "few", "unscored", "stale", "silent", "empty"
]
"""``few``: not enough data. ``silent``: no answer on the route. ``empty``: no answer was ever captured."""
_TONES: Final = {
    "worse": "bad",
    "recovering": "warn",
    "better": "good",
    "unchanged": "good",
    "unscored": "warn",
    "stale": "warn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A route or service that got worse or better, with its comparison and its alert."""

    route: str | None
    """Name of the route, or None for the service as a whole."""
    comparison: Comparison | None = None
    alert: Alert | None = None

    @property
    def drop(self) -> float:
        """The decrease in the mean."""
        before, after = self.levels
        return 0.0 if before is None or after is None else before.mean - after.mean

    @property
    def levels(self) -> tuple[Estimate | ScoreLevel | None, Estimate | ScoreLevel | None]:
        """Levels before and after the change, from the comparison if it has enough scores, or else from the alert."""
        if self.comparison is not None and self.comparison.is_comparable:
            return self.comparison.before, self.comparison.after
        if self.alert is None:
            return None, None
        shifts = (shift for shift in self.alert.shifts if shift.dimension == "route" and shift.name == self.route)
        shift = next(shifts, None)
        return (self.alert.baseline, self.alert.current) if shift is None else (shift.before, shift.since)

    @property
    def period(self) -> Literal["day", "onset", "window", "evaluation"]:
        """The period that the later level covers: the last day, since the alert's onset, its window, or unknown."""
        if self.alert is None or isinstance(self.levels[1], Estimate):
            return "day"
        if self.alert.onset is not None:
            return "onset"
        return "evaluation" if self.alert.window is None else "window"

    @property
    def is_about_share(self) -> bool:
        """Whether the alert is about a share of answers rather than a mean."""
        return self.alert is not None and self.alert.type in SHARE_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """The answers of the last day, none of which was scored."""

    seen: int
    """Number of answers, or 0 if they have not been counted yet."""
    pending: int
    reason: str
    """An :class:`UnscoredReason`, or ``no_judge``, ``no_worker``, ``pending`` or ``undecided``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a verdict states about a situation."""

    state: VerdictState
    situation: Situation
    movements: tuple[Movement, ...] = ()
    """Routes that got worse or better, largest change first, or the service as a whole."""

    @property
    def routes(self) -> tuple[str, ...]:
        """Routes that got worse or better, largest change first."""
        return tuple(movement.route for movement in self.movements if movement.route is not None)

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The open alerts of the routes that got worse."""
        return tuple({move.alert.id: move.alert for move in self.movements if move.alert is not None}.values())

    @property
    def other_alerts(self) -> tuple[Alert, ...]:
        """Open alerts that the verdict does not mention."""
        mentioned = {alert.id for alert in self.alerts}
        return tuple(alert for alert in self.situation.alerts if alert.id not in mentioned)

    @property
    def is_worse(self) -> bool:
        """Whether answers got worse, even if they are recovering."""
        return self.state in {"worse", "recovering"}

    @property
    def began(self) -> datetime | None:
        """Estimated onset of the largest drop, if any."""
        if not self.is_worse:
            return None
        first = self.movements[0]
        if first.alert is not None and first.alert.onset is not None:
            return first.alert.onset
        return None if self.onset is None else self.onset.at

    @property
    def onset(self) -> Onset | None:
        """The estimated onset of the largest drop, with its interval and the nearest deploy."""
        return self.situation.onsets.get(self.movements[0].route or "") if self.is_worse else None

    @property
    def began_on(self) -> str | None:
        """The route of that drop, or None for the service as a whole."""
        return self.movements[0].route if self.is_worse else None

    @property
    def lacks_alert(self) -> bool:
        """Whether answers got worse although no alert is open for any of the routes that got worse."""
        return self.is_worse and not self.alerts

    @property
    def unscored(self) -> Unscored | None:
        """The unscored answers, in the state ``unscored``."""
        return _count_unscored(self.situation) if self.state == "unscored" else None

    @property
    def tone(self) -> str:
        """Color of the verdict: ``bad``, ``warn``, ``good`` or empty. A low mean that is unchanged is not good news."""
        current = self.situation.current
        is_low = current is not None and current.low_share > 0.5
        return "" if is_low and self.state == "unchanged" else _TONES.get(self.state, "")


def build_verdict(situation: Situation) -> Verdict:
    """Return the verdict. While an alert about answers is open, the state is always ``worse`` or ``recovering``."""
    declines = _find_declines(situation)
    if declines:
        is_recovering = all(_is_recovering(decline, situation) for decline in declines)
        state: VerdictState = "recovering" if is_recovering else "worse"
        return Verdict(state=state, situation=situation, movements=tuple(declines))
    obstacle = _find_obstacle(situation)
    if obstacle is not None:
        return Verdict(state=obstacle, situation=situation)
    rises = _find_rises(situation)
    return Verdict(state="better" if rises else "unchanged", situation=situation, movements=tuple(rises))


def _find_obstacle(situation: Situation) -> VerdictState | None:
    """Return why the last day cannot be compared, or None if it can."""
    if situation.answered_at is None:
        return "empty"
    if situation.now - situation.answered_at > DAY:
        return "stale"
    if situation.current is None:
        has_answers = situation.route is None or any(one.seen for one in situation.coverage)
        return "unscored" if has_answers else "silent"
    if any(line.is_comparable for line in situation.routes):
        return None
    if situation.comparisons and any(line.finding == "judge_changed" for line in situation.comparisons.routes):
        return "judge_changed"
    return "new" if situation.current.has_min_samples else "few"


def _find_declines(situation: Situation) -> list[Movement]:
    """Return the routes that got worse, or the service as a whole, sorted by drop, largest first."""

    def dropped(line: Comparison) -> bool:
        return line.finding == "dropped" and _is_large_enough(line, situation)

    whole = situation.whole
    declines = {line.route: Movement(route=line.route, comparison=line) for line in situation.routes if dropped(line)}
    if not declines and whole is not None and dropped(whole):
        declines[whole.route] = Movement(route=whole.route, comparison=whole)
    for alert in situation.alerts:
        if alert.type in SCORE_RULES and alert.scorer in {None, situation.scorer}:
            affected = affected_routes(alert)
            route = situation.route if situation.route in affected else next(iter(affected), None)
            if situation.route is not None and route is None:
                continue  # a service-wide alert, which the page lists below the verdict
            line = next((line for line in situation.routes if line.route == route), None)
            declines[route] = Movement(route=route, comparison=whole if route is None else line, alert=alert)
    return sorted(declines.values(), key=lambda decline: (-decline.drop, decline.route or ""))


def _find_rises(situation: Situation) -> list[Movement]:
    """Return the routes that got better, largest rise first, or else the service as a whole."""
    fingerprint = situation.current and situation.current.fingerprint
    found = [] if situation.comparisons is None else find_rises(situation.comparisons)
    rises = [line for line in found if line.fingerprint == fingerprint and _is_large_enough(line, situation)]
    routes = sorted((line for line in rises if line.route is not None), key=lambda line: -(line.difference or 0.0))
    return [Movement(route=line.route, comparison=line) for line in routes or rises[:1]]


def _is_large_enough(line: Comparison, situation: Situation) -> bool:
    return line.difference is not None and abs(line.difference) >= situation.min_drop


def _is_recovering(decline: Movement, situation: Situation) -> bool:
    """Return whether the alert is still open although scores are recovering."""
    if decline.alert is None:
        return False
    line = decline.comparison
    is_lower = line is not None and line.finding in {"dropped", "lower"} and _is_large_enough(line, situation)
    is_back = line is not None and line.is_comparable and not is_lower
    return decline.alert.state == "recovering" or (is_back and not decline.is_about_share)


def _count_unscored(situation: Situation) -> Unscored:
    """Count the answers of the scorer that saw most, and find out why none was scored."""
    by_scorer: dict[str, list[Coverage]] = {}
    for coverage in situation.coverage:
        if situation.scorer is None or coverage.scorer in {situation.scorer, ""}:
            by_scorer.setdefault(coverage.scorer, []).append(coverage)
    largest = max(by_scorer.values(), key=lambda counts: sum(one.seen for one in counts), default=[])
    pending, reasons = sum(one.pending for one in largest), Counter[str]()
    for one in largest:
        reasons.update(one.failed)
        reasons.update(one.skipped)
    reason = situation.retry_reason
    if reason is None and reasons and pending <= reasons.total():
        reason = min(reasons, key=lambda name: (-reasons[name], name))
    if reason is None and not situation.has_judge:
        reason = "no_judge"
    elif reason is None and not situation.has_worker:
        reason = "no_worker"
    elif reason is None:
        reason = "pending" if pending else "undecided"
    return Unscored(seen=sum(one.seen for one in largest), pending=pending, reason=reason)
