"""Fixtures for the tracer tests: a connected tracer with its spans and exchanges, handlers, and other processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import germane
from germane.exchange import Exchange
from germane.tracer import connect, disconnect


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this directory that start an interpreter as slow."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "run" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


class Traced:
    """A connected tracer: the exchanges that it captured, and the spans that it exported."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.exporter = InMemorySpanExporter()
        self.provider: TracerProvider | None = None

    def connect(
        self, *, provider: TracerProvider | None = None, processor: SpanProcessor | None = None, **settings: Any
    ) -> Traced:
        """Connect the tracer with these settings, exporting spans through this processor."""
        self.provider = provider or TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(processor or SimpleSpanProcessor(self.exporter))
        connect(
            **{"sink": self.exchanges.append, "service": "test", "holds_spans": False, **settings},
            provider=self.provider,
        )
        return self

    @property
    def exchange(self) -> Exchange:
        """The only captured exchange."""
        (exchange,) = self.exchanges
        return exchange

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str = "") -> ReadableSpan:
        """Return the only span whose name ends with this text."""
        (span,) = [span for span in self.spans if span.name.endswith(name)]
        return span

    def attributes(self, name: str = "") -> dict[str, Any]:
        return dict(self.span(name).attributes or {})

    def clear(self) -> None:
        """Forget what was captured and exported, before the next case of a test."""
        self.exchanges.clear()
        self.exporter.clear()

    def close(self) -> None:
        disconnect()
        if self.provider is not None:
            self.provider.shutdown()


@pytest.fixture
def unconnected() -> Iterator[Traced]:
    """A tracer that the test connects."""
    traced = Traced()
    yield traced
    traced.close()


@pytest.fixture
def traced(unconnected: Traced) -> Traced:
    """A tracer that is connected with default settings."""
    return unconnected.connect()


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """A function that waits until a condition is true, and fails after a timeout."""

    def wait(condition: Callable[[], object], timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, "the condition was not met in time"
            time.sleep(0.005)

    return wait


@pytest.fixture
def run() -> Callable[..., str]:
    """A function that runs code in a new Python process without telemetry settings, and returns its output."""

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
    """A function that creates an observed handler of a given kind."""
    return handler


@pytest.fixture(name="take")
def call_fixture() -> Callable[..., Any]:
    """A function that calls a handler of a given kind, and returns its answer."""
    return take


def handler(kind: str, body: Callable[[str], Any], **options: Any) -> Callable[[str], Any]:
    """Create an observed handler of a given kind that returns ``body``'s result or yields it as its only chunk."""

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
    """Call a handler of a given kind, and return its answer."""
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
