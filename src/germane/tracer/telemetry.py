"""Metrics and events for exchanges and scores, exported through the application's providers or through private ones.

As with spans, a private provider is created only if an OTLP endpoint is configured and no global provider is set. A
private meter provider is also created if Prometheus scrapes this process.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics
from opentelemetry._logs import SeverityNumber, get_logger_provider
from opentelemetry._logs._internal import ProxyLoggerProvider
from opentelemetry.metrics import NoOpMeterProvider, Observation
from opentelemetry.metrics._internal import _ProxyMeterProvider

from germane.tracer import conventions
from germane.tracer.connection import BacklogState, TelemetryState, current_connection
from germane.tracer.exporters import Signal, create_otlp_exporter, exposed_registry, is_refused, otlp_endpoint
from germane.tracer.guard import guarded
from germane.tracer.provider import resource

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider
    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter, MeterProvider

    from germane.exchange import Exchange
    from germane.score import Score

MAX_METRIC_LABELS: Final = 20
"""Maximum number of distinct score labels per scorer in one process's metrics."""
Reading = tuple[float, Mapping[str, str]]
"""A gauge value with its labels."""
ReadGauge = Callable[[TelemetryState], Iterable[Reading]]
OutcomeKey = tuple[str, str, str, str]
"""Route, scorer, outcome and reason. The scorer is set for finished scoring tasks and empty for captured exchanges."""
_FAILED = "recording metrics failed: {} (only metrics are affected)"
_labels: dict[str, set[str]] = {}
_lock = threading.Lock()
_private: dict[str, Any] = {}
_instruments: tuple[MeterProvider, Instruments] | None = None


def _queue_depths(backlog: BacklogState) -> Iterable[Reading]:
    yield backlog.undecided, {conventions.STATE: "undecided"}
    for (scorer, state), number in backlog.exchanges.items():
        yield number, {conventions.EVALUATION_NAME: scorer, conventions.STATE: state}


def _of_backlog(read: Callable[[BacklogState], Iterable[Reading]]) -> ReadGauge:
    """Return a function that reads a gauge from the backlog, if this process knows it."""
    return lambda state: [] if state.waiting is None else read(state.waiting)


GAUGES: Final[Mapping[str, tuple[str, str, ReadGauge]]] = {
    conventions.CAPTURE_DEPTH: (
        "{exchange}", "Exchanges in this process's memory that are not stored yet", lambda state: [(state.queued, {})],
    ),
    conventions.QUEUE_DEPTH: ("{exchange}", "Stored exchanges waiting for a score", _of_backlog(_queue_depths)),
    conventions.LAG: (
        "s", "Age of the oldest exchange waiting for a score", _of_backlog(lambda backlog: [(backlog.lag, {})]),
    ),
    conventions.WORKERS: ("{process}", "Worker processes", _of_backlog(lambda backlog: [(backlog.workers, {})])),
    conventions.BUDGET: (
        "1",
        "Share of the daily budget that has been used",
        _of_backlog(lambda backlog: [(share, {conventions.LIMIT: limit}) for limit, share in backlog.budget.items()]),
    ),
}  # fmt: skip
"""The unit and the description of each observable gauge, and the function that reads it, by name."""
COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    conventions.RUNS_COUNTER: ("{run}", "Scoring runs by outcome"),
    conventions.CAPTURE_COUNTER: ("{exchange}", "Captured exchanges, stored or dropped"),
    conventions.WATCH_COUNTER: ("{trace}", "Watched traces, recognized or unreadable"),
    conventions.LATE_COUNTER: ("{span}", "Spans that ended after their trace was read"),
    conventions.RECEIVE_COUNTER: ("{span}", "Received spans and log records by outcome"),
    conventions.FORWARD_COUNTER: ("{request}", "Requests to the forwarding target by outcome"),
    conventions.TOKENS_COUNTER: ("{token}", "Input and output tokens used for scoring"),
    conventions.COST_COUNTER: ("USD", "Cost of scoring, if prices are known"),
}
"""The unit and the description of each counter, by name."""


class Instruments:
    """The instruments of one meter provider."""

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
        self.counters = {
            name: meter.create_counter(name, unit=unit, description=description)
            for name, (unit, description) in COUNTERS.items()
        }
        for name, (unit, description, read) in GAUGES.items():
            callbacks = [partial(_observe, read, private)]
            meter.create_observable_gauge(name, callbacks, unit=unit, description=description)


def _observe(read: ReadGauge, private: bool, _options: object) -> Iterable[Observation]:  # noqa: FBT001 - bound by position
    """Return the observations of a gauge, read from memory on the exporter's thread; none unless this provider is
    current.
    """
    connection = current_connection()
    if connection is None or connection.state is None or private != _has_no_global_provider():
        return []
    return [Observation(value, labels) for value, labels in read(connection.state())]


