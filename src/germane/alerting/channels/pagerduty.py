"""Alerts to PagerDuty, by its Events API v2."""

from __future__ import annotations

import json
from typing import Any, Final

from germane.alert import Alert
from germane.alerting.channels.channel import NotDelivered, problem_of
from germane.alerting.channels.http import Web, web_for, without_secrets
from germane.alerting.channels.message import Message, facts, quoted, sentence, subject, worst
from germane.sanitize import harmless
from germane.settings import channels as settings
from germane.settings.kinds import read_secret

SUMMARY: Final = 1024
"""Characters that PagerDuty keeps of a summary."""


class PagerDuty:
    """Triggers and resolves an incident per alert. Told twice of the same alert, PagerDuty makes no second one."""

    def __init__(self, given: settings.PagerDuty, *, web: Web | None = None) -> None:
        self._given = given
        self._web = web or web_for(given)
        self.answers = given.answers

    def __repr__(self) -> str:
        return f"PagerDuty({self._given.routing_key})"

    @property
    def problem(self) -> str | None:
        """Why it can send nothing."""
        return problem_of(lambda: read_secret(self._given.routing_key))

    @property
    def where(self) -> str:
        """Its address without what may be secret."""
        return without_secrets(self._given.url)

    async def send(self, message: Message) -> int:
        """Send an event for each alert: one that is refused holds up none of the others."""
        status, key, refused = 0, read_secret(self._given.routing_key), None
        for alert in message.alerts:
            body = json.dumps(event_of(message, alert, key), allow_nan=False).encode()
            try:
                status = await self._web.post(self._given.url, body)
            except NotDelivered as error:
                if error.again:
                    raise
                refused = error
        if refused is not None:
            raise refused
        return status


def event_of(message: Message, alert: Alert, routing_key: str) -> dict[str, Any]:
    """Return the event that triggers, brings up to date or resolves an alert's incident."""
    identity = {"routing_key": routing_key, "dedup_key": alert.key}
    if alert.state == "resolved":
        return {**identity, "event_action": "resolve"}
    link = message.link_to(alert)
    linked = {} if link is None else {"client_url": link, "links": [{"href": link, "text": "the alert"}]}
    return {**identity, "event_action": "trigger", "client": "germane", **linked, "payload": _payload(message, alert)}


def _payload(message: Message, alert: Alert) -> dict[str, Any]:
    optional = {"component": alert.scorer, "group": alert.route, "class": alert.rule}
    return {
        "summary": harmless(f"{subject(alert)}: {sentence(alert)}", SUMMARY),
        "source": harmless(alert.service) or "germane",
        "severity": alert.severity,
        "timestamp": alert.starts_at.isoformat(),
        **{name: harmless(value) for name, value in optional.items() if value},
        "custom_details": _details(message, alert),
    }


def _details(message: Message, alert: Alert) -> dict[str, Any]:
    quotes = message.quotes_of(alert)
    said = [{"id": one.exchange_id, "question": quoted(one.question), "answer": quoted(one.answer)} for one in quotes]
    return {**dict(facts(alert)), "Worst exchanges": said or worst(alert), "Told because": message.notification.what}
