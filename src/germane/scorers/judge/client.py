"""Connections to servers that speak the OpenAI protocol, and classification of their errors."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from germane.errors import ScoringError, SettingsError
from germane.logging_filters import suppressed_loggers
from germane.score import UnscoredReason
from germane.scorers.base.text import shorten
from germane.scorers.judge.rate_limit import count_request

if TYPE_CHECKING:
    import ssl

    import httpx2
    import openai

PLACEHOLDER_API_KEY = "none"
"""Sent to servers that need no key, because the client requires one."""
CONNECTIONS_PER_CLIENT = 4
MAX_CLIENT_PAUSE = 1.0
"""Seconds. If a server requests a longer pause, the client raises the error instead of waiting."""
MAX_RETRY_AFTER = 86_400.0
"""Seconds. Longer pauses that a server requests are capped at this value."""
MIN_SECRET_CHARACTERS = 6
"""Shorter keys are placeholders such as "test", which may be ordinary words in an error message."""
_KEY = re.compile(r"\b(sk|key|gsk|hf|api)[-_][\w*.-]{6,}", re.IGNORECASE)
_REFUSAL_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "context_length_exceeded"}
)
"""Codes that concern a single request. Other requests may succeed."""
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_OUT_OF_TOKENS = "output limit was reached"
"""OpenAI's error if a reasoning model uses up its tokens before it replies."""


@dataclass(frozen=True)
class ModelServer:
    """Address of a judge's or embedder's server, with timeout and retries."""

    api_key: str | None = None
    base_url: str | None = None
    timeout: float = 60.0
    """Seconds for one request, including retries."""
    retries: int = 1
    """Number of times that the client retries a request after a connection error, a 5xx or a 429."""

    def __repr__(self) -> str:
        return f"ModelServer(timeout={self.timeout}, retries={self.retries})"

    def connect(self) -> openai.AsyncOpenAI:
        """Return a client. It opens no connection before its first request.

        Raises:
            SettingsError: ``base_url`` is invalid.
        """
        import httpx2
        import openai

        try:
            url = urlsplit(self.base_url or "")
            return openai.AsyncOpenAI(
                api_key=self.api_key or (PLACEHOLDER_API_KEY if self.base_url else None),
                # Without the query: the client would append request paths to it.
                base_url=self.base_url and url._replace(query="", fragment="").geturl(),
                default_query=dict(parse_qsl(url.query)),
                max_retries=self.retries,
                http_client=openai.DefaultAsyncHttpxClient(
                    verify=_certificates(),
                    # No read timeout: the deadline around the request also ends slow streams.
                    timeout=openai.Timeout(None, connect=min(5.0, self.timeout)),
                    event_hooks={"request": [count_request], "response": [_disable_long_client_pauses]},
                ),
            )
        except (httpx2.InvalidURL, ValueError):
            raise SettingsError("setting base_url: invalid URL") from None

    @asynccontextmanager
    async def guard_request(self) -> AsyncIterator[None]:
        """Apply the timeout to a request and convert the client's exceptions to :class:`ScoringError`."""
        import openai

        try:
            with suppressed_loggers():
                async with asyncio.timeout(self.timeout):
                    yield
        except TimeoutError:
            raise ScoringError(UnscoredReason.JUDGE_TIMEOUT, f"no reply within {self.timeout:g} s") from None
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__
            raise ScoringError(UnscoredReason.JUDGE_UNREACHABLE, f"no connection: {cause}") from None
        except openai.APIStatusError as error:
            raise ScoringError(
                reason_for_error(error),
                f"HTTP {error.status_code}: {self._hide_secrets(server_message(error))}",
                retry_after=parse_retry_after(error.response.headers),
            ) from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise ScoringError(UnscoredReason.UNPARSABLE, f"the reply is unreadable: {type(error).__name__}") from None

    def _hide_secrets(self, text: str) -> str:
        url = urlsplit(self.base_url or "")  # the path may be secret: some gateways issue such URLs
        query_values = (value for _, value in parse_qsl(url.query))
        for secret in (self.api_key, url.password, url.path.strip("/"), *query_values):
            if secret and len(secret) >= MIN_SECRET_CHARACTERS:
                text = text.replace(secret, "[hidden]")
        return shorten(_KEY.sub("[hidden]", text), 300)


class ClientPool:
    """Clients of one server, created on demand.

    Can be used from several event loops in succession. Clients of a closed loop are dropped, because they can be
    neither used nor closed.
    """

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients = [server.connect()]

    def client_for(self, slot: int) -> openai.AsyncOpenAI:
        """Return the client for a slot. A client checks all its connections on each request, so each has only a few."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            self._clients = []
        self._loop = loop
        while len(self._clients) <= slot // CONNECTIONS_PER_CLIENT:
            self._clients.append(self.server.connect())
        return self._clients[slot // CONNECTIONS_PER_CLIENT]

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        clients, self._clients = self._clients, []
        if self._loop in (None, asyncio.get_running_loop()):
            for client in clients:
                await client.close()


def reason_for_error(error: openai.APIStatusError) -> UnscoredReason:
    """Return the reason for an HTTP error, which determines whether a retry may help and who must act."""
    codes = {str(code).lower() for code in (error.code, error.type) if code}
    if codes & _REFUSAL_CODES or error.status_code == 413:
        return UnscoredReason.JUDGE_REFUSED
    if error.status_code == 429:
        return UnscoredReason.JUDGE_REJECTED if codes & _QUOTA_CODES else UnscoredReason.JUDGE_RATE_LIMITED
    if error.status_code == 408:
        return UnscoredReason.JUDGE_TIMEOUT
    if error.status_code == 400 and _OUT_OF_TOKENS in server_message(error):
        return UnscoredReason.UNPARSABLE
    return UnscoredReason.JUDGE_UNREACHABLE if error.status_code >= 500 else UnscoredReason.JUDGE_REJECTED


def server_message(error: openai.APIStatusError) -> str:
    """Return the server's error message, or ``no explanation``."""
    body: Any = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return str(message or "no explanation").strip()


def parse_retry_after(headers: httpx2.Headers) -> float | None:
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


async def post_json(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any]) -> Any:
    """Send a POST request and return the JSON of the reply, with its objects as namespaces.

    The client handles retries and HTTP errors.

    Raises:
        ValueError: the reply is not JSON.
        RecursionError: the reply is nested too deeply.
    """
    import httpx2

    response = await client.post(path, body=body, cast_to=httpx2.Response)
    return json.loads(response.content, object_hook=lambda members: SimpleNamespace(**members))


@cache
def _certificates() -> ssl.SSLContext:
    """Load the certificates once, because loading is slow."""
    import httpx2

    return httpx2.create_ssl_context()


async def _disable_long_client_pauses(response: httpx2.Response) -> None:
    """Keep the client from sleeping through a long ``Retry-After`` while it occupies a request slot."""
    pause = parse_retry_after(response.headers)
    if pause is not None and pause > MAX_CLIENT_PAUSE:
        response.headers["x-should-retry"] = "false"