def _has_no_global_provider() -> bool:
    return isinstance(metrics.get_meter_provider(), _ProxyMeterProvider)


def instruments() -> Instruments:
    """Return the instruments of the current meter provider."""
    global _instruments
    ours = _private_provider("metrics", _meter_provider) if _has_no_global_provider() else None
    provider = ours or metrics.get_meter_provider()
    cached = _instruments
    if cached is None or cached[0] is not provider:
        cached = provider, Instruments(provider.get_meter(conventions.SCOPE), private=ours is not None)
        _instruments = cached
    return cached[1]


def event_logger() -> Logger | None:
    """Return the logger for evaluation events, or None if logs are not configured."""
    provider = get_logger_provider()
    if not isinstance(provider, ProxyLoggerProvider):
        return provider.get_logger(conventions.SCOPE)
    private: LoggerProvider | None = _private_provider("logs", _logger_provider)
    return None if private is None else private.get_logger(conventions.SCOPE)


def count_outcomes(outcomes: Mapping[OutcomeKey, int]) -> None:
    """Add outcomes to the counters. Never raises. Does nothing without a connection."""
    if current_connection() is None:
        return
    for (route, scorer, outcome, reason), number in outcomes.items():
        labels = {conventions.WORKFLOW_NAME: route, conventions.OUTCOME: outcome}
        if reason:
            labels[conventions.ERROR_TYPE if outcome == "failed" else conventions.REASON] = reason
        if scorer:
            _count(conventions.RUNS_COUNTER, number, {conventions.EVALUATION_NAME: scorer, **labels})
        else:
            _count(conventions.CAPTURE_COUNTER, number, labels)


def count_watched(scope: str, reason: str | None, number: int) -> None:
    """Count watched traces: recognized, or unreadable for a reason. Never raises."""
    labels = {conventions.SCOPE_NAME: scope, conventions.OUTCOME: "recognized" if reason is None else "unreadable"}
    if reason is not None:
        labels[conventions.REASON] = reason
    _count(conventions.WATCH_COUNTER, number, labels)


def count_late(number: int) -> None:
    """Count spans that ended after their trace was read. Never raises."""
    _count(conventions.LATE_COUNTER, number, {})


def count_received(outcomes: Mapping[str, int]) -> None:
    """Count received spans and log records by outcome. Never raises."""
    for outcome, number in outcomes.items():
        if number:
            _count(conventions.RECEIVE_COUNTER, number, {conventions.OUTCOME: outcome})


def count_forwarded(outcome: str) -> None:
    """Count a request to the forwarding target: accepted or rejected. Never raises."""
    _count(conventions.FORWARD_COUNTER, 1, {conventions.OUTCOME: outcome})


def _count(counter: str, number: int, labels: Mapping[str, str]) -> None:
    guarded("counters", lambda: instruments().counters[counter].add(number, labels), message=_FAILED)


def are_gauges_exported() -> bool:
    """Return whether gauges are exported, to the application's meter provider or to a configured OTLP endpoint."""

    def has_meter_provider() -> bool:
        instruments()  # creates a private provider if one is needed
        if _has_no_global_provider():
            return _private.get("metrics") is not None
        return not isinstance(metrics.get_meter_provider(), NoOpMeterProvider)

    return current_connection() is not None and bool(guarded("gauges", has_meter_provider, message=_FAILED))


def emit_score(score: Score, *, exchange: Exchange, context: Context) -> None:
    """Record metrics and an event for a score, in the context of the scored span."""
    labels = {conventions.EVALUATION_NAME: score.scorer, conventions.WORKFLOW_NAME: exchange.route}
    measured = instruments()
    for direction, tokens in (("input", score.input_tokens), ("output", score.output_tokens)):
        if tokens:
            labels_of_tokens = {**labels, conventions.TOKEN_TYPE: direction}
            measured.counters[conventions.TOKENS_COUNTER].add(tokens, labels_of_tokens, context=context)
    if score.cost:
        measured.counters[conventions.COST_COUNTER].add(score.cost, labels, context=context)
    if score.state == "skipped":  # requests sent before the budget was exhausted still count
        return
    if score.latency is not None:
        measured.duration.record(score.latency, labels, context=context)
    if score.value is not None:
        if score.label is not None:
            # Each label creates a permanent series, and custom scorers may use free text.
            seen_labels = _labels.setdefault(score.scorer, set())
            if len(seen_labels) < MAX_METRIC_LABELS:
                seen_labels.add(score.label)
            if score.label in seen_labels:
                labels = {**labels, conventions.EVALUATION_SCORE_LABEL: score.label}
        # OpenTelemetry histograms reject negative values with a warning.
        measured.score.record(max(0.0, score.value), labels, context=context)
    _emit_event(score, exchange, context)


