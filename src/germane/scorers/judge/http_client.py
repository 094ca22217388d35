"""The HTTP client for judges and embedders: proxies, certificates, and limits on replies and redirects."""

from __future__ import annotations

import os
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.judge.rate_limit import count_request

MAX_REPLY_BYTES = 1_000_000
"""Default maximum size of a reply, in bytes."""
MAX_REDIRECTS = 2
"""Maximum number of redirects for one request, including its retries."""
CONNECTION_ERRORS = (OSError, OverflowError, ExceptionGroup, anyio.EndOfStream, httpx2.RequestError)
"""Errors of a connection. Lower layers raise some of them, such as OverflowError for an invalid port."""
max_reply_bytes: ContextVar[int] = ContextVar("max_reply_bytes", default=MAX_REPLY_BYTES)
"""Maximum size of the replies to the current request, in bytes."""
redirects_left: ContextVar[list[int]] = ContextVar("redirects_left")
"""A list that contains the number of redirects that the current request may still follow. Unset outside a request."""
_COMPRESSION_BITS: Mapping[str, int] = {
    "": 0, "gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS,
}  # fmt: skip
"""The zlib window size, by encoding."""
_DECOMPRESSED_BYTES = 65_536
"""Maximum size of a decompressed part of a body."""
_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_FILE_VARIABLES: Mapping[str, Callable[[ssl.SSLContext, str], object]] = {
    "SSL_CERT_FILE": lambda context, path: context.load_verify_locations(cafile=path),
    "SSL_CERT_DIR": lambda _, path: list(Path(path).iterdir()),
    "SSLKEYLOGFILE": lambda context, path: setattr(context, "keylog_filename", path),
}
"""Functions that open the TLS file specified by an environment variable, by the name of the variable."""


class ReplyTooLarge(Exception):
    """A server's reply is longer than :data:`max_reply_bytes`, or its compression is unknown."""


@cache
def http_library() -> Any:
    """Return the HTTP library that the installed OpenAI client uses: ``httpx2`` from version 3, ``httpx`` before."""
    import openai

    return import_module("httpx2" if int(openai.__version__.partition(".")[0]) >= 3 else "httpx")


def build_http_client(base_url: str) -> httpx2.AsyncClient:
    """Return an HTTP client for a server. It uses the proxies and certificates from the environment.

    Raises:
        ScoringError: an environment variable specifies a proxy or certificates that cannot be used. The message does
            not include its value, which may contain a password. The reason is ``judge_unreachable``.
    """
    if name := proxy_variable(base_url):
        value = os.environ[name]
        try:  # the HTTP client does not check the port, and fails when it connects
            urlsplit(value if "://" in value else f"http://{value}").port  # noqa: B018 - raises for an invalid port
        except ValueError:
            raise _invalid_proxy(name) from None
    try:
        return httpx2.AsyncClient(
            verify=_certificates(),
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
            event_hooks={"request": [count_request], "response": [_limit_reply, _limit_redirects]},
        )
    except (OSError, ImportError, ValueError, httpx2.InvalidURL) as error:
        raise _environment_error(error) from None


