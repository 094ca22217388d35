"""Alerts as JSON, signed."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Any, Final

from germane.alerting.channels.channel import problem_of
from germane.alerting.channels.http import Web, shown_address, web_for
from germane.alerting.channels.message import Message
from germane.settings import channels as settings
from germane.settings.kinds import read_address, read_secret

VERSION: Final = 1
"""Of the body's shape."""


class Webhook:
    """POSTs each notification as JSON.

    With a secret the header ``Germane-Signature`` holds ``sha256=`` and the HMAC-SHA256 of
    ``<Germane-Timestamp>.<body>`` in hexadecimal digits. ``Idempotency-Key`` is the same for every try.
    """

    def __init__(self, given: settings.Webhook, *, web: Web | None = None) -> None:
        self._given = given
        self._web = web or web_for(given)
        self.answers = given.answers

    def __repr__(self) -> str:
        return f"Webhook({self._given.url})"

    @property
    def problem(self) -> str | None:
        """Why it can send nothing."""
        return problem_of(lambda: (read_address(self._given.url), self._secret()))

    @property
    def where(self) -> str:
        """Its address without what may be secret."""
        return shown_address(self._given.url)

    async def send(self, message: Message) -> int:
        """Send it once."""
        body = json.dumps(body_of(message), allow_nan=False).encode()
        headers = {"Idempotency-Key": message.notification.idempotency_key, **self._signed(body)}
        return await self._web.post(read_address(self._given.url), body, headers)

    def _signed(self, body: bytes) -> dict[str, str]:
        timestamp, secret = str(int(time.time())), self._secret()
        if secret is None:
            return {"Germane-Timestamp": timestamp}
        signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
        return {"Germane-Timestamp": timestamp, "Germane-Signature": f"sha256={signed.hexdigest()}"}

    def _secret(self) -> str | None:
        return None if self._given.secret is None else read_secret(self._given.secret)


def body_of(message: Message) -> dict[str, Any]:
    """Return what is sent: the same for every try."""
    told = message.notification
    return {
        "version": VERSION,
        "id": told.idempotency_key,
        "what": told.what,
        "service": told.alerts[0].service,
        "created_at": told.created_at.isoformat(),
        "alerts": [
            {
                **alert.as_dict(),
                "link": message.link_to(alert),
                "exchanges": [
                    {"id": one.exchange_id, "question": one.question, "answer": one.answer}
                    for one in message.quotes_of(alert)
                ],
            }
            for alert in told.alerts
        ],
    }
