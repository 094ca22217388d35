"""Access control, limits and queueing of requests, shared by the HTTP and gRPC servers."""

from __future__ import annotations

import asyncio
import hmac
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from germane.otlp import Signal
from germane.receiver.holding import SpanHolder
from germane.receiver.requests import (
    ExportResponse,
    Overloaded,
    build_response,
    parse_request,
)
from germane.receiver.spans import Batch, Waits, read_request
from germane.receiver.staging import STORAGE_RETRY, StagingWriter

MAX_CONCURRENT_REQUESTS: Final = 64
"""Maximum number of requests that have arrived completely and are being processed."""
MAX_ACTIVE_BYTES: Final = 128 * 2**20
"""Maximum size of the decompressed bodies of all requests, complete or not. A single larger request is accepted."""
COMMIT_TIMEOUT: Final = 20.0
"""Seconds after which a client is asked to repeat a request whose commit is still pending."""
BUSY_RETRY: Final = 1
"""Seconds after which clients retry a request that exceeded the limit on concurrent requests."""


@dataclass(slots=True)
class ActiveRequest:
    """A request that is arriving or being processed."""

    peer: str
    """The address of the client, without the port."""
    size: int = 0
    """Size of the body so far, in bytes."""
    slots: int = 0
    """1 while the request is processed. One that is still arriving, however slowly, keeps no other waiting."""


class ExportService:
    """Receives requests from the HTTP and gRPC servers. Thread-safe.

    Args:
        staging: Commits the requests.
        waits: Times after which traces are finished.
        token: The token that clients must present; None for no token.
        holder: Splits requests that are kept for another endpoint; None if they are not forwarded.
        keeps_all: Whether every span is staged in full, because a registered recognizer may read it.
    """

    def __init__(
        self,
        staging: StagingWriter,
        *,
        waits: Waits,
        token: str | None,
        holder: SpanHolder | None = None,
        keeps_all: bool = False,
    ) -> None:
        self._staging = staging
        self._waits = waits
        self._authorization = None if token is None else f"Bearer {token}".encode()
        self._holder = holder
        self._keeps_all = keeps_all
        self._lock = threading.Lock()
        self._slots, self._bytes = Counter[str](), Counter[str]()
        self.is_ready = True
        """Whether the tables exist. Until then, clients are asked to retry."""
        self.received = 0
        """Number of spans and log records in the accepted requests."""
        self.rejected = 0
        """Number of invalid spans and log records, which responses reported."""

    def is_authorized(self, authorization: str) -> bool:
        """Return whether an ``Authorization`` header contains the token."""
        if self._authorization is None:
            return True
        scheme, _, token = authorization.partition(" ")
        return hmac.compare_digest(f"{scheme.capitalize()} {token.strip()}".encode(), self._authorization)

    @contextmanager
    def request(self, peer: str) -> Iterator[ActiveRequest]:
        """Count a client's request as active while the block runs."""
        request = ActiveRequest(peer)
        try:
            yield request
        finally:
            with self._lock:
                self._slots -= Counter({peer: request.slots})
                self._bytes -= Counter({peer: request.size})

    def reserve(self, request: ActiveRequest, size: int) -> None:
        """Reserve memory for ``size`` more bytes of an active request. Raise Overloaded if there is none."""
        with self._lock:
            is_alone = self._bytes.total() == request.size
            if not is_alone and not _has_share(self._bytes, request.peer, size, MAX_ACTIVE_BYTES):
                raise Overloaded("the concurrent requests are too large", BUSY_RETRY)
            self._bytes[request.peer] += size
            request.size += size

    async def receive(self, request: ActiveRequest, signal: Signal, body: bytes, content_type: str) -> ExportResponse:
        """Process a request that has arrived completely, and return its response after the commit.

        Raises:
            InvalidRequest: The body cannot be parsed.
            Overloaded: There are too many requests, or the database is slow or not working.
        """
        if not self.is_ready:
            raise Overloaded("the receiver is waiting for its database; retry later", STORAGE_RETRY, 503)
        with self._lock:
            if not _has_share(self._slots, request.peer, 1, MAX_CONCURRENT_REQUESTS):
                raise Overloaded("too many concurrent requests", BUSY_RETRY)
            self._slots[request.peer] += 1
            request.slots = 1
        batch, committed = await asyncio.to_thread(self.submit, signal, body, content_type)
        future = asyncio.wrap_future(committed)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # the exception counts as retrieved
        if not (await asyncio.wait({future}, timeout=COMMIT_TIMEOUT))[0]:
            # It may still be committed; the repeated spans will be recognized.
            raise Overloaded("the database is slow", STORAGE_RETRY, 503)
        future.result()
        return self.respond(signal, batch)

    def submit(self, signal: Signal, body: bytes, content_type: str) -> tuple[Batch, Future[None]]:
        """Parse a request and queue it for a commit. Raise InvalidRequest, or Overloaded if too much is staged."""
        request, invalid = parse_request(signal, body, content_type)
        batch = read_request(request, self._waits, keeps_all=self._keeps_all)
        batch.received += invalid
        batch.rejected += invalid
        outgoing = [] if self._holder is None else self._holder.split(request)
        return batch, self._staging.submit(batch, outgoing)

    def respond(self, signal: Signal, batch: Batch) -> ExportResponse:
        """Count a committed request and return its response."""
        from germane.tracer import count_received

        count_received({"rejected": batch.rejected})
        with self._lock:
            self.received += batch.received
            self.rejected += batch.rejected
        return build_response(signal, batch.rejected)


def _has_share(used: Counter[str], peer: str, amount: int, limit: int) -> bool:
    """Return whether a peer may use more: at most as much as then is left for others, whatever their number."""
    return used[peer] + amount <= limit - used.total()
