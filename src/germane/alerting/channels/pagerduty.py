"""Delivery of alerts to PagerDuty, through its Events API v2."""

from __future__ import annotations

import json
from typing import Any, Final

from germane import sanitize
from germane.alert import Alert
from germane.alerting.channels.channel import (
    ChannelMessage,
    config_error_of,
    quote_line,
    worst_exchange_ids,
)
from germane.alerting.channels.http import JsonPoster, build_poster
from germane.alerting.wording import alert_title
from germane.delivery import DeliveryError
from germane.settings import PagerDutySettings, redact_url, resolve_secret

MAX_SUMMARY_LENGTH: Final = 1024
"""PagerDuty truncates longer summaries."""


class PagerDuty:
    """Triggers and resolves one incident per alert. Repeated events for an alert update its incident."""

    def __init__(self, settings: PagerDutySettings, *, poster: JsonPoster | None = None) -> None:
        self._settings = settings
        self._poster = poster or build_poster(settings)
        self.include_text = settings.include_text

    def __repr__(self) -> str:
        return f"PagerDuty({self._settings.routing_key})"

    @property
    def config_error(self) -> str | None:
        """The reason the channel cannot send messages; None if it can."""
        return config_error_of(lambda: resolve_secret(self._settings.routing_key))

    @property
    def destination(self) -> str:
        """The redacted URL."""
        return redact_url(self._settings.url)

    async def send(self, message: ChannelMessage) -> int:
        """Send one event per alert. If an event is rejected, the others are still sent."""
        status, routing_key, rejected = 0, resolve_secret(self._settings.routing_key), None
        for alert in message.alerts:
            body = json.dumps(pagerduty_event(message, alert, routing_key), allow_nan=False).encode()
            try:
                status = await self._poster.post(self._settings.url, body)
            except DeliveryError as error:
                if error.retryable:
                    raise
                rejected = error
        if rejected is not None:
            raise rejected
        return status


def pagerduty_event(message: ChannelMessage, alert: Alert, routing_key: str) -> dict[str, Any]:
    """Return the event that triggers, updates or resolves an alert's incident."""
    identity = {"routing_key": routing_key, "dedup_key": alert.key}
    if alert.state == "resolved":
        return {**identity, "event_action": "resolve"}
    url = message.url_for(alert)
    links = [{"href": target, "text": text} for text, target in message.links_for(alert).items()]
    optional = {"component": alert.scorer, "group": alert.route, "class": alert.rule}
    quotes = [
        {"id": quote.exchange_id, "question": quote_line(quote.question), "answer": quote_line(quote.answer)}
        for quote in message.quotes_for(alert)
    ]
    payload = {
        "summary": sanitize.line(f"{alert_title(alert)}: {message.text_for(alert)}", MAX_SUMMARY_LENGTH),
        "source": sanitize.line(alert.service) or "germane",
        "severity": alert.severity,
        "timestamp": alert.starts_at.isoformat(),
        **{name: sanitize.line(value) for name, value in optional.items() if value},
        "custom_details": {
            **dict(message.facts_for(alert)),
            "Worst exchanges": quotes or worst_exchange_ids(alert),
            "Notification": message.notification.type,
        },
    }
    client = {"client": "germane"} if url is None else {"client": "germane", "client_url": url}
    return {**identity, "event_action": "trigger", **client, **({"links": links} if links else {}), "payload": payload}
