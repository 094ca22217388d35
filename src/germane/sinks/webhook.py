"""Scores and labels as JSON for a webhook, such as a bridge to a tool that has no sink."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from germane.delivery import DeliveryError, signed_headers
from germane.settings import WebhookSinkSettings, redact_reference, resolve_secret, resolve_url
from germane.sinks.client import SinkClient
from germane.sinks.sink import Sink, SinkItem

PAYLOAD_VERSION: Final = 1


class WebhookSink(Sink):
    """Posts exchanges as JSON. The same exchanges with the same scores have the same ``Idempotency-Key``."""

    def __init__(self, name: str, settings: WebhookSinkSettings, *, client: SinkClient | None = None) -> None:
        super().__init__(name, client=client)
        self._settings = settings

    @property
    def destination(self) -> str:
        """The redacted URL."""
        return redact_reference(self._settings.url)

    def headers(self) -> dict[str, str]:
        """Return no headers. Raise SettingsError if the URL or the secret cannot be read."""
        resolve_url(self._settings.url)
        self._secret()
        return {}

    async def write(self, items: Sequence[SinkItem]) -> Mapping[str, DeliveryError]:
        """Send all items in one request. Any successful response means that all were written."""
        await self._post(build_payload(items))
        return {}

    async def test(self) -> None:
        """Send a request without items."""
        await self._post(build_payload(()))

    async def _post(self, payload: dict[str, Any]) -> None:
        body = json.dumps(payload, allow_nan=False).encode()
        headers = signed_headers(body, sha256(body).hexdigest()[:32], self._secret())
        await self.client.request("POST", resolve_url(self._settings.url), headers=headers, body=body, needs_json=False)

    def _secret(self) -> str | None:
        return None if self._settings.secret is None else resolve_secret(self._settings.secret)


def build_payload(items: Sequence[SinkItem]) -> dict[str, Any]:
    """Return the JSON body as a dict."""
    return {
        "version": PAYLOAD_VERSION,
        "items": [
            {
                **{name: getattr(item, name) for name in ("exchange_id", "trace_id", "span_id", "service", "route")},
                "attributes": dict(item.attributes),
                "scores": [
                    {
                        **{name: getattr(score, name) for name in ("scorer", "value", "label", "explanation", "judge")},
                        "fingerprint": score.fingerprint,
                        "superseded": list(score.superseded),
                        "scored_at": score.scored_at.isoformat(),
                    }
                    for score in item.scores
                ],
                "labels": [
                    {
                        **{name: getattr(label, name) for name in ("id", "score", "comment", "user")},
                        "created_at": label.created_at.isoformat(),
                    }
                    for label in item.labels
                ],
            }
            for item in items
        ],
    }
