"""Gauges of this process and of its database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from germane.tracer import connection, conventions
from germane.tracer.telemetry_state import TelemetryState

Reading = tuple[float, Mapping[str, str]]
"""A value with its labels."""


class Gauge(NamedTuple):
    """An observable gauge."""

    name: str
    unit: str
    description: str
    read: Callable[[TelemetryState], Iterable[Reading]]


def read_gauge(gauge: Gauge) -> Iterable[Reading]:
    """Return the readings of a gauge from memory. Without a connection, there are none."""
    current = connection.current_connection()
    return [] if current is None or current.state is None else gauge.read(current.state())


def _depth(state: TelemetryState) -> Iterable[Reading]:
    if state.waiting is not None:
        yield state.waiting.undecided, {conventions.STATE: "undecided"}
        for (scorer, name), number in state.waiting.exchanges.items():
            yield number, {conventions.EVALUATION_NAME: scorer, conventions.STATE: name}


def _budget(state: TelemetryState) -> Iterable[Reading]:
    shares = state.waiting.budget if state.waiting is not None else {}
    return [(share, {conventions.LIMIT: limit}) for limit, share in shares.items()]


def _lag(state: TelemetryState) -> Iterable[Reading]:
    return [] if state.waiting is None else [(state.waiting.lag, {})]


def _workers(state: TelemetryState) -> Iterable[Reading]:
    return [] if state.waiting is None else [(state.waiting.workers, {})]


GAUGES = (
    Gauge(
        conventions.CAPTURE_DEPTH,
        "{exchange}",
        "Exchanges in the memory of this process that are not stored yet",
        lambda state: [(state.queued, {})],
    ),
    Gauge(conventions.QUEUE_DEPTH, "{exchange}", "Stored exchanges that wait for a score", _depth),
    Gauge(conventions.LAG, "s", "Age of the oldest exchange that waits for a score", _lag),
    Gauge(conventions.WORKERS, "{process}", "Worker processes", _workers),
    Gauge(conventions.BUDGET, "1", "Used share of the day's budget", _budget),
)
