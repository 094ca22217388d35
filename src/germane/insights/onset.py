"""The onset of a drop: that of its alert, or else one that is estimated from the answers, whatever a page shows."""

from __future__ import annotations

from dataclasses import replace

from germane import alerting
from germane.alert import Alert
from germane.alerting import Onset
from germane.insights.context import InsightContext


def load_onset(
    context: InsightContext, scorer: str, service: str, route: str | None, fingerprint: str | None, alert: Alert | None
) -> Onset | None:
    """Return the onset of a drop that led to the level of the last day, or None if there is no clear drop.

    The onset of the open alert about the drop wins, so that pages agree with the message that people got.
    """
    trends, onset = context.store.trends, None if alert is None else alerting.onset_of(alert)
    if onset is None and fingerprint is not None:
        onset = alerting.estimate_onset(
            trends, scorer=scorer, service=service, route=route, fingerprint=fingerprint, until=context.now()
        )
    deploy = None if onset is None else alerting.find_deploy(trends, service, onset)
    return onset if onset is None or deploy is None else replace(onset, deploy=deploy.words)
