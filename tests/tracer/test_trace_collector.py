"""The collector of watched spans: its queue has a bound, and traces that have just started stay relevant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from germane.tracer.trace_assembler import TraceLimits
from germane.tracer.trace_collector import TraceCollector

ATTRIBUTES = {"openinference.span.kind": "LLM"}


def test_log_records_do_not_fill_the_memory_while_the_background_thread_is_busy() -> None:
    """Beyond the limit, the application's thread assigns them to traces, as it does with spans."""
    collector = TraceCollector(TraceLimits(queued=10))

    for _ in range(1000):
        collector.add_log(SimpleNamespace(trace_id=1, span_id=2, body="x", attributes={}))

    assert len(collector._queue) < 10


def test_a_trace_that_starts_while_others_are_taken_stays_relevant(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is only in the queue then, and its handler must still wait for its spans."""
    collector = TraceCollector(TraceLimits(traces=2))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(collector)
    tracer = provider.get_tracer("openinference.instrumentation.openai")
    for _ in range(6):
        tracer.start_span("ended", attributes=ATTRIBUTES).end()
    take, started = collector.assembler.take, []

    def start_and_take() -> Any:
        started.append(tracer.start_span("late", attributes=ATTRIBUTES))
        return take()

    monkeypatch.setattr(collector.assembler, "take", start_and_take)
    collector.take()

    assert list(collector._relevant) == [started[0].get_span_context().trace_id]
