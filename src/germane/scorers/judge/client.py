"""Connections to servers with an OpenAI-compatible API, and classification of their errors."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from socket import gaierror
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from germane.errors import ScoringError, SettingsError
from germane.logging_filters import suppressed_loggers
from germane.retry_after import parse_retry_after
from germane.score import UnscoredReason
from germane.scorers.base.text import shorten
from germane.scorers.judge.http_client import (
    CONNECTION_ERRORS,
    MAX_REDIRECTS,
    MAX_REPLY_BYTES,
    ReplyTooLarge,
    http_library,
    max_reply_bytes,
    proxy_variable,
    redirects_left,
)

if TYPE_CHECKING:
    import openai

PLACEHOLDER_API_KEY = "none"
"""The API key sent to servers that do not need one, because the client requires a key."""
DEFAULT_BASE_URL = "https://api.openai.com"
"""The server that the client connects to by default."""
MAX_CONNECT_SECONDS = 5.0
"""Maximum time for opening a connection, in seconds."""
CONNECTIONS_PER_CLIENT = 4
MAX_INLINE_BYTES = 64_000
"""Maximum size of a reply to parse on the event loop. Larger replies are parsed in a thread."""
RETRY_DELAY = 0.5
"""Delay before retrying a request whose reply does not come from a model, in seconds."""
MIN_SECRET_CHARACTERS = 6
"""Minimum length of secrets that are hidden in error messages. Shorter ones are placeholders or common words."""
_URL_WORDS = frozenset({"openai", "completions", "embeddings"})
"""Long words in the paths of compatible servers. All other long parts of a path are hidden in error messages."""
_KEY = re.compile(r"\b(sk|key|gsk|hf|api)[-_][\w*.-]{6,}", re.IGNORECASE)
_REFUSAL_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "context_length_exceeded"}
)
"""Error codes that affect a single request. Other requests may succeed."""
_LAST_PERMANENT_STATUS = 422
"""The highest HTTP status that rejects a key, a model or a request. Higher ones, such as 424 and 499, are temporary."""
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
OTHER_CODES = _REFUSAL_CODES | _QUOTA_CODES | {"invalid_api_key", "model_not_found"}
"""Error codes that explain an error that a request's options have not caused."""
_OUT_OF_TOKENS = "output limit was reached"
"""Part of OpenAI's error message for a reasoning model that reaches the token limit before it replies."""


