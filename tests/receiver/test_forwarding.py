"""Forwarding to another OTLP endpoint: at least once, with scores on the spans that were scored."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import PLAIN, SCOPE, Running, Start, ask, exchanges, exporter, traced, wait_for
from tests.receiver.messages import log_record, log_request, span, trace_request

from germane.delivery import Backoff
from germane.exchange import FORWARDING
from germane.otlp import compress_request
from germane.receiver import ForwardTarget, Receiver, forwarding
from germane.storage import Delivery, OutgoingRequest
from germane.testing import OTLPReceiver


class Target:
    """An OTLP endpoint that responds with given statuses, then accepts everything."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.requests: list[tuple[str, dict[str, str]]] = []
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                target.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.send_response(target.statuses.pop(0) if target.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self) -> None:
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat requests soon."""
    monkeypatch.setattr(forwarding, "BACKOFF", Backoff(initial=0.05, maximum=0.1))
    monkeypatch.setattr(forwarding, "POLL_INTERVAL", timedelta(seconds=0.05))


@pytest.fixture
def rejecting() -> Iterator[Target]:
    """A target that rejects three requests for different reasons."""
    target = Target(503, 429, 400)
    yield target
    target.close()


def send(running: Running, content: bytes, path: str = "/v1/traces") -> int:
    """Send a request, and return the status."""
    headers = {"Content-Type": "application/x-protobuf"}
    return httpx2.post(running.receiver.http_address + path, content=content, headers=headers, verify=PLAIN).status_code


def target_of(receiver: Receiver) -> forwarding.OTLPTarget:
    """Return the target of a receiver's forwarder."""
    forwarder = receiver._forwarder
    assert forwarder is not None
    return forwarder.target


@POSTGRESQL_IS_THOROUGH
def test_spans_and_log_records_are_forwarded_unchanged(start: Start) -> None:
    """Spans that the receiver ignores, or stages without attributes, are forwarded in full."""
    with OTLPReceiver() as target:
        running = start(forward=ForwardTarget(url=target.endpoint))
        plain = span(name="GET", attributes={"header": "x" * 5000})
        send(running, trace_request(plain, scope="http", service="shop").SerializeToString())
        send(running, log_request(log_record(plain, "", {"content": "ordinary"})).SerializeToString(), "/v1/logs")
        target.wait_for(lambda received: received.spans and received.logs)
        wait_for(lambda: running.store.forwarding.measure() == 0)

        (forwarded,) = target.spans
        assert forwarded.attributes == {"header": "x" * 5000}
        assert forwarded.resource["service.name"] == "shop"
        assert len(target.logs) == 1
    assert running.receiver.describe()[-1] == "2 requests forwarded"


@POSTGRESQL_IS_THOROUGH
def test_forwarding_retries_temporary_errors_and_drops_rejected_requests(start: Start, rejecting: Target) -> None:
    """As OTLP says: 429 and 503 are temporary, 400 is not."""
    running = start(
        {"max_span_delay": 0}, forward=ForwardTarget(url=rejecting.url, headers={"Authorization": "Bearer secret"})
    )
    for _ in range(2):
        assert send(running, trace_request(span()).SerializeToString()) == 200
    wait_for(lambda: running.store.forwarding.measure() == 0)

    assert len(rejecting.requests) == 4
    assert {headers["authorization"] for _, headers in rejecting.requests} == {"Bearer secret"}
    assert (target_of(running.receiver).forwarded, target_of(running.receiver).rejected) == (1, 1)