def _emit_event(score: Score, exchange: Exchange, context: Context) -> None:
    """Emit the event of a score, with the attributes, body and severity that pydantic-evals gives it."""
    logger = event_logger()
    if logger is None:
        return
    source = {"name": score.scorer, "arguments": None}
    fields = {
        conventions.EVALUATION_TARGET: exchange.route,
        conventions.EVALUATION_NAME: score.scorer,
        conventions.EVALUATOR_SOURCE: json.dumps(source, ensure_ascii=False, separators=(",", ":")),
        conventions.EVALUATOR_VERSION: score.fingerprint or None,
        conventions.EVALUATION_SCORE_VALUE: score.value,
        conventions.EVALUATION_SCORE_LABEL: score.label,
        conventions.EVALUATION_EXPLANATION: score.explanation,
        conventions.ERROR_TYPE: None if score.reason is None else str(score.reason),
        conventions.SAMPLING_PROBABILITY: exchange.sampling_probability,
    }
    result = f"={score.value:g}" if score.value is not None else " failed"
    if score.value is None and score.explanation:
        result = f"{result}: {score.explanation}"
    logger.emit(
        timestamp=time.time_ns(),
        context=context,
        severity_number=None if score.reason is None else SeverityNumber.WARN,
        body=f"evaluation: {score.scorer}{result}",
        event_name=conventions.EVALUATION_EVENT,
        attributes={name: value for name, value in fields.items() if value is not None},
    )


def check_endpoints() -> None:
    """Log, in the background, which signals the OTLP endpoint refuses. Providers of the application are not checked."""
    if signals := guarded("OTLP endpoint", _private_signals, message=_FAILED):
        name = "germane-otlp-check"
        threading.Thread(target=lambda: [*map(is_refused, signals)], name=name, daemon=True).start()


def _private_signals() -> list[Signal]:
    """Return the signals that germane exports with providers of its own. Unknown providers in variables are errors."""
    private: dict[Signal, bool] = {
        "metrics": _has_no_global_provider(),
        "logs": isinstance(get_logger_provider(), ProxyLoggerProvider),
    }
    return [signal for signal, is_private in private.items() if is_private and otlp_endpoint(signal)]


def flush(timeout: float) -> bool:
    """Export the private providers' pending data. Return whether all of them finished within ``timeout`` seconds."""
    flushed = [provider.force_flush(int(timeout * 1000)) for provider in list(_private.values()) if provider]
    return all(flushed)


def close() -> None:
    """Shut down the private providers.

    The instruments are kept, because the proxy provider, which is used until the application sets a provider, keeps
    every instrument that it has created.
    """
    with _lock:
        providers = [provider for provider in _private.values() if provider]
        _private.clear()
    for provider in providers:
        provider.shutdown()


def _after_fork() -> None:
    """Restart the counters at 0 in a forked child, because the parent exports the earlier counts."""
    global _lock
    _lock = threading.Lock()
    _private.pop("metrics", None)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _private_provider(signal: Signal, make: Callable[[], Any]) -> Any:
    if not otlp_endpoint(signal) and not (signal == "metrics" and exposed_registry()):
        return None
    with _lock:
        if signal not in _private:  # a provider that cannot be created is replaced by None, and not created again
            _private[signal] = guarded(f"{signal} provider", make, message=_FAILED, texts=tuple)
        return _private[signal]


def _meter_provider() -> MeterProvider:
    from opentelemetry.sdk.metrics import MeterProvider as SDKMeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    readers: list[MetricReader] = []
    if otlp_endpoint("metrics") and not is_refused("metrics"):

        class Reader(PeriodicExportingMetricReader):
            """A reader that exports nothing in a forked child, where OpenTelemetry restarts every periodic reader."""

            process = os.getpid()

            def _receive_metrics(self, metrics_data: Any, timeout_millis: float = 10_000, **others: Any) -> None:
                if self.process == os.getpid():
                    super()._receive_metrics(metrics_data, timeout_millis, **others)

        readers.append(Reader(create_otlp_exporter("metrics")))
    if (registry := exposed_registry()) is not None:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader

        readers.append(PrometheusMetricReader(registry=registry))
    return SDKMeterProvider(readers, resource=resource(), shutdown_on_exit=False)


def _logger_provider() -> LoggerProvider | None:
    if is_refused("logs"):
        return None
    from opentelemetry.sdk._logs import LoggerProvider as SDKLoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = SDKLoggerProvider(resource=resource(), shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(create_otlp_exporter("logs")))
    return provider
