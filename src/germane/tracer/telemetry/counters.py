"""Metrics and events of scores, through the application's providers or private ones.

As for spans, a private provider is created only if an OTLP endpoint is configured and no global provider is set. A
private meter provider is also created if Prometheus scrapes this process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics
from opentelemetry._logs import get_logger_provider
from opentelemetry._logs._internal import ProxyLoggerProvider
from opentelemetry.metrics import NoOpMeterProvider, Observation
from opentelemetry.metrics._internal import _ProxyMeterProvider

from germane.tracer import conventions
from germane.tracer.otlp_environment import otlp_endpoint, uses_grpc
from germane.tracer.prometheus import exposed_registry
from germane.tracer.provider import resource
from germane.tracer.telemetry.gauges import GAUGES, Gauge, read_gauge

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader

_lock = threading.Lock()
_private: dict[str, Any] = {}
_instruments: tuple[MeterProvider, Instruments] | None = None


class Instruments:
    """All instruments of germane.

    Args:
        meter: Creates the instruments.
        private: Whether the meter belongs to the private provider.
    """

    def __init__(self, meter: Meter, *, private: bool) -> None:
        self.score = meter.create_histogram(
            conventions.SCORE_HISTOGRAM,
            unit="1",
            description="Scores, recorded when they are computed, not when the answer is given",
            explicit_bucket_boundaries_advisory=conventions.SCORE_BUCKETS,
        )
        self.duration = meter.create_histogram(
            conventions.DURATION_HISTOGRAM,
            unit="s",
            description="Time to compute a score",
            explicit_bucket_boundaries_advisory=conventions.DURATION_BUCKETS,
        )
        self.runs = meter.create_counter(conventions.RUNS_COUNTER, unit="{run}", description="Scorings by outcome")
        self.captured = meter.create_counter(
            conventions.CAPTURE_COUNTER, unit="{exchange}", description="Captured exchanges, stored or dropped"
        )
        self.tokens = meter.create_counter(
            conventions.TOKENS_COUNTER, unit="{token}", description="Input and output tokens of scores"
        )
        self.cost = meter.create_counter(
            conventions.COST_COUNTER, unit="USD", description="Cost of scores, if prices are known"
        )
        for gauge in GAUGES:
            shown = [partial(_shown, gauge, private)]
            meter.create_observable_gauge(gauge.name, shown, unit=gauge.unit, description=gauge.description)


def _shown(gauge: Gauge, private: bool, _options: object) -> Iterable[Observation]:  # noqa: FBT001 - bound by position
    """Read a gauge for its exporter. Only the current provider reports values; others have the instrument, too."""
    if private == _has_no_global_provider():
        return [Observation(value, labels) for value, labels in read_gauge(gauge)]
    return []


def _has_no_global_provider() -> bool:
    return isinstance(metrics.get_meter_provider(), _ProxyMeterProvider)


def instruments() -> Instruments:
    """Return the instruments of the current meter provider."""
    global _instruments
    ours = _private_provider("metrics", _meter_provider) if _has_no_global_provider() else None
    provider = ours or metrics.get_meter_provider()
    known = _instruments
    if known is None or known[0] is not provider:
        known = provider, Instruments(provider.get_meter(conventions.SCOPE), private=ours is not None)
        _instruments = known
    return known[1]


def has_meter_provider() -> bool:
    """Return whether there is a meter provider, the application's or a private one. Creates its instruments."""
    instruments()
    provider = metrics.get_meter_provider()
    return "metrics" in _private if _has_no_global_provider() else not isinstance(provider, NoOpMeterProvider)


def event_logger() -> Logger | None:
    """Return the logger for evaluation events, or None if logs are not configured."""
    provider = get_logger_provider()
    if not isinstance(provider, ProxyLoggerProvider):
        return provider.get_logger(conventions.SCOPE)
    private: LoggerProvider | None = _private_provider("logs", _logger_provider)
    return None if private is None else private.get_logger(conventions.SCOPE)


def flush(timeout: float) -> bool:
    """Flush the private providers."""
    flushed = [provider.force_flush(int(timeout * 1000)) for provider in list(_private.values())]
    return all(flushed)


def close() -> None:
    """Shut the private providers down."""
    global _instruments
    with _lock:
        providers, _instruments = list(_private.values()), None
        _private.clear()
    for provider in providers:
        provider.shutdown()


def _after_fork() -> None:
    """Count from 0 in a forked child, because the parent exports what was counted before."""
    global _lock
    _lock = threading.Lock()
    _private.pop("metrics", None)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _private_provider(signal: str, make: Any) -> Any:
    if not otlp_endpoint(signal) and not (signal == "metrics" and exposed_registry()):
        return None
    with _lock:
        if signal not in _private:
            _private[signal] = make()
        return _private[signal]


def _meter_provider() -> MeterProvider:
    from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider

    readers = [_exporting_reader()] if otlp_endpoint("metrics") else []
    if (registry := exposed_registry()) is not None:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader

        readers.append(PrometheusMetricReader(registry=registry))
    return SDKMeterProvider(readers, resource=resource(), shutdown_on_exit=False)


def _exporting_reader() -> MetricReader:
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    if uses_grpc("metrics"):
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    else:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # type: ignore[assignment]  # same name, other protocol
            OTLPMetricExporter,
        )

    class Reader(PeriodicExportingMetricReader):
        """Exports nothing in a forked child, where every periodic reader keeps running."""

        process = os.getpid()

        def _receive_metrics(self, metrics_data: Any, timeout_millis: float = 10_000, **others: Any) -> None:
            if self.process == os.getpid():
                super()._receive_metrics(metrics_data, timeout_millis, **others)

    return Reader(OTLPMetricExporter())


def _logger_provider() -> LoggerProvider:
    from opentelemetry.sdk._logs import LoggerProvider as SDKLoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    if uses_grpc("logs"):
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    else:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # type: ignore[assignment]  # same name, other protocol
            OTLPLogExporter,
        )
    provider = SDKLoggerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return provider