def _invalid_proxy(name: str) -> ScoringError:
    return ScoringError(
        UnscoredReason.JUDGE_UNREACHABLE,
        f"{name} is not the URL of a proxy",
        fix=f"set {name} to a URL such as http://host:port",
        is_unanswered=True,
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Return a TLS context with the certificates. They are loaded only once, because loading is slow."""
    return httpx2.create_ssl_context()


def _environment_error(error: Exception) -> ScoringError:
    """Return an error that names the environment variable that caused the failure, and how to fix it."""

    def unreachable(message: str, fix: str) -> ScoringError:
        return ScoringError(UnscoredReason.JUDGE_UNREACHABLE, message, fix=fix, is_unanswered=True)

    if isinstance(error, OSError):
        for name, load in _FILE_VARIABLES.items():
            try:
                if value := os.environ.get(name):
                    load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), value)
            except OSError as cause:
                return unreachable(f"the file in {name} cannot be used: {type(cause).__name__}", f"correct {name}")
        message = f"the system's certificates cannot be loaded: {type(error).__name__}"
        return unreachable(message, "set SSL_CERT_FILE to the path of a PEM file")
    proxies = {name: value for name, value in os.environ.items() if value and name.lower() in _PROXY_VARIABLES}
    for name, value in proxies.items():
        try:
            httpx2.AsyncHTTPTransport(verify=False, proxy=value if "://" in value else f"http://{value}")
        except ImportError:
            return unreachable(f"the SOCKS proxy in {name} needs an extra package", "pip install socksio")
        except (ValueError, httpx2.InvalidURL):
            return _invalid_proxy(name)
    names = ", ".join(proxies) or "the proxy of the system"
    return unreachable(f"{names} cannot be used: {type(error).__name__}", f"correct {names}")


def proxy_variable(url: str) -> str | None:
    """Return the name of the environment variable with the proxy for a URL; None if requests do not use a proxy."""
    from urllib.request import proxy_bypass

    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    wanted = (f"{parts.scheme}_proxy", "all_proxy")
    return next((name for each in wanted for name, value in os.environ.items() if value and name.lower() == each), None)


_CONNECTION_STATE = attrgetter("_stream._httpcore_stream._stream._connection._h11_state")
"""The state of a reply's connection, which the HTTP library does not publish."""


class _LimitedStream(httpx2.AsyncByteStream):
    """The decompressed body of a reply, limited in size.

    If the body of a successful reply exceeds the limit, reading it raises an error. Other bodies are truncated,
    because their status already shows what happened.
    """

    def __init__(self, stream: Any, encoding: str, limit: int, *, truncates: bool) -> None:
        self._stream, self._left, self._truncates = stream, limit, truncates
        self._decompressor = Decompressor(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            try:
                for part in self._decompressor.decompress(chunk):
                    if len(part) > self._left and not self._truncates:
                        raise ReplyTooLarge("the reply is too large")
                    yield part[: self._left]
                    self._left -= min(len(part), self._left)
                    if not self._left and self._truncates:
                        return
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from None

    async def aclose(self) -> None:
        with suppress(AttributeError):  # in a version of the library that is not known yet, nothing is checked
            state = _CONNECTION_STATE(self._stream)
            if state.trailing_data[0]:  # the library would return it as the reply to the next request
                state.send_failed()  # closes the connection
        await self._stream.aclose()


class Decompressor:
    """Decompresses a body in small parts, so that its size can be limited. It may expand a thousandfold."""

    def __init__(self, encoding: str) -> None:
        """Accept the name of an encoding, or an empty text for a body that is not compressed.

        Raises:
            ReplyTooLarge: the encoding is unknown.
        """
        if encoding not in _COMPRESSION_BITS:
            raise ReplyTooLarge(f"the reply is compressed ({encoding:.20}), which germane did not accept")
        self._bits = _COMPRESSION_BITS[encoding]
        self._decoder: Any = None

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of the next part of the body. Raise zlib.error if it is not compressed in this way."""
        if not self._bits:
            yield data
            return
        while data:
            if self._decoder is None:
                self._decoder = zlib.decompressobj(self._bits)
                if self._bits == zlib.MAX_WBITS and (data[0] & 0x0F) != zlib.DEFLATED:
                    self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)  # "deflate" without the header of zlib
            while part := self._decoder.decompress(data, _DECOMPRESSED_BYTES):
                yield part
                data = self._decoder.unconsumed_tail
            data = self._decoder.unused_data
            if self._decoder.eof:
                self._decoder = None  # a gzip file may have several members


async def _limit_reply(response: Any) -> None:
    """Limit a reply to :data:`max_reply_bytes` after decompression."""
    names = [name.strip() for name in response.headers.pop("content-encoding", "").lower().split(",")]
    encoding = ",".join(name for name in names if name not in ("", "identity"))
    is_error = not 200 <= response.status_code < 300
    if is_error and encoding not in _COMPRESSION_BITS:
        encoding = ""  # the status is sufficient
    limit = max_reply_bytes.get()
    response.stream = _LimitedStream(response.stream, encoding, limit, truncates=is_error)


async def _limit_redirects(response: Any) -> None:
    """Replace a redirect beyond the limit with HTTP status 508, which is not retried."""
    left = redirects_left.get([MAX_REDIRECTS])
    if response.has_redirect_location:
        if not left[0]:
            response.status_code = 508  # Loop Detected
            response.headers["x-should-retry"] = "false"
        left[0] -= 1
