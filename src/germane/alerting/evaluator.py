"""One look of what watches: all rules, what becomes of the alerts, and whom to tell, written in one step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import uuid4

from germane.alert import Alert, Change, Notification
from germane.alerting import drop
from germane.alerting.evidence import EVERYTHING, About, Evidence
from germane.alerting.messages import sentence
from germane.alerting.notifier import Takes, Teller
from germane.alerting.rules.evaluate import Looks
from germane.alerting.state_machine import Lifecycle
from germane.settings import DAY, Drop, Settings
from germane.storage import Advance, Store

ENRICHED: Final = ("fired", "escalated")
"""What happens to an alert for which evidence is read."""


class Lookout:
    """Looks, and writes what it found. Only the process that holds the office looks.

    Args:
        store: what it looks at, and where alerts stand.
        settings: rules, budget, tick and dimensions.
        holder: the office and who must hold it.
        scorers: names of those that score here.
        channels: by name, which alerts each is told of.
        clock: UTC.
        new_id: makes ids.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        holder: tuple[str, str],
        scorers: Collection[str],
        channels: Mapping[str, Takes],
        clock: Callable[[], datetime],
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self._store = store
        self._rules = settings.watched
        self._holder = holder
        self._channels = channels
        self._clock = clock
        self._drops = drop.Watch(
            store, [rule for rule in self._rules if isinstance(rule, Drop)], holder=holder, clock=clock
        )
        self._new_id = new_id
        self._looks = Looks(store, self._rules, budget=settings.budget, scorers=scorers, tick=settings.tick)
        self._evidence = Evidence(store, settings.trend_by)

    def look(self) -> bool:
        """Look until there is nothing new; return whether somebody is to be told something. Calls the database."""
        told = False
        while True:
            alerts = self._store.open_alerts()
            found = self._drops.look({alert.key: alert for alert in alerts})
            step = self._written(found, alerts)
            told |= step is not None and bool(step.notifications)
            if step is None or not found.more:
                return told

    def _written(self, found: drop.Look, alerts: Sequence[Alert]) -> Advance | None:
        """Return what follows, once it is written; None where somebody was faster."""
        written = False
        try:
            step = self._step(found, alerts)
            written = not (step.progress or step.consumed or step.changes) or self._store.advance(step)
        finally:
            if not written:
                self.forget()
        return step if written else None

    def forget(self) -> None:
        """Read all anew at the next look: another process watches, or a person was faster."""
        self._drops.forget()
        self._looks.forget()

    def _step(self, found: drop.Look, alerts: Sequence[Alert]) -> Advance:
        now = self._clock()
        lifecycle = Lifecycle(now, self._new_id)
        verdicts = [*found.verdicts, *self._looks.look(now)]
        changes = [self._told(change) for change in lifecycle.step(alerts, verdicts, watched=self._is_watched)]
        changes, notifications = self._tell(changes, alerts, lifecycle, now)
        return Advance(
            holder=self._holder,
            progress=found.progress,
            consumed=found.consumed,
            changes=changes,
            notifications=notifications,
        )

    def _tell(
        self, changes: Sequence[Change], alerts: Sequence[Alert], lifecycle: Lifecycle, now: datetime
    ) -> tuple[list[Change], list[Notification]]:
        """Return the changes with those that are due again, and what channels are told."""
        before = {alert.id: alert for alert in alerts}
        by_id = before | {change.alert.id: change.alert for change in changes}
        if not by_id:
            return [], []
        is_open = [alert for alert in by_id.values() if alert.is_open]
        teller = Teller(self._channels, self._store.silences(), now, self._new_id)
        happened = {change.alert.id for change in changes if change.event is not None}
        due = [alert for alert in teller.due(is_open, self._repeat_every) if alert.id not in happened]
        repeated = {alert.id: replace(lifecycle.repeat(alert), before=before[alert.id]) for alert in due}
        kept = [change for change in changes if change.alert.id not in repeated]
        return teller.tell([*kept, *repeated.values()], is_open)

    def _told(self, change: Change) -> Change:
        """Return the change with what a person needs to believe it."""
        alert, event = change.alert, change.event
        if event is not None and event.what in ENRICHED:
            alert = self._evidence.of(alert, self._about(alert))
        return replace(change, alert=replace(alert, message=sentence(alert)))

    def _about(self, alert: Alert) -> About:
        """Return which answers an alert's rule looks at."""
        for rule in self._rules:
            if rule.name == alert.rule and (alert.route is None or rule.takes(alert.route)):
                return About(routes=rule.routes, attributes=getattr(rule, "attributes", {}))
        return EVERYTHING

    def _is_watched(self, alert: Alert) -> bool:
        """Whether there is still a rule for it."""
        return any(
            (rule.name, rule.kind) == (alert.rule, alert.kind)
            and (alert.route is None or rule.takes(alert.route))
            and (alert.scorer is None or rule.scorer in {None, alert.scorer})
            for rule in self._rules
        )

    def _repeat_every(self, alert: Alert) -> float:
        return next((rule.repeat_every for rule in self._rules if rule.name == alert.rule), float(DAY))
