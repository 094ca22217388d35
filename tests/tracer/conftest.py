"""What the tests of the tracer share: a connected tracer, its spans and exchanges, and patience with a deadline."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import germane
from germane.exchange import Exchange
from germane.tracer import connect, disconnect


class Traced:
    """A connected tracer: what it captured, and the spans that were exported."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.exporter = InMemorySpanExporter()
        self.provider: TracerProvider | None = None

    def connect(
        self, *, provider: TracerProvider | None = None, processor: SpanProcessor | None = None, **settings: Any
    ) -> Traced:
        """Connect with these settings, exporting through this processor."""
        self.provider = provider or TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(processor or SimpleSpanProcessor(self.exporter))
        connect(**{"sink": self.exchanges.append, "service": "test", "holds_spans": False, **settings}, provider=self.provider)
        return self

    @property
    def exchange(self) -> Exchange:
        """The only exchange."""
        (exchange,) = self.exchanges
        return exchange

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str = "") -> ReadableSpan:
        """The only span whose name ends so."""
        (span,) = [span for span in self.spans if span.name.endswith(name)]
        return span

    def attributes(self, name: str = "") -> dict[str, Any]:
        return dict(self.span(name).attributes or {})

    def close(self) -> None:
        disconnect()
        if self.provider is not None:
            self.provider.shutdown()


@pytest.fixture
def unconnected() -> Iterator[Traced]:
    """A tracer that the test connects itself."""
    traced = Traced()
    yield traced
    traced.close()


@pytest.fixture
def traced(unconnected: Traced) -> Traced:
    return unconnected.connect()


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Waits for a condition, no longer than a deadline."""

    def wait(condition: Callable[[], object], timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.005)

    return wait


@pytest.fixture
def run() -> Callable[..., str]:
    """Runs code in a Python of its own and returns what it printed; its environment has no settings for telemetry."""

    def run(code: str, **environment: str) -> str:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENINFERENCE_"))}
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**plain, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return run


@pytest.fixture(name="handler")
def handler_fixture() -> Callable[..., Any]:
    """Makes an observed handler of a kind."""
    return handler


@pytest.fixture(name="take")
def take_fixture() -> Callable[..., Any]:
    """Calls a handler of a kind and returns what it gives."""
    return take


def handler(kind: str, body: Callable[[str], Any], **options: Any) -> Callable[[str], Any]:
    """An observed handler of a kind: it gives, or yields as its one chunk, what the body returns."""

    def ask(question: str) -> Any:
        return body(question)

    async def ask_later(question: str) -> Any:
        await asyncio.sleep(0)
        return body(question)

    def stream(question: str) -> Iterator[Any]:
        yield body(question)

    async def stream_later(question: str) -> AsyncIterator[Any]:
        await asyncio.sleep(0)
        yield body(question)

    made = {"function": ask, "coroutine": ask_later, "generator": stream, "async generator": stream_later}
    return germane.observe(route="ask", **options)(made[kind])


def take(kind: str, function: Callable[[str], Any], question: str = "Why?") -> Any:
    """What a handler of this kind gives."""
    if kind == "function":
        return function(question)
    if kind == "generator":
        (chunk,) = function(question)
        return chunk

    async def later() -> Any:
        if kind == "coroutine":
            return await function(question)
        (chunk,) = [chunk async for chunk in function(question)]
        return chunk

    return asyncio.run(later())
