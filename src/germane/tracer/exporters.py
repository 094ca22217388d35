"""Export targets for private providers: OTLP, configured by OpenTelemetry's environment variables, and Prometheus."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Signal = Literal["traces", "metrics", "logs"]
_EXPORTERS: Final = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}
"""The module and class of each signal's exporter. The names are the same for both protocols."""
_registry: CollectorRegistry | None = None


def expose_registry(registry: CollectorRegistry | None) -> None:
    """Expose the private meter provider's instruments in a registry, or stop exposing them if ``registry`` is None.

    Call this function before the first measurement. It does not affect a meter provider that the application has set.
    """
    global _registry
    _registry = registry


def exposed_registry() -> CollectorRegistry | None:
    """Return the registry that exposes the instruments, or None if they are not exposed."""
    return _registry


def otlp_endpoint(signal: Signal) -> str | None:
    """Return the OTLP endpoint that is configured for a signal, if any."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").lower() == "none":
        return None
    endpoint = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")


def create_otlp_exporter(signal: Signal) -> Any:
    """Create the OTLP exporter for a signal, with the configured protocol. The default is HTTP.

    grpcio is imported only if gRPC is configured, because grpcio does not support forks.
    """
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    is_grpc = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", general).lower() == "grpc"
    module, name = _EXPORTERS[signal]
    exporters = import_module(f"opentelemetry.exporter.otlp.proto.{'grpc' if is_grpc else 'http'}.{module}")
    return getattr(exporters, name)()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: expose_registry(None))  # no server exposes the child's copy
