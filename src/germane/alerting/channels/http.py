"""HTTP requests of channels: one attempt, no redirects, and error texts without any part of the URL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import httpx2

from germane.alerting.channels.channel import DeliveryError
from germane.alerting.channels.network_guard import GuardedTransport, NetworkGuard
from germane.errors import SettingsError
from germane.logging_filters import suppressed_loggers
from germane.settings import HTTPChannel, resolve_url

TIMEOUT: Final = 10.0
"""Seconds that a receiver may take for each step of a response; the whole response may take twice as long."""
_HEADERS: Final = {"Content-Type": "application/json", "User-Agent": "germane"}


class JsonPoster:
    """Posts JSON.

    Args:
        guard: Restricts the addresses; None if private networks are allowed.
        timeout: Seconds.
    """

    def __init__(self, guard: NetworkGuard | None = None, *, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str] = {}, *, auth: tuple[str, str] | None = None
    ) -> int:
        """Send a request once; return the status of the successful response.

        Raises:
            DeliveryError: The request failed or was rejected. The text contains no part of the URL.
        """
        try:
            client = httpx2.AsyncClient(
                timeout=self._timeout,
                follow_redirects=False,
                transport=None if self._guard is None else GuardedTransport(self._guard),
                trust_env=self._guard is None,
            )
        except (ImportError, ValueError) as error:  # the text may quote the proxy's password
            raise DeliveryError(f"the proxy from the environment is unusable ({type(error).__name__})") from None
        try:
            with suppressed_loggers():  # httpx logs the whole URL
                async with asyncio.timeout(2 * self._timeout), client:
                    # The response body is not read.
                    headers = {**_HEADERS, **headers}
                    async with client.stream("POST", url, content=body, headers=headers, auth=auth) as response:
                        status = response.status_code
        except (httpx2.TransportError, TimeoutError) as error:
            raise DeliveryError(type(error).__name__) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise DeliveryError(type(error).__name__, retryable=False) from None
        if response.is_success:
            return status
        retryable = status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error
        retry_after = parse_retry_after(response.headers.get("retry-after", "")) if retryable else None
        raise DeliveryError(f"status {status}", status=status, retryable=retryable, retry_after=retry_after)


def build_poster(settings: HTTPChannel, *, timeout: float = TIMEOUT) -> JsonPoster:
    """Return the HTTP client for a channel's settings."""
    guard = None if settings.allow_private_networks else NetworkGuard(settings.allowed_networks)
    return JsonPoster(guard, timeout=timeout)


def redact_url(url: str) -> str:
    """Return scheme, host and port of a URL: path, query and user may be secret."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}/***"


def redact_reference(reference: str) -> str:
    """Return the redacted URL that a secret reference points to, or the reference if it cannot be read."""
    try:
        return redact_url(resolve_url(reference))
    except SettingsError:
        return reference


def parse_retry_after(text: str) -> float | None:
    """Return the seconds of a ``Retry-After`` header, which is a number or a date; None if it is neither."""
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
