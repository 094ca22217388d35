"""Requests to receivers: one try each, without redirects, and nothing of the address in what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import httpx2

from germane.alerting.channels.channel import NotDelivered
from germane.alerting.channels.network_guard import Guard, GuardedTransport
from germane.errors import SettingsError
from germane.logging_filters import hushed
from germane.settings.channels import WebChannel
from germane.settings.kinds import read_address

TIMEOUT: Final = 10.0
"""Seconds that a receiver may take for each step of an answer, and half of what it may take in all."""
_JSON: Final = {"Content-Type": "application/json", "User-Agent": "germane"}


class Web:
    """POSTs JSON.

    Args:
        guard: Where requests may go; None of addresses that are trusted.
        timeout: Seconds.
    """

    def __init__(self, guard: Guard | None = None, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str] = {}, *, auth: tuple[str, str] | None = None
    ) -> int:
        """Send it once and return the status of the answer, which is a good one.

        Raises:
            NotDelivered: it was not taken; the message names nothing of the address.
        """
        try:
            client = self._client()
        except (ImportError, ValueError) as error:  # what it says may quote the proxy's password
            raise NotDelivered(
                f"the proxy that the environment names cannot be used ({type(error).__name__})"
            ) from None
        try:
            with hushed():  # the client's own lines name the whole address
                async with asyncio.timeout(2 * self._timeout), client:
                    return await self._post(client, url, body, {**_JSON, **headers}, auth)
        except (httpx2.TransportError, TimeoutError) as error:
            raise NotDelivered(type(error).__name__) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise NotDelivered(type(error).__name__, again=False) from None

    def _client(self) -> httpx2.AsyncClient:
        transport = None if self._guard is None else GuardedTransport(self._guard)
        return httpx2.AsyncClient(
            timeout=self._timeout, follow_redirects=False, transport=transport, trust_env=self._guard is None
        )

    async def _post(
        self,
        client: httpx2.AsyncClient,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        auth: tuple[str, str] | None,
    ) -> int:
        # What the receiver says beside its status is not read.
        async with client.stream("POST", url, content=body, headers=headers, auth=auth) as response:
            status = response.status_code
        if response.is_success:
            return status
        again = status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error
        asked = seconds_of(response.headers.get("retry-after", "")) if again else None
        raise NotDelivered(f"status {status}", status=status, again=again, asked=asked)


def web_for(settings: WebChannel, *, timeout: float = TIMEOUT) -> Web:
    """Return what speaks to the receiver of a channel."""
    return Web(None if settings.trusted else Guard(settings.allow), timeout=timeout)


def without_secrets(url: str) -> str:
    """Keep scheme, host and port: path, query and user may be the receiver's secret."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}/***"


def shown_address(reference: str) -> str:
    """Return, for people, the address that stands at a place; the place where none stands there."""
    try:
        return without_secrets(read_address(reference))
    except SettingsError:
        return reference


def seconds_of(text: str) -> float | None:
    """Return for how many seconds ``Retry-After`` asks: a number of them, or a date; None of anything else."""
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
