"""Metrics and events of scores: through the application's providers, or private ones where it has none.

As for spans, a private provider is made only when the environment names an OTLP endpoint, and nothing global is set;
one of metrics also where Prometheus may read this process.
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
from germane.tracer.prometheus import exposed
from germane.tracer.provider import endpoint, resource, speaks_grpc
from germane.tracer.telemetry.gauges import GAUGES, Gauge, read

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader

_lock = threading.Lock()
_private: dict[str, Any] = {}
_instruments: tuple[MeterProvider, Instruments] | None = None


class Instruments:
    """What is measured of every score, and how much there is of everything.

    Args:
        meter: makes them; the same meter makes each of them once.
        private: whether it is one of ours.
    """

    def __init__(self, meter: Meter, *, private: bool) -> None:
        self.score = meter.create_histogram(
            conventions.SCORE_HISTOGRAM,
            unit="1",
            description="Scores, counted when they were made, not when the answer was given",
            explicit_bucket_boundaries_advisory=conventions.SCORE_BUCKETS,
        )
        self.duration = meter.create_histogram(
            conventions.DURATION_HISTOGRAM,
            unit="s",
            description="Time that making a score took",
            explicit_bucket_boundaries_advisory=conventions.DURATION_BUCKETS,
        )
        self.runs = meter.create_counter(
            conventions.RUNS_COUNTER, unit="{run}", description="Scorings, by how they ended"
        )
        self.captured = meter.create_counter(
            conventions.CAPTURE_COUNTER, unit="{exchange}", description="Exchanges, stored or dropped"
        )
        self.tokens = meter.create_counter(
            conventions.TOKENS_COUNTER, unit="{token}", description="Tokens that scores took, read and written"
        )
        self.cost = meter.create_counter(
            conventions.COST_COUNTER, unit="USD", description="What scores cost, where a price is known"
        )
        for gauge in GAUGES:
            shown = [partial(_shown, gauge, private)]
            meter.create_observable_gauge(gauge.name, shown, unit=gauge.unit, description=gauge.description)


def _shown(gauge: Gauge, private: bool, _options: object) -> Iterable[Observation]:  # noqa: FBT001 - bound by position
    """Read a gauge for its exporter: only by the provider in force, for others know it as well."""
    if private == _none_is_set():
        return [Observation(value, labels) for value, labels in read(gauge)]
    return []


def _none_is_set() -> bool:
    return isinstance(metrics.get_meter_provider(), _ProxyMeterProvider)


def instruments() -> Instruments:
    """Return the instruments of the meter provider in force."""
    global _instruments
    ours = _made("metrics", _meter_provider) if _none_is_set() else None
    provider = ours or metrics.get_meter_provider()
    known = _instruments
    if known is None or known[0] is not provider:
        known = provider, Instruments(provider.get_meter(conventions.SCOPE), private=ours is not None)
        _instruments = known
    return known[1]


def are_read() -> bool:
    """Whether there is a meter provider, the application's or ours; its instruments are made then."""
    instruments()
    provider = metrics.get_meter_provider()
    return "metrics" in _private if _none_is_set() else not isinstance(provider, NoOpMeterProvider)


def event_logger() -> Logger | None:
    """Return the logger for evaluation events; None when neither the application nor the environment asks for them."""
    provider = get_logger_provider()
    if not isinstance(provider, ProxyLoggerProvider):
        return provider.get_logger(conventions.SCOPE)
    private: LoggerProvider | None = _made("logs", _logger_provider)
    return None if private is None else private.get_logger(conventions.SCOPE)


def flush(timeout: float) -> bool:
    """Export what the private providers hold."""
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
    """Count from 0 in a child: what was counted until then is the parent's to export."""
    global _lock
    _lock = threading.Lock()
    _private.pop("metrics", None)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _made(signal: str, make: Any) -> Any:
    if not endpoint(signal) and not (signal == "metrics" and exposed()):
        return None
    with _lock:
        if signal not in _private:
            _private[signal] = make()
        return _private[signal]


def _meter_provider() -> MeterProvider:
    from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider

    readers = [_exporting_reader()] if endpoint("metrics") else []
    if (registry := exposed()) is not None:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader

        readers.append(PrometheusMetricReader(registry=registry))
    return SDKMeterProvider(readers, resource=resource(), shutdown_on_exit=False)


def _exporting_reader() -> MetricReader:
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    if speaks_grpc("metrics"):
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    else:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # type: ignore[assignment]  # same name, other protocol
            OTLPMetricExporter,
        )

    class Reader(PeriodicExportingMetricReader):
        """Goes on in a forked child, as all of its kind do, but exports nothing there."""

        process = os.getpid()

        def _receive_metrics(self, metrics_data: Any, timeout_millis: float = 10_000, **others: Any) -> None:
            if self.process == os.getpid():
                super()._receive_metrics(metrics_data, timeout_millis, **others)

    return Reader(OTLPMetricExporter())


def _logger_provider() -> LoggerProvider:
    from opentelemetry.sdk._logs import LoggerProvider as SDKLoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    if speaks_grpc("logs"):
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    else:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # type: ignore[assignment]  # same name, other protocol
            OTLPLogExporter,
        )
    provider = SDKLoggerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return provider
