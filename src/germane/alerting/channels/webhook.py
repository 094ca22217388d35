"""Delivery of alerts to a webhook, as optionally signed JSON."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any, Final

from germane.alerting.channels.channel import ChannelMessage, config_error_of
from germane.alerting.channels.http import JsonPoster, build_poster, redact_reference
from germane.alerting.titles import alert_title
from germane.settings import WebhookSettings, resolve_secret, resolve_url

PAYLOAD_VERSION: Final = 1


class Webhook:
    """Posts each notification as JSON.

    If a secret is configured, the ``Germane-Signature`` header contains ``sha256=`` followed by the HMAC-SHA256 of
    ``<Germane-Timestamp>.<body>`` in hexadecimal digits. The ``Idempotency-Key`` header is the same for every attempt.
    """

    def __init__(self, settings: WebhookSettings, *, poster: JsonPoster | None = None) -> None:
        self._settings = settings
        self._poster = poster or build_poster(settings)
        self.include_text = settings.include_text

    def __repr__(self) -> str:
        return f"Webhook({self._settings.url})"

    @property
    def config_error(self) -> str | None:
        """The reason why the channel cannot send messages; None if it can."""
        return config_error_of(lambda: (resolve_url(self._settings.url), self._secret()))

    @property
    def destination(self) -> str:
        """The redacted URL."""
        return redact_reference(self._settings.url)

    async def send(self, message: ChannelMessage) -> int:
        """Send a message once."""
        body = json.dumps(webhook_payload(message), allow_nan=False).encode()
        timestamp, secret = str(int(time.time())), self._secret()
        headers = {"Idempotency-Key": message.notification.idempotency_key, "Germane-Timestamp": timestamp}
        if secret is not None:
            signature = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
            headers["Germane-Signature"] = f"sha256={signature.hexdigest()}"
        return await self._poster.post(resolve_url(self._settings.url), body, headers)

    def _secret(self) -> str | None:
        return None if self._settings.secret is None else resolve_secret(self._settings.secret)


def webhook_payload(message: ChannelMessage) -> dict[str, Any]:
    """Return the JSON body as a dict. It is the same for every attempt."""
    notification = message.notification
    return {
        "version": PAYLOAD_VERSION,
        "id": notification.idempotency_key,
        "type": notification.type,
        "service": notification.alerts[0].service,
        "created_at": notification.created_at.isoformat(),
        "alerts": [
            {
                **alert.as_dict(),
                "title": alert_title(alert),
                "text": message.text_for(alert),
                "url": message.url_for(alert),
                "runbook_url": message.runbook_for(alert),
                "owner": message.labels_for(alert).get("owner"),
                "rule_labels": {name: value for name, value in message.labels_for(alert).items() if name != "owner"},
                "bad_example": _example(message, message.bad_example_for(alert)),
                "good_example": _example(message, message.good_example_for(alert)),
                "exchanges": [
                    {"id": quote.exchange_id, "question": quote.question, "answer": quote.answer}
                    for quote in message.quotes_for(alert)
                ],
            }
            for alert in notification.alerts
        ],
    }


def _example(message: ChannelMessage, exchange_id: str | None) -> dict[str, str | None] | None:
    return None if exchange_id is None else {"id": exchange_id, "url": message.exchange_url_for(exchange_id)}
