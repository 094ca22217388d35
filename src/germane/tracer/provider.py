"""The tracer provider for germane's spans: the application's own, or a private one.

germane never sets the global provider. It looks up the provider for each span, so that an application may set its
provider late, even after the first span.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from inspect import signature
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, INVALID_SPAN_CONTEXT, Span, SpanContext, SpanKind

from germane.tracer import conventions
from germane.tracer.connection import current_connection
from germane.tracer.exporters import create_otlp_exporter, otlp_endpoint
from germane.tracer.guard import NOT_TRACED, guarded, must_be_raised
from germane.tracer.score_processor import ScoreSpanProcessor, forget_closed_processors, score_processors

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider as SDKTracerProvider

_lock = threading.RLock()  # reentrant, because creating the private provider acquires it twice
_private_provider: trace.TracerProvider | None = None
_tracer: tuple[trace.TracerProvider, trace.Tracer] | None = None
_carrier_tracer: tuple[trace.TracerProvider, trace.Tracer] | None = None


def start_span(
    name: str,
    context: Context,
    attributes: Mapping[str, Any],
    kind: SpanKind = SpanKind.INTERNAL,
    texts: Callable[[], Iterable[str]] = tuple,
) -> tuple[Span, SpanContext]:
    """Start a span. Return an invalid span if that fails, because capture does not depend on spans.

    ``texts`` returns the captured text in the attributes, which is not logged if the provider quotes it in an error.
    """
    try:
        current_tracer = tracer()
        if current_tracer is not None:
            span = current_tracer.start_span(name, context, kind, attributes)
            return span, span.get_span_context()
    except Exception as error:
        if must_be_raised(error, "start of the span", None, NOT_TRACED, texts):
            raise
    return INVALID_SPAN, INVALID_SPAN_CONTEXT


def tracer() -> trace.Tracer | None:
    """Return the tracer for the next span, or None if there is neither a provider nor a connection."""
    global _tracer
    provider = _current_provider()
    if provider is None:
        return None
    if _tracer is None or _tracer[0] is not provider:
        _tracer = provider, provider.get_tracer(conventions.SCOPE, version("germane"))
    return _tracer[1]


def carrier_tracer() -> trace.Tracer | None:
    """Return the tracer for carrier spans, or None. It exports through the current provider, but without its sampler.

    A carrier is a root span, so a ratio-based sampler would sample it independently of the span that it links to. Only
    sampled spans get carriers.
    """
    global _carrier_tracer
    sampled, provider = tracer(), _current_provider()
    if sampled is None or provider is None:
        return None
    if _carrier_tracer is None or _carrier_tracer[0] is not provider:
        carriers, of_sdk = sampled, sdk_provider(provider)
        if of_sdk is not None:
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON

            unsampled = TracerProvider(
                ALWAYS_ON,
                of_sdk.resource,
                shutdown_on_exit=False,
                active_span_processor=of_sdk._active_span_processor,  # noqa: SLF001 - also sees later additions
                id_generator=of_sdk.id_generator,
            )
            carriers = unsampled.get_tracer(conventions.SCOPE, version("germane"))
        _carrier_tracer = provider, carriers
    return _carrier_tracer[1]


def sdk_provider(provider: trace.TracerProvider, depth: int = 3) -> SDKTracerProvider | None:
    """Return ``provider`` or the SDK provider that it wraps, as with Logfire; None if there is no SDK provider."""
    from opentelemetry.sdk.trace import TracerProvider

    if isinstance(provider, TracerProvider):
        return provider
    wrapped = (value for value in getattr(provider, "__dict__", {}).values() if isinstance(value, trace.TracerProvider))
    found = (sdk_provider(inner, depth - 1) for inner in wrapped) if depth else ()
    return next((inner for inner in found if inner is not None), None)


def _current_provider() -> trace.TracerProvider | None:
    """Return the application's provider, or else the private one, which is created if necessary."""
    global _private_provider
    connection = current_connection()
    if connection is not None and connection.provider is not None:
        return connection.provider
    provider = _find_global()
    if not isinstance(provider, trace.ProxyTracerProvider):
        return provider
    if _private_provider is not None or connection is None:
        return _private_provider
    with _lock:
        if _private_provider is None:  # otherwise, another thread has created it in the meantime
            create, delay = _exporting_provider, connection.max_span_delay
            exporting = guarded("tracer provider", create, delay, message=NOT_TRACED, texts=tuple)
            # Whatever fails, fails once: creating a provider for each span would be slow.
            _private_provider = exporting or _provider_without_exporter()
        return _private_provider


def _find_global() -> trace.TracerProvider:
    """Return the global provider, without that of ``OTEL_PYTHON_TRACER_PROVIDER`` if it cannot be loaded."""
    if _can_load_global():
        return trace.get_tracer_provider()
    return getattr(trace, "_TRACER_PROVIDER", None) or trace.ProxyTracerProvider()


@cache
def _can_load_global() -> bool:
    return guarded("tracer provider", trace.get_tracer_provider, message=NOT_TRACED, texts=tuple) is not None


def _exporting_provider(max_delay: float) -> SDKTracerProvider | None:
    """Create the provider that exports to the configured endpoint, if any. Invalid environment variables raise."""
    if not otlp_endpoint("traces"):
        return None
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    processor = BatchSpanProcessor(create_otlp_exporter("traces"))
    provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_span_processor(ScoreSpanProcessor(processor, max_delay=max_delay))
    provider.get_tracer(conventions.SCOPE)
    return provider


@cache
def _provider_without_exporter() -> trace.TracerProvider:
    """Return a provider for spans that are only needed for their ids, or one without spans if the SDK fails.

    The provider is created once per process, because each provider registers fork callbacks that are never removed.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    def create(limits: Mapping[str, int]) -> trace.TracerProvider:
        span_limits = SpanLimits(**limits)
        provider = TracerProvider(ALWAYS_OFF, Resource.get_empty(), shutdown_on_exit=False, span_limits=span_limits)
        provider.get_tracer(conventions.SCOPE)
        return provider

    unlimited = dict.fromkeys(signature(SpanLimits).parameters, SpanLimits.UNSET)
    for limits in ({}, unlimited):  # first those of the environment, which may be invalid
        created = guarded("tracer provider", create, limits, message=NOT_TRACED, texts=tuple)
        if created is not None:
            return created
    return trace.NoOpTracerProvider()


def resource() -> Resource:
    """Return the resource for private providers."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    connection = current_connection()
    attributes = {} if connection is None else {SERVICE_NAME: connection.service}
    try:
        return Resource.create(attributes)
    except RuntimeError:  # resource detectors run in threads, which cannot start once the main thread has ended
        return Resource(attributes)


def flush(timeout: float) -> bool:
    """Export all waiting spans. Return whether the export finished within ``timeout`` seconds."""
    flushed = [processor.force_flush(int(timeout * 1000)) for processor in score_processors()]
    return all(flushed)


def release() -> None:
    """Export all waiting spans without scores, because no more scores will arrive."""
    for processor in score_processors():
        processor.release()


def close() -> None:
    """Shut down the private provider, if any. It exports its pending spans."""
    global _private_provider, _tracer, _carrier_tracer
    with _lock:
        provider, _private_provider, _tracer, _carrier_tracer = _private_provider, None, None, None
    shutdown = getattr(provider, "shutdown", None)
    if shutdown is not None:  # the provider belongs to the SDK
        shutdown()
    forget_closed_processors()
