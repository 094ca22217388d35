"""OTLP over gRPC: status codes, and how clients are asked to wait."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from tests.conftest import migrated_file
from tests.receiver.conftest import TOKEN, Running, Start, post_span
from tests.receiver.messages import log_record, log_request, span, trace_request

from germane.receiver import service


@pytest.fixture
def migrated_url(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated SQLite file: the database makes no difference to these tests."""
    return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"


def connect(running: Running) -> Any:
    """Return a channel to a receiver."""
    return grpc.insecure_channel(running.receiver.grpc_address.removeprefix("http://"))


def test_spans_and_log_records_are_accepted_over_grpc(start: Start) -> None:
    """Invalid spans are reported, even in compressed requests."""
    running, call = start(), span()
    with connect(running) as channel:
        stub = TraceServiceStub(channel)
        reply = stub.Export(trace_request(call, span(span_id=b"x")), compression=grpc.Compression.Gzip)
        logs = LogsServiceStub(channel).Export(log_request(log_record(call, "gen_ai.choice", {"content": "So."})))

    assert reply.partial_success.rejected_spans == 1
    assert not logs.HasField("partial_success")
    assert running.store.received.measure().traces == 1


def fail(channel: Any, body: bytes, **options: Any) -> grpc.RpcError:
    """Send bytes as a request, and return the error."""
    export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
    with pytest.raises(grpc.RpcError) as failed:
        export(body, timeout=10, **options)
    return failed.value


def test_malformed_grpc_requests_get_a_status_that_is_not_retried(start: Start) -> None:
    """OTLP defines the status as not retryable."""
    running = start(max_request_size=100_000)
    with connect(running) as channel:
        assert fail(channel, b"\xff\xff").code() == grpc.StatusCode.INVALID_ARGUMENT
        too_large = fail(channel, bytes(200_000))
        bomb = fail(
            channel, trace_request(span(name="x" * 10**7)).SerializeToString(), compression=grpc.Compression.Gzip
        )
        metrics = channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
        with pytest.raises(grpc.RpcError) as unknown:
            metrics(b"", timeout=10)

    for error in (too_large, bomb):
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "grpc-status-details-bin" not in dict(error.trailing_metadata())
    assert unknown.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert running.store.received.measure().traces == 0
    assert len(gzip.compress(bytes(10**7))) < 100_000


def test_grpc_requests_require_the_token(start: Start) -> None:
    """The token is sent as metadata."""
    running, body = start({"receiver_token": TOKEN}), trace_request(span()).SerializeToString()
    with connect(running) as channel:
        assert fail(channel, body).code() == grpc.StatusCode.UNAUTHENTICATED
        wrong = fail(channel, body, metadata=(("authorization", "Bearer wrong"),))
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        assert export(body, timeout=10, metadata=(("authorization", f"Bearer {TOKEN}"),)) == b""

    assert wrong.code() == grpc.StatusCode.UNAUTHENTICATED


def test_grpc_requests_without_the_token_are_not_read(start: Start) -> None:
    """Even a huge request is rejected immediately."""
    running = start({"receiver_token": TOKEN}, max_request_size=1_000)
    with connect(running) as channel:
        assert fail(channel, bytes(100_000)).code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_busy_receiver_tells_grpc_clients_when_to_retry(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without RetryInfo, RESOURCE_EXHAUSTED would tell clients to drop the spans."""
    monkeypatch.setattr(service, "MAX_CONCURRENT_REQUESTS", 0)
    with connect(start()) as channel:
        error = fail(channel, trace_request(span()).SerializeToString())

    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    status = Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    retry = RetryInfo()
    assert status.code == 8
    assert status.details[0].Unpack(retry)
    assert retry.retry_delay.seconds == 1


def test_clients_share_the_capacity_by_their_address(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their ports, over HTTP and over gRPC."""
    running, peers = start(), list[str]()
    shared = running.receiver._service
    original = shared.request
    monkeypatch.setattr(shared, "request", lambda peer: peers.append(peer) or original(peer))
    for _ in range(2):
        assert post_span(running.receiver.http_address).status_code == 200
        with connect(running) as channel:
            TraceServiceStub(channel).Export(trace_request(span()))

    assert peers == ["127.0.0.1", "ipv4:127.0.0.1"] * 2