@POSTGRESQL_IS_THOROUGH
def test_forwarded_requests_wait_until_the_target_is_reachable(start: Start) -> None:
    """They stay in the database, and the receiver goes on receiving."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler, bind_and_activate=False)
    server.server_bind()  # connections are refused until it listens, and no other process can take the port
    running = start({"max_span_delay": 0}, forward=ForwardTarget(url=f"http://127.0.0.1:{server.server_port}"))
    for number in range(5):
        with traced(exporter("http", running.receiver.http_address)) as provider:
            ask(provider, f"Why {number}?", "So.")
    assert running.store.forwarding.measure() > 0

    target = Target()
    target.close()
    server.RequestHandlerClass = target.server.RequestHandlerClass
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    wait_for(lambda: running.store.forwarding.measure() == 0)
    server.shutdown()
    server.server_close()
    thread.join()

    assert len(target.requests) == 15


SCORES = {"germane.evaluation.answer_relevancy": 0.5, "llm.evaluations.0.name": "answer_relevancy"}


def test_a_span_is_forwarded_once_with_its_scores(start: Start) -> None:
    """The root span of an exchange waits for them. All other spans are forwarded at once."""
    with OTLPReceiver() as target:
        running = start(forward=ForwardTarget(url=target.endpoint))
        with traced(exporter("http", running.receiver.http_address)) as provider:
            ask(provider, "Why?", "So.")
        (exchange,) = wait_for(lambda: exchanges(running.store))
        target.wait_for(lambda received: len(received.spans) == 2)
        assert {span.name for span in target.spans} == {"Retriever", "ChatOpenAI"}

        assert running.store.forwarding.attach(exchange.id, SCORES)
        target.wait_for(lambda received: len(received.spans) == 3)
        wait_for(lambda: running.store.forwarding.measure() == 0)

    (root,) = (span for span in target.spans if span.name == "RunnableSequence")
    assert (root.trace_id, root.span_id) == (exchange.trace_id, exchange.span_id)
    assert root.resource["service.name"] == "shop"
    assert root.attributes["output.value"] == "So."
    assert {name: root.attributes[name] for name in SCORES} == SCORES
    assert exchange.span_holder == FORWARDING
    assert running.receiver.describe()[-1] == "3 requests forwarded, 1 span with scores"


@POSTGRESQL_IS_THOROUGH
def test_a_span_is_forwarded_without_scores_after_the_delay(start: Start) -> None:
    """Later scores are exported on a carrier."""
    with OTLPReceiver() as target:
        running = start({"max_span_delay": 1.0}, forward=ForwardTarget(url=target.endpoint))
        with traced(exporter("http", running.receiver.http_address)) as provider:
            ask(provider, "Why?", "So.")
        target.wait_for(lambda received: len(received.spans) == 3)

    (exchange,) = exchanges(running.store)
    assert not running.store.forwarding.attach(exchange.id, SCORES)


@POSTGRESQL_IS_THOROUGH
@pytest.mark.parametrize("case", ["unreadable", "not sampled", "budget", "not watched", "evaluation"])
def test_root_spans_without_pending_scores_do_not_wait(start: Start, case: str) -> None:
    """Only exchanges that will be scored soon delay their span."""
    own = {
        "not sampled": {"sample_rate": 0.0},
        "budget": {"budget": {"requests_per_day": 10}},
    }
    with OTLPReceiver() as target:
        running = start({"max_span_delay": 1000.0, **own.get(case, {})}, forward=ForwardTarget(url=target.endpoint))
        scope = {"not watched": "http", "evaluation": "germane"}.get(case, SCOPE)
        attributes = {"openinference.span.kind": "LLM"} if case == "unreadable" else {"input.value": "Why?"}
        root = span(name="root", attributes={} if case == "not watched" else attributes)
        send(running, trace_request(root, scope=scope).SerializeToString())

        target.wait_for(lambda received: [span.name for span in received.spans] == ["root"])


def target() -> forwarding.OTLPTarget:
    """Return a target that is not used for sending."""
    return forwarding.OTLPTarget(ForwardTarget(url="http://localhost:1"), httpx2.AsyncClient())


def held_span(number: int, body: bytes) -> Delivery:
    """Return a span that has waited for its score."""
    payload = {"signal": "traces", "is_span": True, "attributes": {"score": 0.5}}
    return Delivery(id=number, payload=payload, body=body, created_at=datetime.now(UTC), attempt=1)


def test_spans_with_scores_are_sent_together() -> None:
    """A request per span would burden the target, and a request that is too large would be rejected."""
    requests = [span(name=f"{number}", attributes={"score": 1, "text": "x" * 400_000}) for number in range(5)]
    queued = [
        held_span(number, compress_request(trace_request(each).SerializeToString()))
        for number, each in enumerate(requests)
    ]

    sent = list(target().group(queued))

    assert [[item.id for item in items] for items in sent] == [[0, 1], [2, 3], [4]]
    bodies = [forwarding._combined_body(items) or b"" for items in sent]
    parsed = [ExportTraceServiceRequest.FromString(gzip.decompress(body)) for body in bodies]
    spans = [span for each in parsed for of in each.resource_spans for span in of.scope_spans[0].spans]
    assert [span.name for span in spans] == ["0", "1", "2", "3", "4"]
    scores = [[pair.value.double_value for pair in span.attributes if pair.key == "score"] for span in spans]
    assert scores == [[0.5]] * 5


@pytest.mark.parametrize(
    "body",
    [b"no gzip", compress_request(b"\xff\xff"), compress_request(b""), b"\x1f\x8b"],
    ids=["no gzip", "no protobuf", "no spans", "truncated gzip"],  # compressed bytes contain the time
)
def test_a_damaged_request_does_not_delay_others(body: bytes) -> None:
    """It is sent alone and without scores, so that the target may reject it."""
    good = compress_request(trace_request(span(name="good")).SerializeToString())
    queued = [held_span(number, each) for number, each in enumerate([good, body, good])]

    sent = list(target().group(queued))

    assert sorted([item.id for item in items] for items in sent) == [[0, 2], [1]]
    assert forwarding._combined_body([queued[1]]) == body


def test_requests_are_queued_for_one_target_and_its_headers(start: Start, rejecting: Target) -> None:
    """A request for one backend is never sent to another one, or with another one's key."""
    targets = [ForwardTarget(url="http://a", headers=headers) for headers in ({}, {"Key": "one"}, {"Key": "two"})]
    targets += [ForwardTarget(url=f"http://user:{password}@a") for password in ("one", "two")]
    names = {target.name for target in targets}
    assert len(names) == 5
    assert not any("one" in name or "two" in name for name in names)
    running = start({"max_span_delay": 0}, forward=ForwardTarget(url=rejecting.url))
    requests = [OutgoingRequest("traces", compress_request(b""))]
    running.store.received.stage([], max_wait=1.0, requests=requests, target="http://elsewhere")
    assert send(running, trace_request(span()).SerializeToString()) == 200
    wait_for(lambda: target_of(running.receiver).rejected == 1)
    wait_for(lambda: running.store.forwarding.measure() == len(requests[0].body))

    assert len(rejecting.requests) == 3


@POSTGRESQL_IS_THOROUGH
def test_requests_for_a_dead_target_take_no_space_of_another_receiver(start: Start, rejecting: Target) -> None:
    """A receiver accepts requests as long as its own target does."""
    running = start({"max_span_delay": 0}, max_staged_size=10_000, forward=ForwardTarget(url=rejecting.url))
    dead = [OutgoingRequest("traces", bytes(20_000))]
    running.store.received.stage([], max_wait=1.0, requests=dead, target="http://dead")
    running.receiver._staging.measure()

    assert send(running, trace_request(span()).SerializeToString()) == 200


@POSTGRESQL_IS_THOROUGH
def test_rejected_requests_are_reported_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A target that rejects some requests does not fill the log."""
    target = Target(400, 200, 400, 200)
    running = start({"max_span_delay": 0}, forward=ForwardTarget(url=target.url))
    for _ in range(4):
        assert send(running, trace_request(span()).SerializeToString()) == 200
    wait_for(lambda: target_of(running.receiver).forwarded == 2)
    target.close()

    assert target_of(running.receiver).rejected == 2
    assert [record.message for record in caplog.records if "forwarding" in record.message] == [
        "the forwarding target rejects requests with HTTP 400, which are dropped"
    ]
