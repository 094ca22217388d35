"""What :func:`germane.start` hands the tracer: where exchanges go, and under which settings."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from germane.annotation import Annotation
    from germane.exchange import Exchange
    from germane.tracer.telemetry.meters import State

Capture = Literal["span+store", "store", "none"]
Redact = Callable[[str], str]

SPAN_TEXT_LIMIT = 32_768
"""Characters of one text on a span: a batch of spans must fit into one OTLP message of 4 MiB."""


def _shows(*switches: str) -> bool:
    """Whether the environment lets content be shown on spans; one switch that hides it hides every form of it."""
    shown = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") or "SPAN_ONLY"
    hidden = any(os.environ.get(f"OPENINFERENCE_HIDE_{switch}", "").lower() in {"true", "1"} for switch in switches)
    return shown.upper() in {"SPAN_ONLY", "SPAN_AND_EVENT", "TRUE"} and not hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where the tracer of this process sends what it captures."""

    sink: Callable[[Exchange], object]
    """Takes an exchange on the caller's thread; must return at once."""
    service: str
    admit: Callable[[str, str, int, float], float | None] = lambda *_: 1.0
    """Says for service, route, start (nanoseconds since 1970) and draw how probable it was that an exchange is kept.

    None when it is not: then nothing of it goes to the sink. On the caller's thread, likewise.
    """
    annotate: Callable[[Annotation], object] | None = None
    """Takes feedback and scores made elsewhere, likewise."""
    scorers: frozenset[str] = frozenset()
    """Names of this process's scorers, which no other score may bear."""
    state: Callable[[], State] | None = None
    """Returns what gauges show, from memory alone: exporters call it, on threads of theirs."""
    refused: Counter[str] = field(default_factory=Counter)
    """How often a function was called in a way in which it cannot work."""
    capture: Capture = "span+store"
    redact: Redact | None = None
    text_limit: int = 100_000
    rate: float = 1.0
    hold: bool = True
    """Whether spans wait for scores: they are made in this process, soon."""
    max_hold: float = 15.0
    provider: TracerProvider | None = None
    """Spans go here instead of to the application's global provider."""
    shows_input: bool = field(default_factory=lambda: _shows("INPUTS", "INPUT_TEXT", "INPUT_MESSAGES"))
    shows_output: bool = field(default_factory=lambda: _shows("OUTPUTS", "OUTPUT_TEXT", "OUTPUT_MESSAGES"))


_current: Connection | None = None


def current() -> Connection | None:
    """Return the connection of this process; None before ``germane.start()`` and after ``germane.stop()``."""
    return _current


def use(connection: Connection | None) -> None:
    """Make a connection the current one."""
    global _current
    _current = connection
