"""OTLP over HTTP: encodings, limits, errors and fuzzed requests."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tests.cases import each
from tests.conftest import migrated_file
from tests.receiver.conftest import PLAIN, TOKEN, Running, Start, exchanges, wait_for
from tests.receiver.messages import chain, export_requests, log_record, log_request, span, trace_request

from germane.receiver.requests import Decompressor, InvalidRequest, parse_request

PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
LIMIT = 100_000


@pytest.fixture
def migrated_url(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated SQLite file: the database makes no difference to these tests."""
    return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"


@pytest.fixture
def running(start: Start) -> Running:
    """A receiver with a small limit on the size of requests."""
    return start(max_request_size=LIMIT)


def post(running: Running, body: bytes, headers: dict[str, str] = PROTOBUF, path: str = "/v1/traces") -> Any:
    """Send a request."""
    return httpx2.post(running.receiver.http_address + path, content=body, headers=headers, verify=PLAIN)


def test_a_protobuf_request_gets_a_protobuf_response(running: Running) -> None:
    """An accepted request has an empty response."""
    response = post(running, trace_request(span()).SerializeToString())

    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == "application/x-protobuf"
    assert running.store.received.measure().traces == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_http_requests_are_accepted(running: Running, encoding: str) -> None:
    """The receiver supports both encodings that exporters use."""
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    body = compress(trace_request(span()).SerializeToString())

    assert post(running, body, {**PROTOBUF, "Content-Encoding": encoding}).status_code == 200
    assert running.store.received.measure().traces == 1


def test_ids_in_otlp_json_are_hexadecimal(running: Running) -> None:
    """OTLP's JSON format differs from protobuf's in this respect. The response is also JSON."""
    item = {
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "eee19b7ec3c1b174",
        "name": "chat",
        "kind": 3,
        "startTimeUnixNano": "1544712660000000000",
        "endTimeUnixNano": 1544712661000000000,
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.input.messages", "value": {"stringValue": '[{"role":"user","content":"Why?"}]'}},
            {"key": "gen_ai.output.messages", "value": {"stringValue": '[{"role":"assistant","content":"So."}]'}},
        ],
        "links": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b173"}],
        "unknownField": True,
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "mine"}, "spans": [item]}]}]})
    response = post(running, body.encode(), JSON)

    assert (response.status_code, response.json()) == (200, {})
    (found,) = wait_for(lambda: exchanges(running.store))
    assert (found.question, found.answer, found.service) == ("Why?", "So.", "unknown_service")
    assert (found.trace_id, found.span_id) == ("5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174")


ENCODINGS: dict[str, Callable[[bytes], str]] = {
    "hexadecimal": bytes.hex,
    "hexadecimal in capitals": lambda value: value.hex().upper(),
    "base64": lambda value: base64.b64encode(value).decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value).decode(),
    "base64 without padding": lambda value: base64.b64encode(value).decode().rstrip("="),
}


@given(trace_id=st.binary(min_size=16, max_size=16), span_id=st.binary(min_size=8, max_size=8))
@each("encode", ENCODINGS.values())
def test_ids_in_otlp_json_can_be_hexadecimal_or_base64(
    trace_id: bytes, span_id: bytes, encode: Callable[[bytes], str]
) -> None:
    """Exporters that write protobuf's JSON format encode ids in base64. Their length tells the two apart."""
    parent = span_id[::-1]
    ids = {"traceId": encode(trace_id), "spanId": encode(span_id), "parentSpanId": encode(parent)}
    item = {**ids, "links": [{"traceId": encode(trace_id), "spanId": encode(parent)}]}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [item]}]}]}

    request, rejected = parse_request("traces", json.dumps(document).encode(), "application/json")

    found = request.resource_spans[0].scope_spans[0].spans[0]  # type: ignore[union-attr]  # a request of spans
    assert (found.trace_id, found.span_id, found.parent_span_id) == (trace_id, span_id, parent)
    assert (found.links[0].trace_id, found.links[0].span_id, rejected) == (trace_id, parent, 0)


