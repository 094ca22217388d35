"""Forwarding of everything that is received to another OTLP endpoint, at least once.

Requests are forwarded unchanged. The spans of exchanges that are scored wait for their scores, which are added to their
attributes.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from germane.daemon_pool import DaemonThreadPool
from germane.delivery import Backoff, DeliveryContext, DeliveryError, DeliveryWorker, Sent, Target
from germane.errors import StorageError, error_location
from germane.logging_filters import suppressed_loggers
from germane.otlp import compress_request
from germane.receiver.requests import PROTOBUF
from germane.receiver.threads import BackgroundThread
from germane.retry_after import parse_retry_after
from germane.storage import Delivery, TrackingStore, forwarding_queue, new_worker_id

TIMEOUT: Final = 10.0
"""Seconds for each step of a request."""
LEASE: Final = timedelta(seconds=90)
"""Time after which requests that a killed process has claimed are sent by another one."""
MAX_COMBINED_SIZE: Final = 2**20
"""Maximum size in bytes of the spans that are sent in one request, unless a single one is larger."""
POLL_INTERVAL: Final = timedelta(seconds=0.5)
"""Time between two checks of an empty queue."""
BACKOFF: Final = Backoff(initial=1.0, maximum=30.0, max_retry_after=300.0)
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

    @property
    def name(self) -> str:
        """The name of the target in the outbox, without secrets.

        A request is sent only with the credentials and headers that it was queued for.
        """
        parts = urlsplit(self.url)
        credentials, _, address = parts.netloc.rpartition("@")
        url = parts._replace(netloc=address).geturl()
        if not self.headers and not credentials:
            return url
        return f"{url} {sha256(repr((credentials, sorted(self.headers.items()))).encode()).hexdigest()[:8]}"


class OTLPTarget(Target):
    """An OTLP endpoint as a target of deliveries."""

    def __init__(self, target: ForwardTarget, client: httpx2.AsyncClient) -> None:
        super().__init__(forwarding_queue(target.name), label="forwarding", noun="a request")
        self._target = target
        self._client = client
        self.forwarded = 0
        """Number of requests that the target has accepted."""
        self.scored = 0
        """Number of spans with scores in these requests."""
        self.rejected = 0
        """Number of requests that the target has rejected for good."""

    def group(self, items: Sequence[Delivery]) -> Iterator[Sequence[Delivery]]:
        """Combine the spans that have waited for their scores. All other requests are sent unchanged."""
        spans: list[Delivery] = []
        size = 0
        for item in items:
            span = _read_span(item)
            if span is None:
                yield [item]
                continue
            if spans and size + len(span) > MAX_COMBINED_SIZE:
                yield spans
                spans, size = [], 0
            spans.append(item)
            size += len(span)
        if spans:
            yield spans

    async def send(self, items: Sequence[Delivery]) -> Sent:
        """Send the requests of a group in one request. If the target rejects them for good, they are dropped."""
        from germane.tracer import count_forwarded

        url = f"{self._target.url}/v1/{items[0].payload['signal']}"
        headers = {**self._target.headers, "Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
        try:
            response = await self._client.post(url, content=_combined_body(items), headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise DeliveryError(f"the forwarding target is unreachable ({type(error).__name__})") from None
        status = response.status_code
        if status in _RETRYABLE:
            problem = f"the forwarding target responds with HTTP {status}"
            raise DeliveryError(problem, status=status, retry_after=parse_retry_after(response.headers))
        count_forwarded("accepted" if response.is_success else "rejected")
        if response.is_success:
            self.forwarded += 1
            self.scored += sum("attributes" in item.payload for item in items)
        else:
            self.rejected += 1
            if self.rejected == 1:
                _logger.warning("the forwarding target rejects requests with HTTP %d, which are dropped", status)
        return Sent(status)


class Forwarder(BackgroundThread):
    """Sends queued requests in a background thread, in the order of their arrival.

    A request stays in the database until the target has accepted it. It can be sent twice, if this process is killed
    between the answer and the deletion.
    """

    def __init__(self, store: TrackingStore, target: ForwardTarget) -> None:
        super().__init__("germane-forwarding")
        self._client = httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False)
        self._store = store
        self.target = OTLPTarget(target, self._client)

    def describe(self) -> str:
        """Return the forwarding counts as a line of text."""
        forwarded, scored = self.target.forwarded, self.target.scored
        rejected = f", {self.target.rejected:,} rejected by the target" if self.target.rejected else ""
        spans = f", {scored:,} {'span' if scored == 1 else 'spans'} with scores" if scored else ""
        return f"{forwarded:,} requests forwarded{spans}{rejected}"

    def run(self) -> None:
        asyncio.run(self._forward())

    async def _forward(self) -> None:
        threads = DaemonThreadPool(1, name="germane-forwarding-store")
        context = DeliveryContext(
            store=self._store,
            owner=new_worker_id(),
            threads=threads,
            lease=LEASE,
            backoff=BACKOFF,
            stopping=self.stopping.is_set,
        )
        worker = DeliveryWorker(self.target, context)
        with suppressed_loggers():
            while not self.stopping.is_set():
                try:
                    await worker.deliver_due()
                except Exception as error:  # noqa: BLE001 - if the thread ended, nothing would be forwarded any more
                    worker.record_failure(str(error) if isinstance(error, StorageError) else error_location(error))
                worker.wake_after(POLL_INTERVAL)
                await worker.wait_for_work()
            with suppress(StorageError):  # the leases expire
                await worker.release()
            await self._client.aclose()
        threads.close()


def _combined_body(items: Sequence[Delivery]) -> bytes | None:
    """Return the body of the request that contains all items of a group."""
    spans = [_read_span(item) for item in items]
    if None in spans:
        return items[0].body
    # Concatenated messages are one message with the spans of all.
    return compress_request(b"".join(filter(None, spans)))


def _read_span(item: Delivery) -> bytes | None:
    """Return the message of a span that has waited for its scores, with its scores.

    None for other requests, and if the message is damaged: alone, it delays no other request, and the target accepts or
    rejects it.
    """
    if "is_span" not in item.payload or item.body is None:
        return None
    try:
        return _with_attributes(gzip.decompress(item.body), item.payload.get("attributes"))
    except (IndexError, DecodeError, OSError, EOFError, zlib.error):
        return None


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
