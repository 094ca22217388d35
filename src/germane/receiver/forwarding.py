"""Forwarding of everything that is received to another OTLP endpoint, at least once.

Requests are forwarded unchanged. The spans of exchanges that are scored wait for their scores, which are added to their
attributes.
"""

from __future__ import annotations

import gzip
import logging
import random
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple

import httpx2
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from germane.errors import StorageError, error_location
from germane.logging_filters import suppressed_loggers
from germane.receiver.requests import PROTOBUF, Signal, compress_request
from germane.receiver.threads import BackgroundThread
from germane.retry_after import parse_retry_after
from germane.storage import QueuedRequest, TrackingStore, new_worker_id

TIMEOUT: Final = 10.0
"""Seconds for each step of a request."""
BATCH: Final = 32
"""Maximum number of requests that are claimed at once."""
LEASE: Final = timedelta(seconds=90)
"""Time after which requests that a killed process has claimed are sent by another one."""
BATCH_TIME: Final = LEASE.total_seconds() / 3
"""Seconds after which no further request of a batch is sent."""
MAX_COMBINED_SIZE: Final = 2**20
"""Maximum size in bytes of the spans that are sent in one request, unless a single one is larger."""
POLL_INTERVAL: Final = 0.5
"""Seconds between two checks of an empty queue."""
DELAYS: Final = (1.0, 30.0)
"""Initial and maximum number of seconds between two attempts."""
_RETRYABLE: Final = frozenset({408, 429, 502, 503, 504})
"""HTTP statuses after which a request is retried. OTLP specifies all but the first one."""
_logger = logging.getLogger("germane.receiver")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardTarget:
    """The OTLP endpoint that requests are forwarded to."""

    url: str
    """The base URL, without ``/v1/traces``."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of each request, such as ``Authorization``."""