@dataclass(frozen=True)
class ModelServer:
    """The address, timeout and retries of a judge's or embedder's server."""

    api_key: str | None = None
    base_url: str | None = None
    timeout: float = 60.0
    """Timeout for one request, including retries, in seconds."""
    retries: int = 1
    """Maximum number of retries per request, after connection errors and HTTP statuses 429 and 5xx."""

    def __repr__(self) -> str:
        return f"ModelServer(timeout={self.timeout}, retries={self.retries})"

    def connect(self) -> openai.AsyncOpenAI:
        """Create a client. It opens no connection before its first request.

        Raises:
            SettingsError: ``base_url`` is invalid.
            ScoringError: the environment specifies a proxy or certificates that cannot be used.
        """
        from germane.scorers.judge.openai_client import OpenAIClient

        try:
            url = urlsplit(self.base_url or "")
            url.port  # noqa: B018 - raises for an invalid port
            query = dict(parse_qsl(url.query))
            # Remove the query, because the client would append request paths to it.
            base_url = self.base_url and str(http_library().URL(url._replace(query="", fragment="").geturl()))
        except (ValueError, http_library().InvalidURL):
            raise SettingsError("setting base_url: invalid URL") from None
        return OpenAIClient(
            min(MAX_CONNECT_SECONDS, self.timeout),
            api_key=self.api_key or (PLACEHOLDER_API_KEY if self.base_url else None),
            base_url=base_url or f"{DEFAULT_BASE_URL}/v1",  # the client would use OPENAI_BASE_URL even if it is empty
            default_query=query,
            max_retries=self.retries,
        )

    @asynccontextmanager
    async def guard_request(self, path: str) -> AsyncIterator[None]:
        """Apply the timeout to a request for ``path``, and convert the client's exceptions to :class:`ScoringError`."""
        import openai

        try:
            with suppressed_loggers():
                async with asyncio.timeout(self.timeout):
                    yield
        except TimeoutError:
            raise ScoringError(
                UnscoredReason.JUDGE_TIMEOUT, f"no reply from {self._shown_url(path)} within {self.timeout:g} s"
            ) from None
        except openai.APIStatusError as error:
            raise ScoringError(
                reason_for_error(error),
                f"HTTP {error.status_code}: {self._hide_secrets(server_message(error))} ({self._shown_url(path)})",
                retry_after=parse_retry_after(error.response.headers),
                http_status=error.status_code,
            ) from None
        except NoModelReply as error:
            message = f"HTTP 200, but {self._hide_secrets(str(error))} ({self._shown_url(path)})"
            status = 200 if isinstance(error, ErrorReply) else None
            raise ScoringError(error.reason, message, http_status=status, is_unanswered=status is None) from None
        except ReplyTooLarge as error:
            raise ScoringError(UnscoredReason.UNPARSABLE, str(error)) from None
        except CONNECTION_ERRORS as error:
            raise self._connection_error(error, path) from None
        except (openai.OpenAIError, ValueError) as error:
            raise ScoringError(UnscoredReason.UNPARSABLE, f"the reply is unreadable: {type(error).__name__}") from None

    def _connection_error(self, error: BaseException, path: str) -> ScoringError:
        """Return an error that names the cause, and the server or the proxy, without the secrets in their URLs."""
        cause, fix = _connection_cause(error)
        message, proxy = f"no connection to {self._shown_url(path)}", proxy_variable(self.base_url or DEFAULT_BASE_URL)
        if proxy is not None:
            message += f" through the proxy set in {proxy}"
            fix = f"start the proxy, correct {proxy}, or exclude the server with NO_PROXY"
        message = f"{message}: {self._hide_secrets(cause)}"
        return ScoringError(UnscoredReason.JUDGE_UNREACHABLE, message, fix=fix, is_unanswered=True)

    def _shown_url(self, path: str) -> str:
        """Return a request's URL for display. The user, path and query of the base URL may be secret."""
        url = urlsplit(self.base_url or f"{DEFAULT_BASE_URL}/v1")
        shown = "/".join("[hidden]" if part in self._secrets() else part for part in url.path.rstrip("/").split("/"))
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{shown}{path}"

    def _secrets(self) -> set[str]:
        url = urlsplit(self.base_url or "")  # some gateways issue URLs with a secret path
        parts = (self.api_key, url.password, *url.path.split("/"), *(value for _, value in parse_qsl(url.query)))
        return {part for part in parts if part and len(part) >= MIN_SECRET_CHARACTERS} - _URL_WORDS

    def _hide_secrets(self, text: str) -> str:
        for secret in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(secret, "[hidden]")
        return shorten(_KEY.sub("[hidden]", text), 300)


def _connection_cause(error: BaseException) -> tuple[str, str | None]:
    """Return the system's cause of a connection error, which HTTP clients hide, and its fix if it is more specific."""
    cause: BaseException | None = error
    while cause is not None:
        error = cause if isinstance(cause, OSError) else error
        cause = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause.__cause__ or cause.__context__
    text = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        fix = "set SSL_CERT_FILE to a PEM file with the certificate of the server or of its authority"
        return f"untrusted certificate: {error.verify_message or text}", fix
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {text}", "if the server does not use TLS, start the base URL with http://"
    if isinstance(error, gaierror):
        return f"unknown host: {text}", None
    # The event loop replaces the text of the operating system, and the HTTP library omits it.
    number = errno.ETIMEDOUT if isinstance(error, TimeoutError) else getattr(error, "errno", None)
    return (os.strerror(number) if number else text), None


