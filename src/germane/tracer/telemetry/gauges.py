"""What is counted and what gauges show, of this process and of the database that it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from germane.tracer import connection, conventions
from germane.tracer.guard import attempt
from germane.tracer.telemetry.meters import State

Ended = tuple[str, str, str, str]
"""Route, scorer, outcome and reason; without a scorer of an exchange that came, with one of a scoring that ended."""
Reading = tuple[float, Mapping[str, str]]
NOT_MEASURED = "not measured, {} (nothing else is affected)"


class Gauge(NamedTuple):
    """An instrument that shows what is true now."""

    name: str
    unit: str
    description: str
    read: Callable[[State], Iterable[Reading]]


def count(ended: Mapping[Ended, int]) -> None:
    """Count what became of exchanges. Never raises; before the start and after the stop nothing is counted."""
    if connection.current() is not None:
        attempt("the counters", _count, ended, said=NOT_MEASURED)


def _count(ended: Mapping[Ended, int]) -> None:
    from germane.tracer.telemetry.counters import instruments  # the API of metrics takes time to import

    measured = instruments()
    for (route, scorer, outcome, reason), number in ended.items():
        labels = {conventions.WORKFLOW_NAME: route, conventions.OUTCOME: outcome}
        if reason:
            labels[conventions.ERROR_TYPE if outcome == "failed" else conventions.REASON] = reason
        if scorer:
            measured.runs.add(number, {conventions.EVALUATION_NAME: scorer, **labels})
        else:
            measured.captured.add(number, labels)


def is_measured() -> bool:
    """Whether anybody reads gauges: the application has a meter provider, or an OTLP endpoint is configured."""
    from germane.tracer.telemetry.counters import are_read

    return connection.current() is not None and bool(attempt("the gauges", are_read, said=NOT_MEASURED))


def read(gauge: Gauge) -> Iterable[Reading]:
    """Return what a gauge shows: nothing before the start and after the stop. Calls no database."""
    current = connection.current()
    return [] if current is None or current.state is None else gauge.read(current.state())


def _depth(state: State) -> Iterable[Reading]:
    if state.waiting is not None:
        yield state.waiting.undecided, {conventions.STATE: "undecided"}
        for (scorer, name), number in state.waiting.exchanges.items():
            yield number, {conventions.EVALUATION_NAME: scorer, conventions.STATE: name}


def _budget(state: State) -> Iterable[Reading]:
    shares = state.waiting.budget if state.waiting is not None else {}
    return [(share, {conventions.LIMIT: limit}) for limit, share in shares.items()]


def _lag(state: State) -> Iterable[Reading]:
    return [] if state.waiting is None else [(state.waiting.lag, {})]


def _workers(state: State) -> Iterable[Reading]:
    return [] if state.waiting is None else [(state.waiting.workers, {})]


GAUGES = (
    Gauge(
        conventions.CAPTURE_DEPTH,
        "{exchange}",
        "Exchanges in the memory of this process that the database has not taken yet",
        lambda state: [(state.queued, {})],
    ),
    Gauge(conventions.QUEUE_DEPTH, "{exchange}", "Exchanges in the database that wait for a score", _depth),
    Gauge(conventions.LAG, "s", "How long the oldest exchange has waited for a score", _lag),
    Gauge(conventions.WORKERS, "{process}", "Processes that score", _workers),
    Gauge(conventions.BUDGET, "1", "Share of the day's budget that is spent", _budget),
)
