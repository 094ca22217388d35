"""Export targets for private providers: OTLP, configured by OpenTelemetry's environment variables, and Prometheus."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

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


def otlp_endpoint(signal: str) -> str | None:
    """Return the OTLP endpoint that is configured for a signal (``traces``, ``metrics`` or ``logs``), if any."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").lower() == "none":
        return None
    endpoint = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")


def uses_grpc(signal: str) -> bool:
    """Return whether OTLP over gRPC is configured for a signal. The default is HTTP."""
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", general).lower() == "grpc"


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: expose_registry(None))  # no server exposes the child's copy
