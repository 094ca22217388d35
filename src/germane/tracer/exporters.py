"""Export targets for private providers: OTLP, configured by OpenTelemetry's environment variables, and Prometheus."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from germane.logging_filters import suppressed_loggers
from germane.tracer.guard import guarded

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
_logger = logging.getLogger("germane.tracer")
_TRACES_ALONE: Final = (
    "to export traces alone, set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT instead of OTEL_EXPORTER_OTLP_ENDPOINT"
)
_refused: dict[Signal, bool] = {}
_lock = threading.Lock()


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
    return _option(signal, "ENDPOINT")


def _option(signal: Signal, name: str) -> str | None:
    """Return an option of a signal's exporter, from the variable of the signal or that of all signals."""
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}") or os.environ.get(f"OTEL_EXPORTER_OTLP_{name}")


def _is_grpc(signal: Signal) -> bool:
    return (_option(signal, "PROTOCOL") or "http/protobuf").lower() == "grpc"


def is_refused(signal: Signal) -> bool:
    """Return whether the HTTP endpoint does not accept a signal. Log this once, with the variable to set.

    An empty request is sent until the endpoint has responded once.
    """
    with _lock:
        if signal in _refused or _is_grpc(signal):
            return _refused.get(signal, False)
        status = guarded("OTLP endpoint", _probe, signal, message="checking the OTLP endpoint failed: {}")
        if status is None:
            return False
        _refused[signal] = status in {404, 405, 501}  # those of a server without a path for the signal
        if _refused[signal]:
            own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
            fix = f"unset {own}" if os.environ.get(own) else _TRACES_ALONE
            problem = "%s are not exported, because the OTLP endpoint refuses them with HTTP status %d; %s"
            _logger.warning(problem, signal, status, fix)
        return _refused[signal]


def _probe(signal: Signal) -> int | None:
    """Send an empty request. Return the HTTP status, or None if the endpoint does not respond."""
    import httpx2
    from opentelemetry.util.re import parse_env_headers

    url = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    url = url or f"{(_option(signal, 'ENDPOINT') or '').rstrip('/')}/v1/{signal}"
    headers = parse_env_headers(_option(signal, "HEADERS") or "", liberal=True)
    with suppressed_loggers(), suppress(httpx2.HTTPError, httpx2.InvalidURL):
        return httpx2.post(url, headers={**headers, "Content-Type": "application/x-protobuf"}, timeout=5.0).status_code
    return None


def create_otlp_exporter(signal: Signal) -> Any:
    """Create the OTLP exporter for a signal, with the configured protocol. The default is HTTP.

    grpcio is imported only if gRPC is configured, because grpcio does not support forks.
    """
    module, name = _EXPORTERS[signal]
    exporters = import_module(f"opentelemetry.exporter.otlp.proto.{'grpc' if _is_grpc(signal) else 'http'}.{module}")
    return getattr(exporters, name)()


def _after_fork() -> None:
    """Forget the parent's server, and release its lock. What the endpoint refuses is known from the parent."""
    global _lock
    _lock = threading.Lock()
    expose_registry(None)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
