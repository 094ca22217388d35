"""OpenAI's client with another way to send requests: each kind of request is built only once."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx2
import openai
from openai._models import FinalRequestOptions

from germane.retry_after import parse_retry_after
from germane.scorers.judge.http_client import CONNECTION_ERRORS, build_http_client, http_library

_OMITTED_HEADERS = re.compile(rb"^content-length$|idempotency|^x-stainless-")
"""The names of headers that differ between requests, or describe this host."""
MAX_PAUSE = 1.0
"""Longest ``Retry-After`` that the client waits for, in seconds, because it holds a request slot meanwhile."""


class OpenAIClient(openai.AsyncOpenAI):
    """Knows URLs, keys, errors and retries, as its base class does, and sends requests with a client of its own.

    The base class takes as much time to build a request as to send it. It builds the first request for each path. Later
    ones differ only in their bodies.

    Raises:
        ScoringError: the environment specifies a proxy or certificates that cannot be used.
    """

    def __init__(self, connect_timeout: float, **options: Any) -> None:
        library = http_library()
        builder = library.AsyncClient(
            transport=library.MockTransport(lambda _: library.Response(200)),
            # No read timeout is needed, because the deadline for the whole request also ends slow streams.
            timeout=openai.Timeout(None, connect=connect_timeout),
            # Some servers compress nevertheless; see http_client.Decompressor.
            headers={"Accept-Encoding": "identity"},
        )
        super().__init__(**options, http_client=builder)
        self._http = build_http_client(str(self.base_url))
        self._built: dict[str, Any] = {}

    async def post(self, path: str, *, body: Any, **_: Any) -> Any:  # type: ignore[override]  # returns the response
        """Send a request with a JSON body, and return the reply.

        Raises:
            APIStatusError: the reply's HTTP status is not 2xx.
        """
        url, headers, extensions = self._built.get(path) or await self._build(path, body)
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        headers = [*headers, (b"Content-Length", b"%d" % len(content))]
        stream = httpx2.ByteStream(content)
        for left in range(self.max_retries, -1, -1):
            received: httpx2.Headers | None = None
            try:
                request = httpx2.Request("POST", url, headers=headers, stream=stream, extensions=extensions)
                response = await self._http.send(request)
            except CONNECTION_ERRORS:
                if not left:
                    raise
            else:
                received = response.headers
                if response.is_success:
                    return response
                is_long = (parse_retry_after(received) or 0.0) > MAX_PAUSE
                if not left or is_long or not self._should_retry(response):
                    raise self._make_status_error_from_response(response)
            options = FinalRequestOptions.construct(method="post", url=path)
            await asyncio.sleep(self._calculate_retry_timeout(left, options, received))
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _build(self, path: str, body: Any) -> tuple[httpx2.URL, list[tuple[bytes, bytes]], Any]:
        """Return a request's URL and headers, without a key that would mark later ones as its repetitions."""
        built = (await super().post(path, body=body, cast_to=http_library().Response)).request
        headers = [(name, value) for name, value in built.headers.raw if not _OMITTED_HEADERS.search(name.lower())]
        self._built[path] = parts = (httpx2.URL(str(built.url)), headers, built.extensions)
        return parts
