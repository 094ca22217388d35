"""The onset of a drop and the evidence about its cause, whatever a page shows."""

from __future__ import annotations

from dataclasses import replace

from germane import alerting
from germane.alert import Alert
from germane.insights.context import InsightContext
from germane.insights.situation import Situation
from germane.insights.verdict import Movement


def explain_drop(context: InsightContext, drop: Movement) -> Situation:
    """Return the situation of a drop with its onset, and with an alert that contains the evidence about its cause.

    The onset of the open alert about the drop wins, so that pages agree with the message that people got. Without an
    alert, there is neither onset nor evidence if there is no clear drop since the reference period.
    """
    situation, current, period = drop.situation, drop.situation.current, drop.situation.reference_period
    names = {"service": situation.service, "scorer": situation.scorer, "route": drop.route}
    alert = drop.alert or Alert(
        id="", key="", rule="", type="drop", labels={name: label for name, label in names.items() if label is not None},
        state="firing", fingerprint=None if current is None else current.fingerprint,
        onset=None if period is None else period.until, starts_at=context.now(), evaluated_at=context.now(),
    )  # fmt: skip
    if drop.alert is None or alert.onset is None:
        alert = alerting.add_onset(context.store.trends, alert, lambda _: True, situation.alerts)
    if drop.alert is None and alert.onset_interval is None:
        return situation
    if drop.route is not None:  # the cause of a drop of the service may not be that of the drop of this route
        alert = replace(alert, labels={**alert.labels, "route": drop.route})
    explained = explain_alert(context, alert)
    onset, deploy = alerting.onset_of(explained), explained.details.get(alerting.DEPLOY) or {}
    return replace(situation, onset=onset and replace(onset, deploy=deploy.get("words")), explained=explained)


def explain_alert(context: InsightContext, alert: Alert) -> Alert:
    """Return an alert with the current evidence about its cause, and the changes around its onset."""
    collector = alerting.EvidenceCollector(context.store, context.settings.breakdowns, as_of=context.now)
    return collector.explain(alert, alerting.find_scope(context.settings.active_rules, alert))
