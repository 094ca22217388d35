"""Tools for testing an application: collecting exchanges, a frozen clock, and predictable ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace.id_generator import IdGenerator

from germane.tracer import connect, disconnect

if TYPE_CHECKING:
    from germane.exchange import Exchange


@contextmanager
def collect(**settings: Any) -> Iterator[list[Exchange]]:
    """Collect captured exchanges in a list while the block runs, without a database or a judge.

    ::

        with collect() as exchanges:
            ask("How do I reset my password?")
        assert exchanges[0].answer == "Open Settings."

    As a pytest fixture::

        @pytest.fixture
        def exchanges():
            with germane.testing.collect() as exchanges:
                yield exchanges

    Args:
        settings: Arguments for ``germane.tracer.connect``, such as ``provider``, ``capture`` or ``redact``. Spans are
            not held for scores unless you pass ``holds_spans=True``.
    """
    exchanges: list[Exchange] = []
    connect(**{"sink": exchanges.append, "service": "test", "holds_spans": False, **settings})
    try:
        yield exchanges
    finally:
        disconnect()


class Clock:
    """A frozen clock that the test advances. Call it to get the time in UTC.

    ::

        clock = Clock()
        clock.advance(minutes=5)
        assert clock() == datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
    """

    def __init__(self, now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self.now = now
        """The current time of the clock. Assign to this attribute to set the clock."""

    def __call__(self) -> datetime:
        """Return the current time of the clock."""
        return self.now

    def advance(
        self,
        duration: timedelta = timedelta(0),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Advance the clock by a duration. A negative duration sets it back."""
        self.now += duration + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


class IncrementalIdGenerator(IdGenerator):
    """Generates ids that count up from 1, so that tests can compare them with literal values.

    As the ``id_generator`` of a ``TracerProvider``, it makes the trace and span ids of captured exchanges predictable::

        provider = TracerProvider(id_generator=IncrementalIdGenerator())
        with collect(provider=provider) as exchanges:
            ask("How do I reset my password?")
        assert exchanges[0].trace_id == f"{1:032x}"

    Call it to get the next exchange id: 32 hexadecimal digits, counted separately.
    """

    def __init__(self) -> None:
        self._exchanges = self._traces = self._spans = 0

    def __call__(self) -> str:
        """Return the next exchange id."""
        self._exchanges += 1
        return f"{self._exchanges:032x}"

    def generate_trace_id(self) -> int:
        """Return the next trace id."""
        self._traces += 1
        return self._traces

    def generate_span_id(self) -> int:
        """Return the next span id."""
        self._spans += 1
        return self._spans
