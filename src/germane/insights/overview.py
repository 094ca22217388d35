"""What the overview shows, read in a few snapshots: is it worse, where, and which answers are the worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from germane.alert import Alert
from germane.insights.charts import ChartMark
from germane.insights.context import Desk
from germane.insights.events import began, chart_marks
from germane.insights.health import Frame, health_of
from germane.insights.last_day import Recent, recent_of, rule_of
from germane.insights.situation import DAY, MEANS, MIN_DROP, RATES, TOLD, Situation, onset_of
from germane.insights.verdict import Verdict, verdict_of
from germane.insights.window import View
from germane.insights.worst_answers import NONCOMMITTAL, Worst, disagreement_of, worst_answers
from germane.storage import Bucket, Comparison, Coverage, Disagreement, RouteSummary

CARDS: Final = 12
"""Routes that have a chart; the others are listed."""
_FLAGS: Final = 50
"""Marks on a chart, and alerts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One route: the last day, how that differs from before, and its line."""

    route: str
    current: RouteSummary | None
    """Of the last day, by the newest fingerprint; None without a score."""
    line: Comparison | None
    buckets: Sequence[Bucket]
    fell: bool
    """Whether it dropped for sure, or an alert about it is open."""

    @property
    def difference(self) -> float | None:
        """Now minus before; None where it cannot be told."""
        return None if self.line is None else self.line.difference

    @property
    def usual(self) -> float | None:
        """The mean before, where there were enough scores."""
        before = None if self.line is None else self.line.before
        return before.mean if before is not None and before.enough else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All that the first page shows."""

    now: datetime
    recent: Recent
    situation: Situation
    verdict: Verdict
    elsewhere: Sequence[Alert]
    """Open alerts of other services."""
    buckets: Sequence[Bucket]
    """Of the window of the view."""
    cards: Sequence[Card]
    """The largest drop that is sure first."""
    unseen: Sequence[str]
    """Routes that have no card."""
    marks: Sequence[ChartMark]
    worst: Sequence[Worst]
    """Of the last day."""
    disagreement: Disagreement | None
    """Between people and the judge, of the answers in the window of the view; None where nobody has labelled one."""
    frame: Frame

    @property
    def coverage(self) -> Coverage | None:
        """What became of the exchanges of the last day, by the scorer on show."""
        current = self.recent.current
        if current is not None:
            return current.coverage
        mine = [one for one in self.recent.coverage if one.scorer == self.recent.scorer]
        seen, scored = sum(one.seen for one in mine), sum(one.scored for one in mine)
        return Coverage(service="", route="", scorer="", seen=seen, scored=scored) if mine else None

    @property
    def has_refusals(self) -> bool:
        """Whether some of the worst answers answer nothing."""
        return any(one.score.label == NONCOMMITTAL for one in self.worst)

    @property
    def usual_name(self) -> str:
        """What the dashed lines are, in a word: the baseline, or the mean of the time before."""
        before = self.recent.before
        return "baseline" if before is not None and before.baseline is not None else "before"

    @property
    def change(self) -> Comparison | None:
        """The service as a whole beside the time before, its routes weighed as they were then."""
        whole = self.situation.whole
        return None if whole is None or not whole.compared else whole

    @property
    def change_tone(self) -> str:
        """Whether it is worse, or better: for sure, and by as much as the verdict asks for."""
        change = self.change
        if change is None or abs(change.difference or 0.0) < self.situation.min_drop:
            return ""
        return {"dropped": "bad", "higher": "good"}.get(change.finding, "")

    @property
    def change_note(self) -> str:
        """Why it is neither; empty where it is."""
        if self.change is None or self.change_tone:
            return ""
        return "too small to matter" if self.change.finding in {"dropped", "higher"} else "not clear"


def read(desk: Desk, view: View) -> Overview:
    """Read all of it.

    Raises:
        StorageError: the database is away, or its tables are older or newer.
    """
    store, now = desk.store, desk.now()
    recent = recent_of(desk, view, now)
    alerts = [one for one in store.open_alerts() if one.state in TOLD]
    frame = Frame(open_alerts=len(alerts), health=health_of(desk))
    asked: dict[str, Any] = {"scorer": recent.scorer or "", "service": recent.service, "bucket": view.bucket}
    buckets, of_routes = store.trends(**asked, since=view.since, until=view.until)
    by_route = _by_route(of_routes)
    situation = _situation(desk, view, recent, frame, alerts, by_route)
    verdict = verdict_of(situation)
    cards = _cards(recent, situation, verdict, by_route)
    return Overview(
        now=now,
        recent=recent,
        situation=situation,
        verdict=verdict,
        elsewhere=[one for one in alerts if one.service not in {"", recent.service}],
        buckets=buckets,
        cards=cards[:CARDS],
        unseen=[one.route for one in cards[CARDS:]],
        marks=_marks(desk, view, recent),
        worst=[] if recent.current is None else worst_answers(store, recent.current, now - DAY, now),
        disagreement=None if recent.current is None else disagreement_of(store, recent.current, view.since, view.until),
        frame=frame,
    )