class ClientPool:
    """Clients for one server, created on demand.

    The pool can be used from several event loops, one after another. Clients that belong to a closed loop are dropped,
    because they can no longer be used or closed.
    """

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients: list[openai.AsyncOpenAI] = []
        with suppress(ScoringError):  # requests fail until the environment is fixed
            self._clients.append(server.connect())

    def client_for(self, slot: int) -> openai.AsyncOpenAI:
        """Return the client of a slot. Each has only a few connections, all of which it checks on each request."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            self._clients = []
        self._loop = loop
        while len(self._clients) <= slot // CONNECTIONS_PER_CLIENT:
            self._clients.append(self.server.connect())
        return self._clients[slot // CONNECTIONS_PER_CLIENT]

    async def aclose(self) -> None:
        """Close the connections that belong to the running event loop."""
        clients, self._clients = self._clients, []
        if self._loop in (None, asyncio.get_running_loop()):
            for client in clients:
                await client.close()


_ERROR_MEMBERS = ("message", "detail", "error_description", "msg", "title", "errors")
"""Members of an error that explain it, in order of preference."""
_OTHER_MEMBERS = frozenset({"choices", "code", "error", "object", "status", "status_code", "success", "type"})
"""Members of a reply or an error that do not contain the reply of another API."""
_STREAM = re.compile(rb"\s*(?:(?:data|event|id|retry): ?\S|:[^\n]*\n|\{[^\n]*\}[ \t\r]*\n\s*\{)")
"""The beginning of server-sent events, or of lines of JSON."""
_OTHER_API_FIX = "set base_url to an address that is compatible with OpenAI's API, which often ends with /v1"


class NoModelReply(Exception):
    """A reply with HTTP status 200 that does not come from a model, such as a gateway's page or an empty body."""

    def __init__(self, message: str, reason: UnscoredReason = UnscoredReason.JUDGE_UNREACHABLE) -> None:
        super().__init__(message)
        self.reason = reason


class ErrorReply(NoModelReply):
    """An error with HTTP status 200."""

    code: object = None
    type: object = None


def error_codes(error: openai.APIStatusError | ErrorReply) -> Collection[str]:
    """Return the codes with which the server explains the error."""
    return {str(code).lower() for code in (error.code, error.type) if code}


def reason_for_error(error: openai.APIStatusError | ErrorReply) -> UnscoredReason:
    """Return the reason for an HTTP error. It determines whether a retry may help."""
    if isinstance(error, ErrorReply):
        return error.reason
    return _reason_for_status(error.status_code, error_codes(error), server_message(error))


def _reason_for_status(status: int, codes: Collection[str], message: str) -> UnscoredReason:
    if not _REFUSAL_CODES.isdisjoint(codes) or status == 413:
        return UnscoredReason.JUDGE_REFUSED
    if status == 429:
        is_quota = not _QUOTA_CODES.isdisjoint(codes)
        return UnscoredReason.JUDGE_REJECTED if is_quota else UnscoredReason.JUDGE_RATE_LIMITED
    if status == 408:
        return UnscoredReason.JUDGE_TIMEOUT
    if status == 400 and _OUT_OF_TOKENS in message:
        return UnscoredReason.UNPARSABLE
    is_permanent = status <= _LAST_PERMANENT_STATUS and status != 409
    return UnscoredReason.JUDGE_REJECTED if is_permanent else UnscoredReason.JUDGE_UNREACHABLE


def server_message(error: openai.APIStatusError | ErrorReply) -> str:
    """Return the server's error message. Without one, return the body, or ``no explanation`` if it is empty."""
    if isinstance(error, ErrorReply):
        return str(error)
    return _find_explanation(error.body) or error.response.text.strip() or "no explanation"


def _find_explanation(body: Any, depth: int = 4) -> str:
    """Return the first text that explains an error, or an empty text. Servers nest it in objects and lists."""
    if isinstance(body, str):
        return body.strip()
    members = vars(body) if isinstance(body, SimpleNamespace) else body
    parts: Iterable[Any] = members if isinstance(members, list) else ()
    if isinstance(members, dict):
        parts = (members.get(name) for name in ("error", *_ERROR_MEMBERS))
    return next((text for part in parts if depth and (text := _find_explanation(part, depth - 1))), "")