@each(
    "value",
    [
        "zz", "5b8efff798038103d269b633813fc60", "W47/95gDgQPSabYzgT/GDA=", "W47/95gDgQPSabYzgT/GDA===",
        "W47/95gDgQPSabYzgT/GD==", "W47/95gDgQPSabYzgT/GDAA=", "W47 95gDgQPSabYzgT/GDA==", "W47ä95gDgQPSabYzgT/GDA==",
        "5b8efff7-9803-8103-d269-b633813fc60c", "0x5b8efff798038103d269b633813fc60c", 7, ["W47/95gDgQPSabYzgT/GDA=="],
    ],
)  # fmt: skip
def test_an_id_of_another_length_or_form_is_rejected(value: Any) -> None:
    """It would join spans of different traces."""
    spans = [{"traceId": value, "spanId": "00f067aa0ba902b7"}, {"traceId": "0af7651916cd43dd8448eb211c80319c"}]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}

    assert parse_request("traces", json.dumps(document).encode(), "application/json")[1] == 1


def test_protobufs_own_json_is_read_like_the_message_itself() -> None:
    """Its bytes are in base64."""
    sent = trace_request(root := chain("Why?", "So."), span(parent=root))

    assert parse_request("traces", json_format.MessageToJson(sent).encode(), "application/json") == (sent, 0)


def test_the_response_reports_the_number_of_invalid_spans(running: Running) -> None:
    """The valid spans in the request are staged, and the response states the number of rejected ones."""
    request = trace_request(span(), span(trace_id=b"short"), span(span_id=bytes(8)), span(trace_id=bytes(16)))
    response = post(running, request.SerializeToString())

    assert response.status_code == 200
    partial = ExportTraceServiceResponse.FromString(response.content).partial_success
    assert partial.rejected_spans == 3
    assert "invalid trace id" in partial.error_message
    as_json = post(running, b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}', JSON)
    assert as_json.json()["partialSuccess"]["rejectedSpans"] == "1"


@pytest.mark.parametrize("place", ["name", "event", "attribute", "key"])
def test_lone_surrogates_in_otlp_json_are_replaced(running: Running, place: str) -> None:
    """JavaScript may write half an emoji as an invalid escape. The other spans in the batch are kept."""
    cut, item = "half \ud83d", chain("Why?", "So.")
    half: dict[str, Any] = {
        "traceId": item.trace_id.hex(),
        "spanId": "00f067aa0ba902b7",
        "name": cut if place == "name" else "x",
        "events": [{"name": cut}] if place == "event" else [],
        "attributes": [{"key": "a", "value": {"stringValue": cut}}] if place == "attribute" else [],
    }
    if place == "key":
        half[cut] = 1
    whole = {
        "traceId": item.trace_id.hex(),
        "spanId": item.span_id.hex(),
        "attributes": [
            {"key": pair.key, "value": {"stringValue": pair.value.string_value}} for pair in item.attributes
        ],
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [half, whole]}]}]})

    assert post(running, body.encode(), JSON).status_code == 200
    assert running.store.received.measure().traces == 1


def test_null_in_otlp_json_stands_for_a_field_that_is_not_set(running: Running) -> None:
    """The JSON mapping of protobuf accepts null for every field, such as the parent of a root span."""
    ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7"}
    span = {**ids, "parentSpanId": None, "name": "root", "events": None, "links": [{**ids, "spanId": None}]}
    response = post(running, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode(), JSON)

    assert (response.status_code, response.json()) == (200, {})
    assert running.store.received.measure().traces == 1


