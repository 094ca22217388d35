"""A server that speaks the OpenAI protocol: how it is reached, and what its refusals mean."""

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
from germane.logging_filters import hushed
from germane.score import Reason
from germane.scorers.base.text import shorten
from germane.scorers.judge.rate_limit import count_request

if TYPE_CHECKING:
    import ssl

    import httpx2
    import openai


KEYLESS = "none"
"""Sent where a server needs no key: the client insists on one."""
PATIENCE = 1.0
"""Seconds. A server that asks for a longer pause is not waited for here: the caller has better things to do."""
LONGEST_PAUSE = 86_400.0
"""Seconds of a server's request that are believed."""
LEAST_SECRET = 6
"""Characters. A shorter key is a placeholder such as "test", and may be a word of the message."""
_KEY = re.compile(r"\b(sk|key|gsk|hf|api)[-_][\w*.-]{6,}", re.IGNORECASE)
_REFUSED = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "context_length_exceeded"}
)
"""Codes that are about one request: another may well be answered."""
_OUT_OF_TOKENS = "output limit was reached"
"""What OpenAI says, instead of replying with nothing, of a model that thought until its tokens were used up."""
_EXHAUSTED = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


@dataclass(frozen=True)
class Server:
    """Where a judge or an embedder is, and how long one request to it may take."""

    api_key: str | None = None
    base_url: str | None = None
    timeout: float = 60.0
    """Seconds for one request, its repetitions included."""
    retries: int = 1
    """How often the client repeats a request that broke off or met a 5xx or a 429."""

    def __repr__(self) -> str:
        return f"Server(timeout={self.timeout}, retries={self.retries})"

    def connect(self) -> openai.AsyncOpenAI:
        """Return a client. It opens no connection before its first request.

        Raises:
            SettingsError: the address is none.
        """
        import httpx2
        import openai

        try:
            return openai.AsyncOpenAI(
                api_key=self.api_key or (KEYLESS if self.base_url else None),
                base_url=self._address(),
                default_query=dict(parse_qsl(urlsplit(self.base_url or "").query)),
                max_retries=self.retries,
                http_client=openai.DefaultAsyncHttpxClient(
                    verify=_certificates(),
                    # Reading has no limit of its own: the deadline around the request also ends a slow drip.
                    timeout=openai.Timeout(None, connect=min(5.0, self.timeout)),
                    event_hooks={"request": [count_request], "response": [_hand_back_long_pauses]},
                ),
            )
        except (httpx2.InvalidURL, ValueError):
            raise SettingsError("setting base_url: it is not a web address") from None

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Guard one request: its deadline, and the client's exceptions as :class:`ScoringError` of a judge."""
        import openai

        try:
            with hushed():
                async with asyncio.timeout(self.timeout):
                    yield
        except TimeoutError:
            raise ScoringError(Reason.JUDGE_TIMEOUT, f"no reply within {self.timeout:g} s") from None
        except openai.APIConnectionError as error:
            raise ScoringError(Reason.JUDGE_UNREACHABLE, f"no connection: {type(error.__cause__).__name__}") from None
        except openai.APIStatusError as error:
            raise self._explain(error) from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise ScoringError(Reason.UNPARSABLE, f"the reply is not readable: {type(error).__name__}") from None

    def _address(self) -> str | None:
        """Return the address without its query: the client would set a request's path behind that."""
        return self.base_url and urlsplit(self.base_url)._replace(query="", fragment="").geturl()

    def _explain(self, error: openai.APIStatusError) -> ScoringError:
        reason = reason_of(error)
        message = f"HTTP {error.status_code}: {self._without_secrets(said_by(error))}"
        return ScoringError(reason, message, retry_after=retry_after(error.response.headers))

    def _without_secrets(self, text: str) -> str:
        address = urlsplit(self.base_url or "")  # its path may be one: gateways hand out such addresses
        told = (value for _, value in parse_qsl(address.query))
        for secret in (self.api_key, address.password, address.path.strip("/"), *told):
            if secret and len(secret) >= LEAST_SECRET:
                text = text.replace(secret, "[hidden]")
        return shorten(_KEY.sub("[hidden]", text), 300)


@cache
def _certificates() -> ssl.SSLContext:
    """Return what servers are checked by, read once: it takes long."""
    import httpx2

    return httpx2.create_ssl_context()


def reason_of(error: openai.APIStatusError) -> Reason:
    """Return what a status means: who must act, and whether asking again may help."""
    codes = {str(code).lower() for code in (error.code, error.type) if code}
    if codes & _REFUSED or error.status_code == 413:
        return Reason.JUDGE_REFUSED
    if error.status_code == 429:
        return Reason.JUDGE_REJECTED if codes & _EXHAUSTED else Reason.JUDGE_RATE_LIMITED
    if error.status_code == 408:
        return Reason.JUDGE_TIMEOUT
    if error.status_code == 400 and _OUT_OF_TOKENS in said_by(error):
        return Reason.UNPARSABLE
    return Reason.JUDGE_UNREACHABLE if error.status_code >= 500 else Reason.JUDGE_REJECTED


def said_by(error: openai.APIStatusError) -> str:
    """Return the server's own words, or none."""
    body: Any = error.body
    said = body.get("message") if isinstance(body, dict) else body
    return str(said or "no explanation").strip()


def retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds that a server asks to be left alone, at most a day, or None."""
    # In the client's own order: it would sleep for what it finds first.
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return min(max(0.0, float(headers[name]) * unit), LONGEST_PAUSE)
    return _until(headers)


def _until(headers: httpx2.Headers) -> float | None:
    """Return the seconds until the date that a server names, by the server's own clock."""
    from email.utils import parsedate_to_datetime

    try:
        then = parsedate_to_datetime(headers["retry-after"])
        sent = parsedate_to_datetime(headers.get("date", headers["retry-after"]))
        return min(max(0.0, (then - sent).total_seconds()), LONGEST_PAUSE)
    except (KeyError, ValueError, TypeError):
        return None


async def _hand_back_long_pauses(response: httpx2.Response) -> None:
    """Keep the client from sleeping through a long ``Retry-After`` while it holds one of the few places."""
    pause = retry_after(response.headers)
    if pause is not None and pause > PATIENCE:
        response.headers["x-should-retry"] = "false"


async def post(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any]) -> Any:
    """Return the JSON of a reply; its objects have attributes. Retries and errors of HTTP are the client's.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    import httpx2

    response = await client.post(path, body=body, cast_to=httpx2.Response)
    return json.loads(response.content, object_hook=_as_object)


def _as_object(members: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**members)


CONNECTIONS = 4
"""Of one client."""


class Clients:
    """Clients of one server, each made when it is first needed.

    Serves one event loop after another: what an ended loop left behind is forgotten, as it can neither be used nor
    closed any more.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients = [server.connect()]

    def of(self, slot: int) -> openai.AsyncOpenAI:
        """Return the client of a slot: one looks at all its connections at each request, so they have few each."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            self._clients = []
        self._loop = loop
        while len(self._clients) <= slot // CONNECTIONS:
            self._clients.append(self.server.connect())
        return self._clients[slot // CONNECTIONS]

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        clients, self._clients = self._clients, []
        if self._loop in (None, asyncio.get_running_loop()):
            for client in clients:
                await client.close()