async def post_json(
    client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any], *, max_bytes: int = MAX_REPLY_BYTES
) -> Any:
    """Send a POST request, and return the reply's parsed JSON. JSON objects become namespaces.

    The client retries connection errors and HTTP errors. Replies that do not come from a model are retried
    the same number of times.

    Raises:
        NoModelReply: the reply is not a JSON object with choices or vectors, or contains an error.
        ReplyTooLarge: the reply is longer than ``max_bytes``.
    """
    max_reply_bytes.set(max_bytes)
    redirects_left.set([MAX_REDIRECTS])
    for attempt in range(client.max_retries + 1):
        response = await client.post(path, body=dict(body), cast_to=http_library().Response)
        try:
            if len(response.content) <= MAX_INLINE_BYTES:
                return _parse_reply(response.content)
            return await asyncio.to_thread(_parse_reply, response.content)
        except NoModelReply as error:
            if attempt == client.max_retries or not error.reason.is_transient:
                raise
        await asyncio.sleep(RETRY_DELAY)
    raise AssertionError("unreachable")


def _parse_reply(content: bytes) -> Any:
    if not content.strip():
        raise NoModelReply("the body is empty")
    try:
        reply = json.loads(content, object_hook=lambda members: SimpleNamespace(**members))
    except (ValueError, RecursionError):
        if _STREAM.match(content):
            raise _other_api("a stream") from None
        kind = "HTML" if content.lstrip()[:1] == b"<" else "not JSON"
        raise NoModelReply(f"the body is {kind}") from None
    if isinstance(reply, list) and any(isinstance(item, SimpleNamespace) for item in reply):
        raise _other_api("a list")
    if not isinstance(reply, SimpleNamespace):
        raise NoModelReply("the body is not a JSON object")
    if _is_error(error := getattr(reply, "error", None)):
        raise _error_in_reply(error)
    parts = [part for name in ("choices", "data") if isinstance(part := getattr(reply, name, None), list)]
    if not parts:
        raise _other_api(", ".join(sorted(vars(reply)))) if _is_other_reply(reply) else _error_in_reply(reply)
    for part in parts[0]:
        if _is_error(error := getattr(part, "error", None)):
            raise _error_in_reply(error)
    if "choices" in vars(reply) and parts[0] and not any(hasattr(part, "message") for part in parts[0]):
        raise _other_api("choices without a message")
    return reply


def _is_other_reply(reply: SimpleNamespace) -> bool:
    """Return whether an object is a reply in the format of another API, rather than an error."""
    members = vars(reply)
    if any(isinstance(members.get(name), (str, list)) for name in _ERROR_MEMBERS):
        return False
    return any(
        bool(vars(value) if isinstance(value, SimpleNamespace) else value)
        for name, value in members.items()
        if name not in _OTHER_MEMBERS and isinstance(value, (str, list, SimpleNamespace))
    )


def _other_api(found: str) -> NoModelReply:
    message = f"the body is a reply of another API ({found}); {_OTHER_API_FIX}"
    return NoModelReply(message, UnscoredReason.UNPARSABLE)


def _is_error(error: Any) -> bool:
    """Return whether an error field is not empty. An empty namespace is truthy, so its fields are checked."""
    return bool(vars(error) if isinstance(error, SimpleNamespace) else error)


def _error_in_reply(error: Any) -> NoModelReply:
    """Return the exception for a body with an error, which gateways put into various fields, or without a reply."""

    def first(*names: str) -> Any:
        values = (getattr(error, name, None) for name in names)
        return next((value for value in values if isinstance(value, (str, int)) and value), None)

    code = str(first("code", "status", "status_code") or "")
    status = int(code) if code.isascii() and code.isdigit() else 0
    reply = ErrorReply(f"the body is an error: {_find_explanation(error) or 'no explanation'}")
    reply.code, reply.type = first("code"), first("type")
    codes = error_codes(reply)
    if 400 <= status <= 599 or not (_REFUSAL_CODES | _QUOTA_CODES).isdisjoint(codes):
        reply.reason = _reason_for_status(status or 429, codes, str(reply))
    return reply
