"""HTTP requests to the backends of sinks."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import httpx2

from germane.delivery import DeliveryError
from germane.logging_filters import suppressed_loggers
from germane.retry_after import parse_retry_after

TIMEOUT: Final = 10.0
"""Timeout in seconds for each step of a request. The timeout for the whole request is three times as long."""
MAX_REPLY_SIZE: Final = 4 * 2**20
"""Maximum size of a response in bytes."""
_REJECTED: Final = (401, 403)
_WRONG_URL: Final = (404, 405)
_RETRYABLE: Final = (408, 425, 429)
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request."""

    status: int
    data: Any
    """The parsed JSON body; None if it is not JSON."""
    text: str
    """The body."""


class SinkClient:
    """Sends requests without retries, does not follow redirects, and keeps the URL out of errors and logs."""

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The trusted certificates. Reading them takes longer than a request."""
        return httpx2.create_ssl_context()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: Any = None,
        params: Mapping[str, str | int] | None = None,
        accept: tuple[int, ...] = (),
        needs_json: bool = True,
    ) -> Reply:
        """Send a request, with a JSON body if there is one.

        Args:
            method: The HTTP method.
            url: The absolute URL.
            headers: Headers, such as the credentials.
            body: The body, as JSON or, if it is ``bytes``, as it is.
            params: Query parameters.
            accept: Statuses of errors that the caller handles. Their responses are returned.
            needs_json: Whether a successful response without JSON, such as the login page of a proxy, is an error.

        Raises:
            DeliveryError: The request failed or was not accepted.
        """
        content = body if body is None or isinstance(body, bytes) else json.dumps(body, allow_nan=False).encode()
        sent_headers = {"Content-Type": "application/json", "User-Agent": "germane", **headers}
        try:
            with suppressed_loggers():
                async with (
                    asyncio.timeout(3 * self._timeout),
                    httpx2.AsyncClient(timeout=self._timeout, follow_redirects=False, verify=self._tls) as client,
                    client.stream(method, url, content=content, headers=sent_headers, params=params) as response,
                ):
                    text = await _read(response)
        except (httpx2.TransportError, TimeoutError) as error:  # before HTTPError, which includes TransportError
            raise DeliveryError(f"unreachable ({type(error).__name__})") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, UnicodeError, ValueError) as error:
            raise DeliveryError(f"the request cannot be sent ({type(error).__name__})") from None
        data = _parse(text)
        reply = Reply(response.status_code, data, text.decode(errors="replace"))
        if response.status_code in accept:
            return reply
        if not response.is_success:
            raise error_for_status(response.status_code, response.headers)
        if data is None and needs_json:
            problem = f"status {response.status_code}, but the response is not JSON; check the URL"
            raise DeliveryError(problem, status=response.status_code)
        return reply


async def _read(response: httpx2.Response) -> bytes:
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_REPLY_SIZE:
            raise DeliveryError(
                f"the response is larger than {MAX_REPLY_SIZE // 2**20} MiB", status=response.status_code
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def error_for_status(status: int, headers: Mapping[str, str] = {}) -> DeliveryError:
    """Return the error for a status. Whatever the user can correct is retried, so that nothing is lost until then."""
    if status in _REJECTED:
        return DeliveryError(f"status {status}: the key was rejected", status=status)
    if status in _WRONG_URL or status < _CLIENT_ERROR:
        return DeliveryError(f"status {status}: check the URL", status=status)
    if status in _RETRYABLE or status >= _SERVER_ERROR:
        return DeliveryError(f"status {status}", status=status, retry_after=parse_retry_after(headers))
    return DeliveryError(f"status {status}", status=status, retryable=False)
