"""Evaluation of all rules. Results, alert states and notifications are written in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import uuid4

from germane.alert import IMPROVEMENT, Alert, AlertChange, Notification, Silence
from germane.alerting.drop.baselines import BaselineVersions
from germane.alerting.drop.watcher import DetectorInputs, DropEvaluation, DropWatcher
from germane.alerting.evidence import EvidenceCollector, find_scope
from germane.alerting.judge_check import check_judge
from germane.alerting.notifier import ChannelFilter, Notifier, QuietPeriod
from germane.alerting.onset import add_onset
from germane.alerting.rules import EvaluationContext, RuleSchedule
from germane.alerting.state_machine import AlertStateMachine
from germane.alerting.wording import alert_message
from germane.settings import DAY, Drop, Settings
from germane.storage import AlertTransaction, TrackingStore

ENRICHED_EVENTS: Final = ("fired", "escalated")
"""Event types for which evidence is collected."""
JUDGE_CHECK_INTERVAL: Final = timedelta(minutes=1)


class AlertLog(Protocol):
    """Reads open alerts and silences, and writes evaluations. Implemented by stores and backtests."""

    def list_open(self) -> list[Alert]:
        """Return the open alerts, oldest first."""

    def list_silences(self) -> list[Silence]:
        """Return current and future silences."""

    def commit(self, step: AlertTransaction) -> bool:
        """Write an evaluation. Return False without writing if another process or a person changed an alert first."""


class AlertEvaluator:
    """Evaluates all rules. Only the process that holds the leader lease evaluates.

    Args:
        store: The store that contains the scores and alerts.
        settings: Settings with the rules, budget, poll interval and breakdowns.
        holder: Name of the leader lease and its owner; None in a backtest.
        scorers: Names of the scorers that run in this process.
        channels: Filters by channel name. Each selects the alerts that its channel is notified of.
        clock: Returns the current time in UTC.
        new_id: Creates ids.
        alerts: Alerts and silences. Defaults to the store's.
        inputs: New scores and detector states. Defaults to the store's.
        versions: Baselines. Defaults to the store's.
        as_of: In a backtest, returns the point in time at which data is read.
    """

    def __init__(
        self,
        store: TrackingStore,
        settings: Settings,
        *,
        holder: tuple[str, str] | None,
        scorers: Collection[str],
        channels: Mapping[str, ChannelFilter],
        clock: Callable[[], datetime],
        new_id: Callable[[], str] = lambda: uuid4().hex,
        alerts: AlertLog | None = None,
        inputs: DetectorInputs | None = None,
        versions: BaselineVersions | None = None,
        as_of: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._alerts = alerts or store.alerts
        self._store = store
        self._trends = store.trends
        self._is_backtest = as_of() is not None
        self._judge_checked_at: datetime | None = None
        self._rules = settings.active_rules
        self._maintenance = settings.maintenance
        self._holder = holder
        self._channels = channels
        self._clock = clock
        self._new_id = new_id
        drop_rules = [rule for rule in self._rules if isinstance(rule, Drop)]
        self._drops = DropWatcher(store, drop_rules, holder=holder, clock=clock, inputs=inputs, versions=versions)
        context = EvaluationContext(store=store, budget=settings.budget, scorers=scorers, as_of=as_of)
        self._schedule = RuleSchedule(self._rules, context, min_interval=settings.poll_interval)
        self._evidence = EvidenceCollector(store, settings.breakdowns, as_of=as_of)

    def evaluate(self) -> bool:
        """Evaluate all rules until no new scores remain. Return whether there are notifications to send.

        Blocks while accessing the database.
        """
        notified = False
        while True:
            alerts = self._alerts.list_open()
            drops = self._drops.evaluate({alert.key: alert for alert in alerts})
            written = False
            try:
                step = self._next_step(drops, alerts)
                is_empty = not (step.detector_states or step.processed_score_ids or step.changes)
                written = is_empty or self._alerts.commit(step)
            finally:
                if not written:
                    self.reset()
            if not written:  # another process or a person changed an alert first
                return notified
            notified |= bool(step.notifications)
            if not drops.more:
                return notified

    def reset(self) -> None:
        """Evaluate all rules next time.

        Call this if the last results were not written or if another process has evaluated the rules since.
        """
        self._drops.reset()
        self._schedule.reset()

    def _next_step(self, drops: DropEvaluation, alerts: Sequence[Alert]) -> AlertTransaction:
        now = self._clock()
        machine = AlertStateMachine(now, self._new_id)
        results = [*drops.results, *self._schedule.evaluate(now)]
        changes: list[AlertChange] = []
        applied = machine.apply(alerts, results, has_rule=self._has_rule)
        for change in self._check_judge(alerts, applied, machine, now):
            alert, event = change.alert, change.event
            if event is not None and event.type in ENRICHED_EVENTS:
                scope = find_scope(self._rules, alert)
                if event.type == "fired" and not scope.attributes:
                    known = [*alerts, *(change.alert for change in changes)]
                    alert = add_onset(self._trends, alert, scope.matches_route, known)
                alert = self._evidence.add_to(alert, scope)
                alert = alert if self._is_backtest else check_judge(self._store, alert)
            changes.append(replace(change, alert=replace(alert, message=alert_message(alert))))
        changes, notifications = self._notify(changes, alerts, machine, now)
        return AlertTransaction(
            holder=self._holder,
            detector_states=drops.detector_states,
            processed_score_ids=drops.processed_score_ids,
            changes=changes,
            notifications=notifications,
        )

    def _check_judge(
        self, alerts: Sequence[Alert], changes: Sequence[AlertChange], machine: AlertStateMachine, now: datetime
    ) -> Sequence[AlertChange]:
        """Add the changes of firing drops for which a new round of anchors has shown whether the judge is the cause.

        People are notified again if it is.
        """
        last = self._judge_checked_at
        if self._is_backtest or (last is not None and timedelta() <= now - last < JUDGE_CHECK_INTERVAL):
            return changes
        self._judge_checked_at = now
        by_id = {change.alert.id: change for change in changes}
        for before in alerts:
            change = by_id.get(before.id)
            alert = before if change is None else change.alert
            if alert.state != "firing" or (change is not None and change.event is not None):
                continue
            checked = check_judge(self._store, alert)
            if checked.cause != alert.cause:
                by_id[alert.id] = replace(machine.repeat(checked), before=before)
            elif checked != alert:
                by_id[alert.id] = AlertChange(alert=checked, before=before)
        return list(by_id.values())

    def _notify(
        self, changes: Sequence[AlertChange], alerts: Sequence[Alert], machine: AlertStateMachine, now: datetime
    ) -> tuple[list[AlertChange], list[Notification]]:
        """Return the changes, including those for repeated notifications, and the notifications."""
        before = {alert.id: alert for alert in alerts}
        after = before | {change.alert.id: change.alert for change in changes}
        if not after:
            return [], []

        def repeat_interval(alert: Alert) -> float:
            return next((rule.repeat_interval for rule in self._rules if rule.name == alert.rule), float(DAY))

        open_alerts = [alert for alert in after.values() if alert.is_open]
        quiet: list[QuietPeriod] = [*self._alerts.list_silences(), *self._maintenance]
        notifier = Notifier(self._channels, quiet, now, self._new_id)
        changed = {change.alert.id for change in changes if change.event is not None}
        due = [alert for alert in notifier.due_for_repeat(open_alerts, repeat_interval) if alert.id not in changed]
        repeated = {alert.id: replace(machine.repeat(self._explained(alert)), before=before[alert.id]) for alert in due}
        others = [change for change in changes if change.alert.id not in repeated]
        return notifier.notify([*others, *repeated.values()], open_alerts)

    def _explained(self, alert: Alert) -> Alert:
        """Return an alert with the current evidence about its cause, and the side of the nearest deploy."""
        explained = self._evidence.explain(alert, find_scope(self._rules, alert))
        return replace(explained, message=alert_message(explained))

    def _has_rule(self, alert: Alert) -> bool:
        """Return whether an active rule still evaluates the alert."""
        return any(
            rule.name == alert.rule
            and alert.type in {rule.type, *([IMPROVEMENT] if rule.type == "drop" else [])}
            and (alert.route is None or rule.matches_route(alert.route))
            and (alert.scorer is None or rule.scorer in {None, alert.scorer})
            for rule in self._rules
        )
