"""OTLP configuration from OpenTelemetry's standard environment variables."""

from __future__ import annotations

import os


def otlp_endpoint(signal: str) -> str | None:
    """Return the OTLP endpoint that is configured for ``traces``, ``metrics`` or ``logs``, if any."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").lower() == "none":
        return None
    endpoint = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")


def uses_grpc(signal: str) -> bool:
    """Return whether OTLP over gRPC is configured. The default is HTTP."""
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", general).lower() == "grpc"
