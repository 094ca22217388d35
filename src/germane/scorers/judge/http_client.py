"""The HTTP client under the OpenAI client: limits on replies, redirects and pauses, and the environment's settings.

The OpenAI client is built on ``httpx2`` from version 3, and on ``httpx`` before."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.judge.rate_limit import count_request

MAX_REPLY_BYTES = 1_000_000
"""Default limit on the size of a reply."""
MAX_REDIRECTS = 2
"""Maximum number of redirects for one request, including its retries."""
MAX_CLIENT_PAUSE = 1.0
"""Seconds. If a server requests a longer pause, the client raises the error instead of waiting."""
MAX_RETRY_AFTER = 86_400.0
"""Seconds. Longer pauses that a server requests are capped at this value."""
max_reply_bytes: ContextVar[int] = ContextVar("max_reply_bytes", default=MAX_REPLY_BYTES)
"""Limit on the size of the replies to the current request."""
redirects_left: ContextVar[list[int]] = ContextVar("redirects_left")
"""One number: how many redirects the current request may still follow. Unset outside of a request."""
_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_FILE_VARIABLES: Mapping[str, Callable[[ssl.SSLContext, str], object]] = {
    "SSL_CERT_FILE": lambda context, path: context.load_verify_locations(cafile=path),
    "SSL_CERT_DIR": lambda _, path: list(Path(path).iterdir()),
    "SSLKEYLOGFILE": lambda context, path: setattr(context, "keylog_filename", path),
}
"""How the files that the TLS library reads or writes are opened, by environment variable."""


class ReplyTooLarge(Exception):
    """A server's reply is longer than :data:`max_reply_bytes`, or compressed."""


@cache
def http_library() -> Any:
    """Return the HTTP library of the installed OpenAI client."""
    import openai

    return import_module("httpx2" if int(openai.__version__.partition(".")[0]) >= 3 else "httpx")


def build_http_client(connect_timeout: float) -> Any:
    """Return an HTTP client that uses the proxies and certificates that the environment names.

    Raises:
        ScoringError: an environment variable names a proxy or certificates that cannot be used; the message names it
            without its value, which may contain a password. Reason ``judge_unreachable``.
    """
    import openai

    try:
        return openai.DefaultAsyncHttpxClient(
            verify=_certificates(),
            # No read timeout: the deadline around the request also ends slow streams.
            timeout=openai.Timeout(None, connect=connect_timeout),
            max_redirects=MAX_REDIRECTS,
            # The limit on replies counts the bytes received, which may expand a thousandfold.
            headers={"Accept-Encoding": "identity"},
            event_hooks={"request": [count_request], "response": [_limit_reply, _limit_redirects, _limit_pause]},
        )
    except (OSError, ImportError, ValueError, http_library().InvalidURL) as error:
        raise _environment_error(error) from None


def parse_retry_after(headers: Any) -> float | None:
    """Return the delay that a server requests, in seconds, at most a day; None if it requests none."""
    # In the order of the client, which would sleep for the first value that it finds.
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return min(max(0.0, float(headers[name]) * unit), MAX_RETRY_AFTER)

    from email.utils import parsedate_to_datetime

    try:  # a date, compared with the server's own clock
        until = parsedate_to_datetime(headers["retry-after"])
        sent = parsedate_to_datetime(headers.get("date", headers["retry-after"]))
        return min(max(0.0, (until - sent).total_seconds()), MAX_RETRY_AFTER)
    except (KeyError, ValueError, TypeError):
        return None


@cache
def _certificates() -> ssl.SSLContext:
    """Load the certificates once, because loading is slow."""
    context: ssl.SSLContext = http_library().create_ssl_context()
    return context


def _environment_error(error: Exception) -> ScoringError:
    """Return an error that names the environment variable that makes the HTTP client fail, and how to correct it."""

    def unreachable(message: str, fix: str) -> ScoringError:
        return ScoringError(UnscoredReason.JUDGE_UNREACHABLE, message, fix=fix)

    if isinstance(error, OSError):
        for name, load in _FILE_VARIABLES.items():
            try:
                if value := os.environ.get(name):
                    load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), value)
            except OSError as cause:
                return unreachable(
                    f"{name} names a file that cannot be used: {type(cause).__name__}", f"correct {name}"
                )
        message = f"the certificates of the system cannot be loaded: {type(error).__name__}"
        return unreachable(message, "set SSL_CERT_FILE to the path of a PEM file")
    proxies = {name: value for name, value in os.environ.items() if value and name.lower() in _PROXY_VARIABLES}
    for name, value in proxies.items():
        try:
            http_library().AsyncHTTPTransport(verify=False, proxy=value if "://" in value else f"http://{value}")
        except ImportError:
            return unreachable(f"{name} names a SOCKS proxy, which needs another package", "pip install socksio")
        except (ValueError, http_library().InvalidURL):
            return unreachable(f"{name} is not the URL of a proxy", f"set {name} to a URL such as http://host:port")
    names = ", ".join(proxies) or "the proxy of the system"
    return unreachable(f"{names} cannot be used: {type(error).__name__}", f"correct {names}")


def proxy_variable(url: str) -> str | None:
    """Return the environment variable that names the proxy for a URL; None if requests go to the server directly."""
    from urllib.request import proxy_bypass

    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    wanted = (f"{parts.scheme}_proxy", "all_proxy")
    return next((name for each in wanted for name, value in os.environ.items() if value and name.lower() == each), None)


@cache
def _limited_stream_class() -> Any:
    class LimitedStream(http_library().AsyncByteStream):  # type: ignore[misc]  # one of two libraries
        """The body of a reply, which ends with an error at the limit."""

        def __init__(self, stream: Any, limit: int) -> None:
            self._stream, self._left = stream, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                self._left -= len(chunk)
                if self._left < 0:
                    raise ReplyTooLarge
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    return LimitedStream


async def _limit_reply(response: Any) -> None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ReplyTooLarge
    response.stream = _limited_stream_class()(response.stream, max_reply_bytes.get())


async def _limit_redirects(response: Any) -> None:
    """Turn a redirect beyond the limit into HTTP 508, which is not retried."""
    left = redirects_left.get([MAX_REDIRECTS])
    if response.has_redirect_location:
        if not left[0]:
            response.status_code = 508  # Loop Detected
            response.headers["x-should-retry"] = "false"
        left[0] -= 1


async def _limit_pause(response: Any) -> None:
    """Keep the client from sleeping through a long ``Retry-After`` while it occupies a request slot."""
    pause = parse_retry_after(response.headers)
    if pause is not None and pause > MAX_CLIENT_PAUSE:
        response.headers["x-should-retry"] = "false"