def test_an_invalid_field_in_otlp_json_rejects_only_its_span(running: Running) -> None:
    """The other spans in the batch are staged, and the response states the number of rejected ones."""
    ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7"}
    links = [{**ids, "spanId": "zz"}]
    invalid = [{"kind": float("inf")}, {"name": []}, {"traceId": "zz"}, {"parentSpanId": 7}, {"links": links}]
    spans = json.dumps([ids, *({**ids, **each} for each in invalid), 7])
    response = post(running, f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":{spans}}}]}}]}}'.encode(), JSON)

    assert (response.status_code, response.json()["partialSuccess"]["rejectedSpans"]) == (200, "6")
    assert running.store.received.measure().traces == 1


GZIP = {**PROTOBUF, "Content-Encoding": "gzip"}
MALFORMED: dict[str, tuple[bytes, dict[str, str], int]] = {
    "not protobuf": (b"\xff\xff", PROTOBUF, 400),
    "truncated protobuf": (trace_request(span(name="x" * 100)).SerializeToString()[:-10], PROTOBUF, 400),
    "truncated JSON": (b"{", JSON, 400),
    "a JSON list": (b"[]", JSON, 400),
    "deep JSON": (b"[" * 50_000, JSON, 400),
    "JSON of the wrong type": (b'{"resourceSpans": 1}', JSON, 400),
    "an id that is not hexadecimal": (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"zz"}]}]}]}', JSON, 400),
    "an id that is a number": (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":7}]}]}]}', JSON, 400),
    "an infinite number": (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":1e999}]}]}]}', JSON, 400),
    "a number that is too large": (
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"99999999999999999999999"}]}]}]}',
        JSON,
        400,
    ),
    "an unencoded surrogate": (b'{"x":"\xed\xa0\x80"}', JSON, 400),
    "UTF-16": ('{"resourceSpans":[]}'.encode("utf-16"), JSON, 400),
    "JSON that is not UTF-8": (b"\xff", JSON, 400),
    "plain text": (b"x", {"Content-Type": "text/plain"}, 415),
    "no content type": (b"x", {}, 415),
    "an unknown encoding": (b"x", {**PROTOBUF, "Content-Encoding": "br"}, 415),
    "not gzip": (b"not gzip", GZIP, 400),
    "truncated gzip": (gzip.compress(trace_request(span()).SerializeToString())[:-9], GZIP, 400),
    "data after gzip": (gzip.compress(b"") + b"more", GZIP, 400),
    "a large body": (bytes(LIMIT + 1), PROTOBUF, 413),
    "a zip bomb": (gzip.compress(bytes(LIMIT + 1)), GZIP, 413),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_http_requests_are_rejected(running: Running, name: str) -> None:
    """The status tells clients not to retry, and the message does not quote the request."""
    body, headers, status = MALFORMED[name]
    response = post(running, body, headers)

    assert response.status_code == status
    message = response.json()["message"] if headers == JSON else Status.FromString(response.content).message
    assert 5 < len(message) < 100
    assert running.store.received.measure().traces == 0


@pytest.mark.parametrize("path", ["/v1/metrics", "/", "/v1/traces/", "/v1development/profiles"])
def test_http_requests_for_other_signals_get_status_404(running: Running, path: str) -> None:
    """The status tells exporters that metrics are not received."""
    assert post(running, b"", path=path).status_code in {404, 307}
    assert httpx2.get(running.receiver.http_address + "/v1/traces", verify=PLAIN).status_code == 405


def test_pages_of_other_sites_cannot_send_spans(running: Running) -> None:
    """A page can send some content types without a preflight request; such requests are rejected."""
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert post(running, b"{}", {"Content-Type": content_type}).status_code == 415
    assert httpx2.options(running.receiver.http_address + "/v1/traces", verify=PLAIN).status_code == 405


