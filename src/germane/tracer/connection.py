"""The connection between the tracer and the rest of germane: sinks for captured data, settings, and gauge values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from germane.annotation import Annotation
    from germane.exchange import Capture, Exchange, Redact
    from germane.trace_outline import UnreadableTrace

SPAN_TEXT_LIMIT = 32_768
"""Maximum number of characters in one text on a span, so that a batch of spans fits into an OTLP message of 4 MiB."""


def _shows(*switches: str) -> bool:
    """Return whether OpenTelemetry's content capture and the given ``OPENINFERENCE_HIDE_*`` variables allow text on
    spans.
    """
    capture_mode = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") or "SPAN_ONLY"
    hidden = any(os.environ.get(f"OPENINFERENCE_HIDE_{switch}", "").lower() in {"true", "1"} for switch in switches)
    return capture_mode.upper() in {"SPAN_ONLY", "SPAN_AND_EVENT", "TRUE"} and not hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogState:
    """The scoring backlog in the database. One process at a time reads it periodically."""

    undecided: int
    """Number of exchanges that have no sampling decision yet."""
    exchanges: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of exchanges waiting for a score, by scorer and state (``candidate``, ``ready``, ``postponed`` or
    ``running``)."""
    lag: float
    """Age of the oldest waiting exchange in seconds."""
    workers: int
    budget: Mapping[str, float] = field(default_factory=dict)
    """Used share of the daily budget, between 0 and slightly above 1, by limit (``requests``, ``tokens`` or
    ``usd``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryState:
    """The data from which the gauges are computed."""

    queued: int
    """Number of exchanges in this process's memory that have not been stored yet."""
    waiting: BacklogState | None = None
    """The backlog. None in processes that do not read it, and while the database is unreachable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The sinks for captured data, and the capture settings."""

    sink: Callable[[Exchange], object]
    """A function that receives exchanges, on the caller's thread. It must return immediately."""
    service: str
    admit: Callable[[str, str, int, float], float | None] = lambda *_: 1.0
    """A function that applies the exchange limit, on the caller's thread. It takes service, route, start (nanoseconds
    since 1970) and sampling key, and returns the capture probability, or None if the exchange is dropped."""
    count_unreadable: Callable[[str, str, int], object] = lambda *_: None
    """A function that counts a watched trace from which no exchange could be read, in a background thread. It takes
    service, route and start (nanoseconds since 1970)."""
    count_watched: Callable[[str, str, str, int, int], object] = lambda *_: None
    """A function that counts watched traces, in a background thread. It takes service, instrumentation scope, outcome
    (``recognized`` or a reason), start (nanoseconds since 1970) and number."""
    sample_unreadable: Callable[[str, str, str, Callable[[], UnreadableTrace]], object] = lambda *_: None
    """A function that may add an unreadable trace to the stored sample, in a background thread. It takes service,
    instrumentation scope, reason, and a function that returns the trace without values."""
    watches: bool = False
    """Whether exchanges are recognized in spans that other instrumentations record."""
    annotate: Callable[[Annotation], object] | None = None
    """A function that receives annotations, on the caller's thread. It must return immediately."""
    scorers: frozenset[str] = frozenset()
    """Names of this process's scorers. Recorded scores must not use the name of a user-defined scorer."""
    state: Callable[[], TelemetryState] | None = None
    """A function that returns the gauge values from memory. Exporters call it on their own threads."""
    rejected_calls: Counter[str] = field(default_factory=Counter)
    """Number of rejected calls, such as feedback with an invalid score, by function name."""
    capture: Capture = "span+store"
    redact: Redact | None = None
    max_text_length: int = 100_000
    sample_rate: float = 1.0
    holds_spans: bool = True
    """Whether spans of sampled exchanges wait for their scores, because this process scores them."""
    worker_id: Callable[[], str] = lambda: "unknown"
    """A function that returns this process's worker id, which is stored with exchanges whose spans wait."""
    attach_forwarded: Callable[[str, Mapping[str, Any]], bool] = lambda *_: False
    """A function that attaches scores, as attributes, to the span of an exchange that waits in a receiver's queue. It
    returns whether the span was still waiting."""
    max_span_delay: float = 15.0
    provider: TracerProvider | None = None
    """The provider to use instead of the application's global provider."""
    shows_input: bool = field(default_factory=lambda: _shows("INPUTS", "INPUT_TEXT", "INPUT_MESSAGES"))
    shows_output: bool = field(default_factory=lambda: _shows("OUTPUTS", "OUTPUT_TEXT", "OUTPUT_MESSAGES"))


_current: Connection | None = None


def current_connection() -> Connection | None:
    """Return the connection of this process, or None before ``germane.start()`` and after ``germane.stop()``."""
    return _current


def set_connection(connection: Connection | None) -> None:
    """Set or remove the current connection."""
    global _current
    _current = connection