class _TargetUnavailable(Exception):
    """The target did not accept a request. The request is retried after ``retry_after`` seconds, if the target gave a
    delay.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class _Request(NamedTuple):
    """A request to the target."""

    ids: list[int]
    """The queued requests that it consists of."""
    signal: Signal
    body: bytes
    """An OTLP protobuf message, compressed with gzip."""


class Forwarder(BackgroundThread):
    """Sends queued requests in a background thread, in the order of their arrival.

    A request stays in the database until the target has accepted it. It can be sent twice, if this process is killed
    between the answer and the deletion.
    """

    def __init__(self, store: TrackingStore, target: ForwardTarget) -> None:
        super().__init__("germane-forwarding")
        self._queue = store.forwarding
        self._target = target
        self._owner = new_worker_id()
        self._failures = 0
        self.forwarded = 0
        """Number of requests that the target has accepted."""
        self.scored = 0
        """Number of spans with scores in these requests."""
        self.rejected = 0
        """Number of requests that the target has rejected for good."""

    def describe(self) -> str:
        """Return the forwarding counts as a line of text."""
        rejected = f", {self.rejected:,} rejected by the target" if self.rejected else ""
        scored = f", {self.scored:,} {'span' if self.scored == 1 else 'spans'} with scores" if self.scored else ""
        return f"{self.forwarded:,} requests forwarded{scored}{rejected}"

    def run(self) -> None:
        with suppressed_loggers(), httpx2.Client(timeout=TIMEOUT, follow_redirects=False) as client:
            while not self.stopping.is_set():
                try:
                    delay = self._forward_batch(client)
                except Exception as error:  # noqa: BLE001 - if the thread ended, nothing would be forwarded any more
                    delay = self._record_failure(
                        str(error) if isinstance(error, StorageError) else error_location(error), None
                    )
                self.stopping.wait(delay)

    def _forward_batch(self, client: httpx2.Client) -> float:
        """Forward the requests that are due. Return the number of seconds until the next check of the queue."""
        from germane.tracer import count_forwarded

        claimed = self._queue.claim(self._owner, limit=BATCH, lease=LEASE)
        requests, deadline = list(_combined(claimed)), time.monotonic() + BATCH_TIME
        scored = {request.id for request in claimed if request.attributes}
        for index, request in enumerate(requests):
            left = [id_ for later in requests[index:] for id_ in later.ids]
            try:
                if self.stopping.is_set() or time.monotonic() > deadline:
                    self._queue.postpone(self._owner, left, 0.0)
                    break
                is_accepted = self._send(client, request)
            except _TargetUnavailable as error:
                delay = self._record_failure(str(error), error.retry_after)
                self._queue.postpone(self._owner, left, delay)
                return delay
            self._queue.delete(self._owner, request.ids)
            count_forwarded("accepted" if is_accepted else "rejected")
            self.scored += len(scored.intersection(request.ids)) if is_accepted else 0
            if self._failures:
                self._failures = 0
                _logger.info("requests are forwarded again")
        return 0.0 if len(claimed) == BATCH else POLL_INTERVAL

    def _send(self, client: httpx2.Client, request: _Request) -> bool:
        """Send a request. Return True if the target accepts it, and False if it permanently rejects it."""
        headers = {**self._target.headers, "Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
        try:
            response = client.post(f"{self._target.url}/v1/{request.signal}", content=request.body, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise _TargetUnavailable(f"the forwarding target is unreachable ({type(error).__name__})") from None
        if response.status_code in _RETRYABLE:
            retry_after = parse_retry_after(response.headers)
            raise _TargetUnavailable(f"the forwarding target responds with HTTP {response.status_code}", retry_after)
        if response.is_success:
            self.forwarded += 1
            return True
        self.rejected += 1
        if self.rejected == 1:
            _logger.warning(
                "the forwarding target rejects requests with HTTP %d, which are dropped", response.status_code
            )
        return False

    def _record_failure(self, problem: str, retry_after: float | None) -> float:
        """Log the first failure. Return the number of seconds until the next attempt."""
        if not self._failures:
            _logger.warning("%s; requests stay in the database until they can be forwarded", problem)
        first, longest = DELAYS
        delay: float = min(longest, first * 2 ** min(self._failures, 30)) * random.uniform(0.5, 1)
        self._failures += 1
        return delay if retry_after is None else min(max(delay, retry_after), 10 * longest)


def _combined(claimed: Sequence[QueuedRequest]) -> Iterator[_Request]:
    """Yield the requests to send: unchanged, except that spans that have waited for their scores are combined."""
    ids: list[int] = []
    body = b""
    for request in claimed:
        if not request.is_span:
            yield _Request([request.id], request.signal, request.body)
            continue
        try:
            span = _with_attributes(gzip.decompress(request.body), request.attributes)
        except (IndexError, DecodeError, OSError, EOFError, zlib.error):
            # The stored request is damaged. Alone, it delays no other request, and the target accepts or rejects it.
            yield _Request([request.id], request.signal, request.body)
            continue
        if ids and len(body) + len(span) > MAX_COMBINED_SIZE:
            yield _Request(ids, "traces", compress_request(body))
            ids, body = [], b""
        ids.append(request.id)
        body += span  # concatenated messages are one message with the spans of all
    if ids:
        yield _Request(ids, "traces", compress_request(body))


def _with_attributes(message: bytes, attributes: Mapping[str, Any] | None) -> bytes:
    """Return a request with a single span, to which attributes are added."""
    if not attributes:
        return message
    request = ExportTraceServiceRequest.FromString(message)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    kept = [pair for pair in span.attributes if pair.key not in attributes]
    del span.attributes[:]
    span.attributes.extend(kept)
    for name, value in attributes.items():
        added = span.attributes.add(key=name).value
        match value:
            case bool():
                added.bool_value = value
            case int():
                added.int_value = value
            case float():
                added.double_value = value
            case _:
                added.string_value = str(value)
    return bytes(request.SerializeToString())
