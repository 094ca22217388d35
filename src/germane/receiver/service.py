"""Access control, limits and queueing of requests, shared by the HTTP and gRPC servers."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

from germane.receiver.holding import SpanHolder
from germane.receiver.requests import (
    ExportResponse,
    Overloaded,
    Signal,
    build_response,
    parse_request,
)
from germane.receiver.spans import Batch, Waits, read_request
from germane.receiver.staging import StagingWriter

MAX_CONCURRENT_REQUESTS: Final = 32
MAX_ACTIVE_BYTES: Final = 128 * 2**20
"""Maximum size of the decompressed bodies of all concurrent requests. A single larger request is accepted."""
COMMIT_TIMEOUT: Final = 20.0
"""Seconds after which a client is asked to repeat a request whose commit is still pending."""
BUSY_RETRY: Final = 1
"""Seconds after which clients retry a request that exceeded the limit on concurrent requests."""


class RequestSlot:
    """An active request and the size of its body so far."""

    def __init__(self, service: ExportService) -> None:
        self._service = service
        self.size = 0

    def grow(self, size: int) -> None:
        """Add ``size`` bytes to the size of the request.

        Raises:
            Overloaded: The active requests are too large together.
        """
        self._service.reserve(self, size)


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
        self._active = self._active_bytes = 0
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
    def slot(self) -> Iterator[RequestSlot]:
        """Count a request as active, and reserve memory for it, while the block runs.

        Raises:
            Overloaded: Too many requests are active.
        """
        slot = RequestSlot(self)
        with self._lock:
            if self._active >= MAX_CONCURRENT_REQUESTS:
                raise Overloaded("too many concurrent requests", BUSY_RETRY)
            self._active += 1
        try:
            yield slot
        finally:
            with self._lock:
                self._active -= 1
                self._active_bytes -= slot.size

    def reserve(self, slot: RequestSlot, size: int) -> None:
        """Reserve memory for ``size`` more bytes of an active request.

        Raises:
            Overloaded: The active requests are too large together.
        """
        with self._lock:
            if self._active > 1 and self._active_bytes + size > MAX_ACTIVE_BYTES:
                raise Overloaded("the concurrent requests are too large", BUSY_RETRY)
            self._active_bytes += size
            slot.size += size

    def submit(self, signal: Signal, body: bytes, content_type: str) -> tuple[Batch, Future[None]]:
        """Parse a request and queue it for a commit.

        Raises:
            InvalidRequest: The body cannot be parsed.
            Overloaded: The queue is full, or too much is staged.
        """
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
