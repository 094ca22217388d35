"""The spans that wait for their scores before they are forwarded, apart from the request that contained them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from germane.exchange import sampling_key_for
from germane.otlp import ExportRequest, compress_request
from germane.receiver.spans import Waits, follows_convention, has_valid_ids, wait_after
from germane.storage import OutgoingRequest

_MAX_TRACES: Final = 50_000
"""Maximum number of traces with a span of a known convention that are remembered until their root span arrives."""


class SpanHolder:
    """Splits requests into the spans that wait for their scores, and the rest. Thread-safe.

    A root span waits if its trace is sampled, and has a span of a known convention. Its trace must be complete within
    ``max_delay``; it then waits for at most ``max_delay`` again.

    Args:
        sample_rate: The share of exchanges that are scored. With 0, no span waits.
        max_delay: Maximum number of seconds for which a span of a complete trace waits.
        waits: Times after which traces are complete.
        keeps_all: Whether spans of any scope may be read, because a recognizer is registered.
    """

    def __init__(self, *, sample_rate: float, max_delay: float, waits: Waits, keeps_all: bool = False) -> None:
        self._sample_rate = sample_rate
        self._max_delay = max_delay
        self._waits = waits
        self._keeps_all = keeps_all
        self._lock = threading.Lock()
        self._relevant: dict[bytes, None] = {}

    def split(self, request: ExportRequest) -> list[OutgoingRequest]:
        """Return the requests to forward instead of a received one."""
        if isinstance(request, ExportLogsServiceRequest):
            return [OutgoingRequest("logs", compress_request(request.SerializeToString()))]
        self._remember_traces(request)
        outgoing: list[OutgoingRequest] = []
        rest = ExportTraceServiceRequest()
        for resource_spans in request.resource_spans:
            scoped = []
            for scope_spans in resource_spans.scope_spans:
                spans = []
                for span in scope_spans.spans:
                    held = self._hold(resource_spans, scope_spans, span)
                    if held is None:
                        spans.append(span)
                    else:
                        outgoing.append(held)
                scoped += [_scope_spans(scope_spans, spans)] if spans else []
            rest.resource_spans.extend([_resource_spans(resource_spans, scoped)] if scoped else [])
        if not outgoing:
            return [OutgoingRequest("traces", compress_request(request.SerializeToString()))]
        if rest.resource_spans:
            outgoing.append(OutgoingRequest("traces", compress_request(rest.SerializeToString())))
        return outgoing

    def _remember_traces(self, request: ExportTraceServiceRequest) -> None:
        found: dict[bytes, None] = {}
        for resource_spans in request.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    if span.trace_id not in found and (
                        self._keeps_all or follows_convention(span, scope_spans.scope.name)
                    ):
                        found[span.trace_id] = None
        with self._lock:
            self._relevant |= found
            while len(self._relevant) > _MAX_TRACES:
                del self._relevant[next(iter(self._relevant))]

    def _hold(self, resource_spans: ResourceSpans, scope_spans: ScopeSpans, span: Span) -> OutgoingRequest | None:
        """Return the request with a span that waits for its scores; None if the span does not wait."""
        wait = wait_after(span, self._waits)
        if (
            wait is None
            or wait > self._max_delay
            or not has_valid_ids(span)
            or span.trace_id not in self._relevant
            or sampling_key_for(span.trace_id.hex()) > self._sample_rate
        ):
            return None
        own = _resource_spans(resource_spans, [_scope_spans(scope_spans, [span])])
        body = compress_request(ExportTraceServiceRequest(resource_spans=[own]).SerializeToString())
        return OutgoingRequest("traces", body, span.trace_id.hex(), span.span_id.hex(), wait + self._max_delay)


def _scope_spans(original: ScopeSpans, spans: Sequence[Span]) -> ScopeSpans:
    return ScopeSpans(scope=original.scope, spans=spans, schema_url=original.schema_url)


def _resource_spans(original: ResourceSpans, scope_spans: Sequence[ScopeSpans]) -> ResourceSpans:
    return ResourceSpans(resource=original.resource, scope_spans=scope_spans, schema_url=original.schema_url)
