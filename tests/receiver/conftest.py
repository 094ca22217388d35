"""Fixtures: receivers in this process and in their own, and clients that are OpenTelemetry's own exporters."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GRPCSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HTTPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from tests.receiver.messages import span, trace_request

from germane.exchange import Exchange
from germane.receiver import Receiver, ReceiverOptions, Waits
from germane.settings import load_settings
from germane.storage import TrackingStore

SCOPE = "openinference.instrumentation.langchain"
QUICK = Waits(root=0.2, remote_root=0.5, longest=30.0)
TOKEN = "a-token-of-a-receiver"
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP: loading certificates would take longer than their requests."""


@pytest.fixture(autouse=True)
def alone(bare: Path) -> None:
    """Provide an environment with only the settings that the test creates."""


def wait_for(predicate: Callable[[], Any], timeout: float = 20.0) -> Any:
    """Wait until the predicate returns a truthy value, and return it."""
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.02)
    return value


def exchanges(store: TrackingStore) -> list[Exchange]:
    """Return all exchanges, ordered by question."""
    return sorted(store.answers.list_exchanges(limit=1000), key=lambda exchange: exchange.question or "")


@dataclass
class Running:
    """A receiver in this process, and what it said."""

    receiver: Receiver
    store: TrackingStore
    lines: list[str] = field(default_factory=list)


Start = Callable[..., Running]


@pytest.fixture
def start(store: TrackingStore, migrated_url: str) -> Iterator[Start]:
    """A function that starts a receiver on free ports, given settings and options."""
    with ExitStack() as stack:

        def started(settings: dict[str, Any] | None = None, **options: Any) -> Running:
            free: dict[str, Any] = {"http": ("127.0.0.1", 0), "grpc": ("127.0.0.1", 0), "waits": QUICK}
            loaded = load_settings(database=migrated_url, **(settings or {}))
            running = Running(Receiver(store, loaded, ReceiverOptions(**free | options)), store)
            stack.enter_context(running.receiver.running(running.lines.append, timeout=10.0))
            return running

        yield started


@dataclass
class Process:
    """A running ``germane receive``."""

    process: subprocess.Popen[str]
    http: str
    grpc: str
    lines: list[str]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        self.lines += err.splitlines()
        return self.process.returncode


@contextmanager
def receive(*arguments: str, url: str, **environment: str) -> Iterator[Process]:
    """Run ``germane receive`` on free ports."""
    command = [sys.executable, "-m", "germane", "receive", "--http", "0", "--grpc", "0", "--trace-wait", "0.2"]
    process = subprocess.Popen(
        [*command, *arguments, "--database", url],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        match = re.search(r"on (\S+) \(HTTP\) and (\S+) \(gRPC\)", lines[0])
        assert match is not None, lines[0] + process.stderr.read()
        yield Process(process, match[1], match[2], lines)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def post_span(address: str) -> Any:
    """Send one span to a receiver's HTTP endpoint."""
    return post(address, trace_request(span()))


def post(address: str, request: ExportTraceServiceRequest) -> Any:
    """Send a request to a receiver's HTTP endpoint."""
    return httpx2.post(
        f"{address}/v1/traces",
        content=request.SerializeToString(),
        headers={"Content-Type": "application/x-protobuf"},
        timeout=30,
        verify=PLAIN,
    )


def exporter(protocol: str, address: str, **options: Any) -> SpanExporter:
    """Return OpenTelemetry's exporter for a protocol."""
    if protocol == "grpc":
        return GRPCSpanExporter(endpoint=address, insecure=address.startswith("http://"), **options)
    return HTTPSpanExporter(endpoint=f"{address}/v1/traces", **options)


@contextmanager
def traced(sender: SpanExporter, service: str = "shop") -> Iterator[TracerProvider]:
    """Provide a tracer provider that exports each span when it ends."""
    provider = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(sender))
    try:
        yield provider
    finally:
        provider.shutdown()


def ask(provider: TracerProvider, question: str, answer: str, document: str = "A document.") -> str:
    """Make the spans of one answer, and return the trace id."""
    tracer = provider.get_tracer(SCOPE)
    asked = {"openinference.span.kind": "CHAIN", "input.value": question, "output.value": answer}
    found = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": question,
        "retrieval.documents.0.document.content": document,
    }
    called = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "small",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    with tracer.start_as_current_span("RunnableSequence", attributes=asked) as root:
        with tracer.start_as_current_span("Retriever", attributes=found):
            pass
        with tracer.start_as_current_span("ChatOpenAI", attributes=called):
            pass
    return f"{root.get_span_context().trace_id:032x}"
