"""Delivery of alerts to webhooks, as JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Final, Generic, TypeVar

from germane.alerting.channels.channel import ChannelMessage, config_error_of
from germane.alerting.channels.http import JsonPoster, build_poster
from germane.alerting.wording import alert_title
from germane.delivery import signed_headers
from germane.settings import (
    DiscordSettings,
    SlackSettings,
    TeamsSettings,
    WebhookSettings,
    redact_reference,
    resolve_secret,
    resolve_url,
)

PAYLOAD_VERSION: Final = 1
SettingsT = TypeVar("SettingsT", bound=WebhookSettings | SlackSettings | TeamsSettings | DiscordSettings)


class WebhookChannel(ABC, Generic[SettingsT]):
    """A base class for channels that post JSON to a secret URL."""

    def __init__(self, settings: SettingsT, *, poster: JsonPoster | None = None) -> None:
        self._settings = settings
        self._poster = poster or build_poster(settings)
        self.include_text = settings.include_text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.url})"

    @property
    def config_error(self) -> str | None:
        """The reason the channel cannot send messages; None if it can."""
        return config_error_of(lambda: resolve_url(self._settings.url))

    @property
    def destination(self) -> str:
        """The redacted URL."""
        return redact_reference(self._settings.url)

    @abstractmethod
    def build_payload(self, message: ChannelMessage) -> dict[str, Any]:
        """Return the JSON body for a message as a dict."""

    def build_headers(self, message: ChannelMessage, body: bytes) -> dict[str, str]:  # noqa: ARG002 - for subclasses
        """Return additional HTTP headers for a message and its encoded body."""
        return {}

    async def send(self, message: ChannelMessage) -> int:
        """Send a message, without retries."""
        body = json.dumps(self.build_payload(message), allow_nan=False).encode()
        headers = self.build_headers(message, body)
        return await self._poster.post(resolve_url(self._settings.url), body, headers)


class Webhook(WebhookChannel[WebhookSettings]):
    """Posts each notification as JSON.

    If a secret is configured, the ``Germane-Signature`` header contains ``sha256=`` followed by the HMAC-SHA256 of
    ``<Germane-Timestamp>.<body>`` in hexadecimal digits. The ``Idempotency-Key`` header is the same for every attempt.
    """

    @property
    def config_error(self) -> str | None:
        """The reason the channel cannot send messages; None if it can."""
        return config_error_of(lambda: (resolve_url(self._settings.url), self._secret()))

    def build_payload(self, message: ChannelMessage) -> dict[str, Any]:
        """Return the JSON body for a message as a dict."""
        return webhook_payload(message)

    def build_headers(self, message: ChannelMessage, body: bytes) -> dict[str, str]:
        """Return the headers that identify the message and, if a secret is configured, sign its body."""
        return signed_headers(body, message.notification.idempotency_key, self._secret())

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
