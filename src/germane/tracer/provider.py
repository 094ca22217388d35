"""Where spans go: the application's tracer provider, or one of our own when it has none.

germane never sets the global provider. Which one to use is looked up at each span, cheaply, so an application that sets
its provider late, even after a first span, is still followed.
"""

from __future__ import annotations

import os
import threading
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from germane.tracer import connection as connections
from germane.tracer import conventions

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace import TracerProvider as SDKTracerProvider

    from germane.tracer.score_processor import Holder

_lock = threading.RLock()  # making the private provider takes it twice
_private: SDKTracerProvider | None = None
_tracer: tuple[trace.TracerProvider, trace.Tracer] | None = None
_carriers: tuple[trace.TracerProvider, trace.Tracer] | None = None
_holders: tuple[Holder, ...] = ()


def tracer() -> trace.Tracer | None:
    """Return the tracer for the next span; None when there is neither a provider nor a connection."""
    global _tracer
    provider = _provider()
    if provider is None:
        return None
    if _tracer is None or _tracer[0] is not provider:
        _tracer = provider, provider.get_tracer(conventions.SCOPE, version("germane"))
    return _tracer[1]


def carrier_tracer() -> trace.Tracer | None:
    """Return the tracer for carriers: they leave by the provider in force, but past its sampler.

    A carrier is a root, on which a ratio sampler would decide anew, whatever became of the span that it belongs to.
    """
    global _carriers
    source, provider = tracer(), _provider()
    if source is None or provider is None:
        return None
    if _carriers is None or _carriers[0] is not provider:
        _carriers = provider, _unsampled(provider) or source
    return _carriers[1]


def _unsampled(provider: Any) -> trace.Tracer | None:
    """Return a tracer that exports as a provider does, and samples everything; None for one that is not the SDK's."""
    processor = getattr(provider, "_active_span_processor", None)
    if processor is None:
        return None
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    made = TracerProvider(ALWAYS_ON, provider.resource, shutdown_on_exit=False, active_span_processor=processor)
    return made.get_tracer(conventions.SCOPE, version("germane"))


def _provider() -> trace.TracerProvider | None:
    connection = connections.current()
    if connection is not None and connection.provider is not None:
        return connection.provider
    provider = trace.get_tracer_provider()
    if not isinstance(provider, trace.ProxyTracerProvider):
        return provider
    if _private is None and connection is not None:
        return _make_private(connection)
    return _private


def _make_private(connection: connections.Connection) -> trace.TracerProvider:
    global _private
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    with _lock:
        if _private is None:
            exports = bool(endpoint("traces"))
            # Without an exporter a span is only needed for its ids.
            sampler = None if exports else ALWAYS_OFF
            provider = TracerProvider(resource=resource(), sampler=sampler, shutdown_on_exit=False)
            if exports:
                provider.add_span_processor(hold(_exporting_processor(), max_hold=connection.max_hold))
            _private = provider
        return _private


def resource() -> Resource:
    """Return what private providers say of this process."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    connection = connections.current()
    named = {} if connection is None else {SERVICE_NAME: connection.service}
    try:
        return Resource.create(named)
    except RuntimeError:  # it looks around in a pool of threads; there is none once the main thread has ended
        return Resource(named)


def endpoint(signal: str) -> str | None:
    """Return the OTLP address that the environment configures for traces, metrics or logs, if any."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").lower() == "none":
        return None
    own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return own or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")


def speaks_grpc(signal: str) -> bool:
    """Whether the environment asks for OTLP over gRPC; the default is HTTP."""
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", general).lower() == "grpc"


def _exporting_processor() -> SpanProcessor:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(_exporter())


def _exporter() -> Any:
    if speaks_grpc("traces"):  # grpcio is imported only when asked for: it does not like forks
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def hold(processor: SpanProcessor, *, max_hold: float = 15.0, max_held: int = 2048) -> Holder:
    """Wrap the processor that exports your spans, so that late scores still land on the spans they belong to.

    ::

        provider.add_span_processor(germane.hold(BatchSpanProcessor(exporter)))

    Args:
        processor: Gets each span once, held ones with their scores.
        max_hold: Seconds a drawn span waits at most. Keep it under a collector's tail-sampling wait.
        max_held: Spans that wait at the same time; beyond it the oldest leaves without its score.
    """
    from germane.tracer.attachment import carry
    from germane.tracer.score_processor import Holder

    global _holders
    holder = Holder(processor, max_hold=max_hold, max_held=max_held)
    holder.orphaned = carry
    with _lock:
        _holders = (*(held for held in _holders if not held.closed), holder)
    return holder


def holders() -> tuple[Holder, ...]:
    """Return the holders of this process: spans worth waiting for are announced to each."""
    return _holders


def flush(timeout: float) -> bool:
    """Let held spans go and export what is waiting; False when that took longer than ``timeout`` seconds."""
    held = [holder.force_flush(int(timeout * 1000)) for holder in _holders]
    return all(held)


def release() -> None:
    """Let all held spans go: no more scores will come."""
    for holder in _holders:
        holder.release()


def close() -> None:
    """Shut the private provider down, if there is one: what it has not exported yet is exported."""
    global _private, _tracer, _carriers, _holders
    with _lock:
        provider, _private, _tracer, _carriers = _private, None, None, None
    if provider is not None:
        provider.shutdown()
    with _lock:
        _holders = tuple(holder for holder in _holders if not holder.closed)