def _by_route(buckets: Sequence[Bucket]) -> dict[str, list[Bucket]]:
    found: dict[str, list[Bucket]] = {}
    for one in buckets:
        found.setdefault(one.group or "", []).append(one)
    return found


def _situation(
    desk: Desk,
    view: View,
    recent: Recent,
    frame: Frame,
    alerts: Sequence[Alert],
    by_route: Mapping[str, Sequence[Bucket]],
) -> Situation:
    rule, settings, current = rule_of(desk.settings, recent.scorer), desk.settings, recent.current
    scored = [one.latest for one in (*recent.fingerprints, *_mine(recent))]
    troubles = [] if current is not None else desk.store.troubles()
    return Situation(
        scorer=recent.scorer,
        now=recent.lately.until,
        zone=view.zone,
        current=current,
        usual=recent.usual,
        before=recent.before,
        comparisons=recent.comparisons,
        min_drop=MIN_DROP if rule is None else rule.min_drop,
        onsets=_onsets(recent, by_route),
        onset_step=view.bucket,
        alerts=[one for one in alerts if one.service in {"", recent.service}],
        coverage=recent.coverage,
        answered_at=frame.health.pulse.captured_at,
        scored_at=max(scored, default=None),
        trouble=next((one.reason.value for one in troubles), None),
        has_judge=settings.has_server or bool(settings.scorers) or settings.judge == "local",
        has_worker=bool(frame.health.alive),
    )


def _mine(recent: Recent) -> list[Any]:
    return [one for one in recent.wide.services if (one.service, one.scorer) == (recent.service, recent.scorer)]


def _onsets(recent: Recent, by_route: Mapping[str, Sequence[Bucket]]) -> dict[str, datetime]:
    """Return since when about each route is lower than before, where the window of the view shows that."""
    if recent.current is None or recent.comparisons is None:
        return {}
    fingerprint = recent.current.fingerprint
    usual = {one.route: one.before for one in recent.comparisons.routes if one.fingerprint == fingerprint}
    found: dict[str, datetime] = {}
    for route, buckets in by_route.items():
        before = usual.get(route)
        onset = None if before is None else onset_of(buckets, fingerprint, before.mean)
        found |= {} if onset is None else {route: onset}
    return found


def _cards(
    recent: Recent, situation: Situation, verdict: Verdict, by_route: Mapping[str, Sequence[Bucket]]
) -> list[Card]:
    """Return all routes: first those that fell, the largest drop first, then by difference, then by scores."""
    fallen = verdict.routes if verdict.state in {"worse", "recovering"} else ()
    current = {one.route: one for one in recent.routes if one.newest}
    lines = {one.route: one for one in situation.routes}
    cards = [
        Card(
            route=route,
            current=current.get(route),
            line=lines.get(route),
            buckets=by_route.get(route, ()),
            fell=route in fallen,
        )
        for route in sorted({*by_route, *current})
    ]
    return sorted(cards, key=lambda one: _place(one, fallen))


def _place(card: Card, fallen: Sequence[str]) -> tuple[int, float, int]:
    rank = fallen.index(card.route) if card.fell else len(fallen)
    n = sum(one.n for one in card.buckets)
    return rank, 3.0 if card.difference is None else card.difference, -n


def _marks(desk: Desk, view: View, recent: Recent) -> Sequence[ChartMark]:
    """Return deploys and the alerts about answers that began in the window of the view."""
    marks = desk.store.marks(since=view.since, until=view.until, service=recent.service, limit=_FLAGS)
    alerts = desk.store.alerts(since=view.since - DAY, limit=_FLAGS)
    mine = [one for one in alerts if one.service == recent.service and one.scorer in {None, recent.scorer}]
    told = [one for one in mine if one.kind in MEANS | RATES and one.fired_at is not None]
    return chart_marks([one for one in told if view.since <= began(one) < view.until], marks)
