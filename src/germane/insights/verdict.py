"""The verdict: whether answers got worse, on which services and routes, and since when. Facts only; see ``wording``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from germane.alert import Alert, ScoreLevel
from germane.alerting import Onset
from germane.insights.situation import DAY, FLEET_LEVEL, HOUR, Situation, affected_routes, find_rises
from germane.score import MIN_SAMPLES
from germane.settings import SCORE_RULES, SHARE_RULES
from germane.statistics import Comparison, Estimate
from germane.storage import Coverage

VerdictState = Literal[
    "worse", "recovering", "better", "unchanged", "new", "judge_changed", "few", "unscored", "stale", "silent", "empty"
]
"""``few``: not enough data. ``silent``: no answer on the route or of the service. ``empty``: no answer was ever
captured."""
_OBSTACLES: Final[Sequence[VerdictState]] = ("unscored", "judge_changed", "new", "few", "stale", "silent", "empty")
"""Why answers cannot be compared. Of several services, the verdict is about the first of these."""
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

    situation: Situation
    """The situation of the service."""
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
        """Means before and after the change, from the comparison if it has enough scores, or else from the alert."""
        if self.comparison is not None and self.comparison.is_comparable:
            return self.comparison.before, self.comparison.after
        if self.alert is None:
            return None, None
        shifts = (shift for shift in self.alert.shifts if shift.dimension == "route" and shift.name == self.route)
        shift = next(shifts, None)
        if shift is not None:
            return shift.before, shift.since
        return (None, None) if self.is_about_share else (self.alert.baseline, self.alert.current)

    @property
    def hours(self) -> str:
        """The length of the period that the comparison covers, such as "24 h"."""
        return f"{self.situation.spans.get(self.route or '', DAY) / HOUR:.0f} h"

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
    """What a verdict states about the situations of some services, or of one route."""

    state: VerdictState
    situation: Situation
    """The situation of the service with the largest change, or else of one that explains the state."""
    situations: Sequence[Situation]
    """The situations of all services."""
    movements: tuple[Movement, ...] = ()
    """Routes that got worse or better, largest change first, or services as a whole."""
    unjudged: tuple[tuple[Situation, VerdictState], ...] = ()
    """Services of which nothing else is stated, because their answers cannot be compared, with the reason."""

    @property
    def places(self) -> tuple[tuple[str | None, str], ...]:
        """Services and routes that got worse or better, largest change first."""
        return tuple((move.situation.service, move.route) for move in self.movements if move.route is not None)

    @property
    def routes(self) -> tuple[str, ...]:
        """The names of these routes."""
        return tuple(route for _, route in self.places)

    @property
    def n_routes(self) -> int:
        """Number of routes with scores in the last day, or that got worse."""
        scored = {
            (situation.service, line.route)
            for situation in self.situations
            for line in situation.routes
            if line.after is not None
        }
        return len(scored.union(self.places))

    @property
    def n_few(self) -> int:
        """Number of routes with too few scores to compare. Services that are not judged at all are not included."""
        unjudged = {situation.service for situation, _ in self.unjudged}
        judged = (line for one in self.situations if one.service not in unjudged for line in one.routes)
        return sum(not line.is_comparable and line.after is not None for line in judged)

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The open alerts of the routes that got worse."""
        return tuple({move.alert.id: move.alert for move in self.movements if move.alert is not None}.values())

    @property
    def other_alerts(self) -> tuple[Alert, ...]:
        """Open alerts that the verdict does not mention."""
        mentioned = {alert.id for alert in self.alerts}
        alerts = {alert.id: alert for situation in self.situations for alert in situation.alerts}
        return tuple(alert for name, alert in alerts.items() if name not in mentioned)

    @property
    def is_worse(self) -> bool:
        """Whether answers got worse, even if they are recovering."""
        return self.state in {"worse", "recovering"}

    @property
    def began(self) -> datetime | None:
        """Estimated onset of the largest drop, if any."""
        return None if self.onset is None else self.onset.at

    @property
    def onset(self) -> Onset | None:
        """The estimated onset of the largest drop, with its interval and the nearest deploy."""
        return self.situation.onset if self.is_worse else None

    @property
    def began_on(self) -> str | None:
        """The route of that drop, or None for the service as a whole."""
        return self.movements[0].route if self.is_worse else None

    @property
    def change(self) -> Movement | None:
        """The largest change, or that of the only service as a whole. None if there is nothing to compare with."""
        if self.movements:
            return self.movements[0]
        change = self.situation.change if len(self.situations) == 1 else None
        return None if change is None else Movement(situation=self.situation, route=change.route, comparison=change)

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
        means = [situation.current for situation in self.situations if situation.current is not None]
        is_low = any(current.low_share > 0.5 for current in means)
        return "" if (is_low or self.unjudged) and self.state == "unchanged" else _TONES.get(self.state, "")