def test_a_compressed_request_that_expands_enormously_is_rejected_early() -> None:
    """Decompression stops at the limit."""
    bomb = gzip.compress(bytes(200 * 2**20))
    tracemalloc.start()
    decompressor = Decompressor("gzip", 2**20)
    with pytest.raises(InvalidRequest, match="exceeds"):
        decompressor.feed(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 * 2**20


def test_http_requests_require_the_token(start: Start) -> None:
    """Wrong tokens and other schemes are rejected."""
    running = start({"receiver_token": TOKEN})
    body = trace_request(span()).SerializeToString()
    for header in ({}, {"Authorization": "Bearer wrong-token-000000"}, {"Authorization": f"Basic {TOKEN}"}):
        response = post(running, body, {**PROTOBUF, **header})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
    assert running.store.received.measure().traces == 0

    assert post(running, body, {**PROTOBUF, "Authorization": f"bearer {TOKEN}"}).status_code == 200


def test_questions_and_answers_in_log_records_are_used(running: Running) -> None:
    """Some instrumentations record questions and answers as events only. Ordinary log records are ignored."""
    call = span(attributes={"gen_ai.operation.name": "chat"})
    asked = log_record(call, "gen_ai.user.message", {"content": "Why?", "role": "user"})
    given_ = log_record(call, "gen_ai.choice", {"message": {"content": "So.", "role": "assistant"}, "index": 0})
    ordinary = log_record(call, "", {"content": "started"})
    scope = "opentelemetry.instrumentation.openai_v2"
    logs = log_request(asked, given_, scope=scope).SerializeToString()

    assert post(running, logs, path="/v1/logs").status_code == 200
    assert post(running, logs, path="/v1/logs").status_code == 200
    assert post(running, log_request(ordinary).SerializeToString(), path="/v1/logs").status_code == 200
    assert post(running, trace_request(call, scope=scope).SerializeToString()).status_code == 200
    (found,) = wait_for(lambda: exchanges(running.store))
    assert (found.question, found.answer) == ("Why?", "So.")


@dataclass
class Lenient:
    """A receiver, and a client that keeps its connection."""

    running: Running
    client: httpx2.Client

    def post(self, body: bytes, headers: dict[str, str] = PROTOBUF, path: str = "/v1/traces") -> Any:
        """Send a request."""
        return self.client.post(self.running.receiver.http_address + path, content=body, headers=headers)


@pytest.fixture
def lenient(start: Start) -> Iterator[Lenient]:
    """A receiver for many requests."""
    with httpx2.Client(verify=PLAIN) as client:
        yield Lenient(start(), client)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=export_requests())
def test_each_span_of_a_valid_request_is_accepted_or_reported_as_rejected(
    lenient: Lenient, request: ExportTraceServiceRequest
) -> None:
    """Each span is accepted or reported as rejected, in protobuf and in JSON."""
    spans = [item for resource in request.resource_spans for scope in resource.scope_spans for item in scope.spans]
    invalid = sum(
        len(item.trace_id) != 16 or len(item.span_id) != 8 or not any(item.trace_id) or not any(item.span_id)
        for item in spans
    )
    before = lenient.running.receiver._service.received
    response = lenient.post(request.SerializeToString())

    assert response.status_code == 200
    assert ExportTraceServiceResponse.FromString(response.content).partial_success.rejected_spans == invalid
    assert lenient.running.receiver._service.received == before + len(spans)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300), kind=st.sampled_from([PROTOBUF, JSON]), path=st.sampled_from(["traces", "logs"]))
def test_random_bytes_never_crash_the_receiver(lenient: Lenient, body: bytes, kind: dict[str, str], path: str) -> None:
    """The response is an acceptance or a rejection, never a server error."""
    assert lenient.post(body, kind, f"/v1/{path}").status_code in {200, 400}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from([field.json_name for field in ExportLogsServiceRequest.DESCRIPTOR.fields])


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_unexpected_json_values_never_crash_the_receiver(lenient: Lenient, data: st.DataObject) -> None:
    """Any value in place of any field of a span is accepted or rejected."""
    document: dict[str, Any] = json.loads(json_format.MessageToJson(trace_request(span(attributes={"a": 1}))))
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            places.append((value, key))
            collect(value[key])

    collect(document)
    container, key = data.draw(st.sampled_from(places))
    container[key] = data.draw(JSON_VALUES)

    assert lenient.post(json.dumps(document).encode(), JSON).status_code in {200, 400}
