"""Where alerts go."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol
from urllib.parse import urlsplit

import httpx2

from germane.errors import GermaneError
from germane.hush import hushed
from germane.monitor.alerts import Alert
from germane.monitor.backoff import Backoff
from germane.threads import Threads

logger = logging.getLogger("germane.monitor")

TIMEOUT: Final = 10.0
"""Seconds that a receiver may take to answer."""


class NotDelivered(GermaneError):
    """A channel did not take an alert. The message names the channel without its secrets."""


class Channel(Protocol):
    """Where alerts go. What ``send`` raises is logged and goes no further."""

    async def send(self, alert: Alert) -> None:
        """Deliver one transition; alerts of one channel are sent one after another."""


class Log:
    """Writes one warning per transition to the log ``germane.monitor``."""

    def __repr__(self) -> str:
        return "Log()"

    async def send(self, alert: Alert) -> None:
        """Write the alert's sentence, on one line whatever the names in it hold."""
        text = "".join(character if character.isprintable() else " " for character in alert.message)
        logger.warning("alert %s: %s", alert.state, text)


class Callback:
    """Calls a function of the user's, sync or async, with each alert."""

    def __init__(self, function: Callable[[Alert], object] | Callable[[Alert], Awaitable[object]]) -> None:
        self._function = function

    def __repr__(self) -> str:
        return f"Callback({getattr(self._function, '__qualname__', type(self._function).__name__)})"

    async def send(self, alert: Alert) -> None:
        """Call the function: a coroutine function on the monitor's loop, any other in a thread."""
        if inspect.iscoroutinefunction(self._function):
            await self._function(alert)
            return
        threads = Threads(1, name="germane-callback")
        try:
            result = await threads.run(self._function, alert)
        finally:
            threads.close()
        if inspect.isawaitable(result):
            await result


class Webhook:
    """POSTs each alert as JSON.

    With a ``secret`` the header ``Germane-Signature`` holds ``sha256=`` and the HMAC-SHA256 of
    ``<Germane-Timestamp>.<body>`` in hexadecimal digits. ``Idempotency-Key`` is the same for every try of one
    transition. Network errors and the answers 429 and 5xx are tried again, at most ``tries`` times in all; redirects
    are not followed.
    """

    def __init__(self, url: str, secret: str | None = None, *, tries: int = 6, backoff: Backoff | None = None) -> None:
        self._url = url
        self._name = _without_secrets(url)
        self._secret = secret
        self._tries = tries
        self._backoff = backoff or Backoff(first=1.0, limit=60.0)

    def __repr__(self) -> str:
        return f"Webhook({self._name})"

    async def send(self, alert: Alert) -> None:
        """Deliver the alert.

        Raises:
            NotDelivered: the receiver refused it, or could not be reached within all tries.
        """
        with hushed():  # the client's own lines name the whole address
            async with httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client:
                await self._send(client, alert, json.dumps(alert.as_dict()).encode())

    async def _send(self, client: httpx2.AsyncClient, alert: Alert, body: bytes) -> None:
        number = 0
        while True:
            number += 1
            problem, asked = await self._post(client, alert, body)
            if problem is None:
                return
            if number == self._tries:
                raise NotDelivered(f"{self!r} took no alert in {self._tries} tries: {problem}")
            await asyncio.sleep(self._backoff.wait(number, at_least=asked).total_seconds())

    async def _post(self, client: httpx2.AsyncClient, alert: Alert, body: bytes) -> tuple[str | None, float | None]:
        """Try once; return None or a problem that may pass, and the seconds that the server asked for."""
        headers = self._headers(alert, body)
        try:
            async with (
                asyncio.timeout(2 * TIMEOUT),
                client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                pass  # what the receiver says beside its status is not read
        except (httpx2.TransportError, TimeoutError) as error:
            return type(error).__name__, None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise NotDelivered(f"{self!r}: {type(error).__name__}") from None
        if response.is_success:
            return None, None
        if response.status_code == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error:
            return f"status {response.status_code}", _seconds(response.headers.get("retry-after", ""))
        raise NotDelivered(f"{self!r} refused an alert: status {response.status_code}")

    def _headers(self, alert: Alert, body: bytes) -> dict[str, str]:
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "germane",
            "Idempotency-Key": f"{alert.key}-{alert.state}-{alert.at.timestamp():.6f}",
            "Germane-Timestamp": timestamp,
        }
        if self._secret is not None:
            signed = hmac.new(self._secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
            headers["Germane-Signature"] = f"sha256={signed.hexdigest()}"
        return headers


def _without_secrets(url: str) -> str:
    """Keep scheme, host and port: path, query and user may be the receiver's secret."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}/***"


def _seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() else None