def build_verdict(*situations: Situation) -> Verdict:
    """Return the verdict on one or more services, or on one route.

    While an alert about answers is open, the state is always ``worse`` or ``recovering``.
    """
    declines = [decline for situation in situations for decline in _find_declines(situation)]
    declines.sort(key=_by_size)
    obstacles = [(situation, obstacle) for situation in situations if (obstacle := _find_obstacle(situation))]
    obstacles.sort(key=lambda pair: _OBSTACLES.index(pair[1]))
    state: VerdictState = "unchanged"
    if declines:
        state = "recovering" if all(map(_is_recovering, declines)) else "worse"
    movements = declines
    if not declines and len(obstacles) == len(situations):
        (situation, state), *obstacles = obstacles
    else:
        movements = movements or _find_rises(situations)
        state = "better" if movements and not declines else state
        hindered = {id(situation) for situation, _ in obstacles}
        judged = [situation for situation in situations if id(situation) not in hindered]
        situation = movements[0].situation if movements else judged[0]
    stated = {id(situation), *(id(move.situation) for move in movements)}
    return Verdict(
        state=state,
        situation=situation,
        situations=situations,
        movements=tuple(movements),
        unjudged=tuple(pair for pair in obstacles if id(pair[0]) not in stated),
    )


def _find_obstacle(situation: Situation) -> VerdictState | None:
    """Return why the last day cannot be compared, or None if it can."""
    if situation.answered_at is None:
        return "empty"
    if situation.now - situation.answered_at > DAY:
        return "stale"
    if situation.current is None:
        # The counts of a service may lag behind its answers, but not those of other services.
        has_answers = situation.route is None and not situation.is_named
        return "unscored" if has_answers or any(one.seen for one in situation.coverage) else "silent"
    if any(line.is_comparable for line in situation.routes):
        return None
    if situation.comparisons and any(line.finding == "judge_changed" for line in situation.comparisons.routes):
        return "judge_changed"
    return "new" if situation.current.has_min_samples else "few"


def _find_declines(situation: Situation) -> list[Movement]:
    """Return the routes of a service that got worse, or the service as a whole."""

    def dropped(line: Comparison) -> bool:
        return line.finding == "dropped" and _is_large_enough(line, situation)

    whole = situation.whole
    lines = sorted(filter(dropped, situation.routes), key=lambda line: line.difference or 0.0)
    lines = lines or ([whole] if whole is not None and dropped(whole) else [])
    declines = {line.route: Movement(situation=situation, route=line.route, comparison=line) for line in lines}
    for alert in situation.alerts:
        if alert.type in SCORE_RULES and alert.scorer in {None, situation.scorer}:
            affected: list[str | None] = [*affected_routes(alert)] or [line.route for line in lines]
            route = situation.route if situation.route in affected else next(iter(affected), None)
            if situation.route is not None and route is None:
                continue  # a service-wide alert, which the page lists below the verdict
            line = next((line for line in situation.routes if line.route == route), None)
            line = whole if route is None else line
            declines[route] = Movement(situation=situation, route=route, comparison=line, alert=alert)
    return list(declines.values())


def _by_size(move: Movement) -> tuple[bool, float, str, str]:
    """Return the key that sorts changes: those with too few scores to state last, then by size."""
    after = move.levels[1]
    is_known = after is not None and after.n >= MIN_SAMPLES
    return not is_known, -move.drop, move.situation.service or "", move.route or ""


def _find_rises(situations: Sequence[Situation]) -> list[Movement]:
    """Return the routes that got better, largest rise first, or else the services as a whole."""
    pairs = [
        (situation, line)
        for situation in situations
        for line in {line.route: line for line in (situation.whole, *situation.routes) if line is not None}.values()
    ]
    found = {id(line) for line in find_rises((line for _, line in pairs), FLEET_LEVEL)}
    rises = [
        Movement(situation=situation, route=line.route, comparison=line)
        for situation, line in pairs
        if id(line) in found and _is_large_enough(line, situation)
    ]
    rises.sort(key=lambda move: move.drop)
    return [move for move in rises if move.route is not None] or rises


def _is_large_enough(line: Comparison, situation: Situation) -> bool:
    return line.difference is not None and abs(line.difference) >= situation.min_drop


def _is_recovering(decline: Movement) -> bool:
    """Return whether the alert is still open although scores are recovering."""
    if decline.alert is None:
        return False
    line, situation = decline.comparison, decline.situation
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
