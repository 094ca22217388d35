"""Scores and labels as JSON for a webhook, such as a bridge to a tool that has no sink."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from germane.delivery import DeliveryError, signed_headers
from germane.records import encode
from germane.settings import WebhookSinkSettings, redact_reference, resolve_secret, resolve_url
from germane.sinks.sink import Sink
from germane.storage import SinkItem

PAYLOAD_VERSION: Final = 1


class WebhookSink(Sink):
    """Posts exchanges as JSON. The same exchanges with the same scores have the same ``Idempotency-Key``."""

    _settings: WebhookSinkSettings

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
        await self._post(items)
        return {}

    async def test(self) -> None:
        """Send a request without items."""
        await self._post(())

    async def _post(self, items: Sequence[SinkItem]) -> None:
        body = json.dumps({"version": PAYLOAD_VERSION, "items": items}, allow_nan=False, default=encode).encode()
        headers = signed_headers(body, sha256(body).hexdigest()[:32], self._secret())
        await self.client.request("POST", resolve_url(self._settings.url), headers=headers, body=body, needs_json=False)

    def _secret(self) -> str | None:
        return None if self._settings.secret is None else resolve_secret(self._settings.secret)
