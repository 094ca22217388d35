"""What the doctor finds of where spans go."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from germane.cli.doctor.finding import Finding

_CONNECT_TIMEOUT: Final = 3.0
_OFF: Final = {
    "OTEL_SDK_DISABLED": {"true"},
    "OTEL_TRACES_EXPORTER": {"none"},
    "OTEL_TRACES_SAMPLER": {"always_off", "parentbased_always_off"},
}
"""Switches of OpenTelemetry by which no span leaves."""
_OTLP_PORTS: Final = {"http/protobuf": 4318, "grpc": 4317}


def look_at_export() -> Iterator[Finding]:
    """Tell whether spans leave, and whether somebody takes them."""
    off = [f"{name}={os.environ[name]}" for name, values in _OFF.items() if os.environ.get(name, "").lower() in values]
    if off:
        yield Finding("export", "note", f"no span is exported: {', '.join(off)}", "unset it, if you want spans")
        return
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if endpoint is None:
        yield Finding("export", "note", "no OTLP endpoint is set: spans go where your own tracer provider sends them")
        return
    fix = "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT"
    try:
        shown, address = _address(endpoint)
    except ValueError:  # its text quotes the address, and that may hold a password
        yield Finding("export", "fault", "the OTLP endpoint is not a web address", fix)
        return
    try:
        socket.create_connection(address, _CONNECT_TIMEOUT).close()
    except OSError as error:
        said = error.strerror or str(error)
        yield Finding("export", "fault", f"the OTLP endpoint {shown} cannot be reached ({said})", fix)
    else:
        yield Finding("export", "ok", f"the OTLP endpoint {shown} takes connections")


def _address(endpoint: str) -> tuple[str, tuple[str, int]]:
    """Return host and port, as text and to connect to."""
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", general)
    parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
    port = parts.port or {"https": 443}.get(parts.scheme) or _OTLP_PORTS.get(protocol, 4318)
    return f"{parts.hostname}:{port}", (parts.hostname or "localhost", port)
