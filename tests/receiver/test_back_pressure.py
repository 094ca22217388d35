"""Clients are asked to wait while the receiver is overloaded or its database is not working."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import text
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import QUICK, Running, Start, ask, exchanges, exporter, post_span, traced, wait_for
from tests.receiver.messages import span, trace_request

from germane.receiver import grpc as grpc_server
from germane.receiver import service, staging
from germane.receiver.requests import Overloaded
from germane.receiver.spans import Batch, Waits, read_request
from germane.receiver.staging import StagingWriter
from germane.storage import TrackingStore
from germane.testing import engine_of, transaction


def post(running: Running) -> Any:
    """Send one span."""
    return post_span(running.receiver.http_address)


def break_tables(store: TrackingStore) -> None:
    """Rename a table, so that every commit fails."""
    with transaction(store) as connection:
        connection.execute(text("ALTER TABLE received_span RENAME TO hidden"))


def repair_tables(store: TrackingStore) -> None:
    """Undo :func:`break_tables`."""
    with transaction(store) as connection:
        connection.execute(text("ALTER TABLE hidden RENAME TO received_span"))


def test_a_failing_database_is_reported_as_a_temporary_error(start: Start, store: TrackingStore) -> None:
    """A request is acknowledged only after its commit, so clients retry it."""
    running = start()
    break_tables(store)
    response = post(running)
    repair_tables(store)

    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert store.received.measure().traces == 0
    assert post(running).status_code == 200


@POSTGRESQL_IS_THOROUGH
def test_exporters_deliver_their_spans_after_an_outage(
    start: Start, store: TrackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry's exporters retry their requests, and no span is lost."""
    monkeypatch.setattr(staging, "STORAGE_RETRY", 1)
    running = start()
    for protocol in ("http", "grpc"):
        break_tables(store)
        repair = threading.Timer(0.7, repair_tables, [store])
        repair.start()
        with traced(exporter(protocol, getattr(running.receiver, f"{protocol}_address"))) as provider:
            ask(provider, f"Is {protocol} back?", "Yes.")
        repair.join()
    wait_for(lambda: len(exchanges(store)) == 2)


@pytest.mark.slow
@POSTGRESQL_IS_THOROUGH
def test_a_full_staging_area_is_reported_as_a_temporary_error(start: Start, store: TrackingStore) -> None:
    """The error lasts until traces are finished, or the forwarding target accepts requests again."""
    running = start(max_staged_size=200, waits=Waits(root=2.0, remote_root=2.0, longest=30.0))
    assert post(running).status_code == 200
    wait_for(lambda: post(running).status_code == 429)
    assert store.received.measure().size <= 200

    wait_for(lambda: post(running).status_code == 200)


@POSTGRESQL_IS_THOROUGH
def test_too_many_concurrent_requests_are_rejected_with_a_temporary_error(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request takes memory, so their number is limited."""
    monkeypatch.setattr(service, "MAX_CONCURRENT_REQUESTS", 0)
    response = post(start())

    assert (response.status_code, response.headers["retry-after"]) == (429, "1")


def test_concurrent_requests_share_a_memory_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single request may be larger than the limit."""
    monkeypatch.setattr(service, "MAX_ACTIVE_BYTES", 1_000)
    store = TrackingStore(f"sqlite:///{tmp_path / 'germane.db'}")
    writer = StagingWriter(store, max_wait=30.0, max_staged_size=10**9)
    shared = service.ExportService(writer, waits=QUICK, token=None)
    with shared.request("a") as first, shared.request("b") as idle:
        shared.reserve(first, 900)
        with shared.request("b") as second:
            shared.reserve(second, 50)
            with pytest.raises(Overloaded):
                shared.reserve(second, 1)
        shared.reserve(first, 5_000)
        with pytest.raises(Overloaded):
            shared.reserve(idle, 1)
    with shared.request("a") as first:
        shared.reserve(first, 1_001)


@given(st.lists(st.sampled_from("abbccccccc"), max_size=60))
@example(["a"] * 60)
def test_a_peer_cannot_use_up_the_share_of_another(peers: list[str]) -> None:
    """However many requests others have, a peer without one gets a slot. A peer alone gets half of all slots."""
    used, limit = Counter[str](), 21
    for peer in peers:
        assert service._has_share(used, peer, 1, limit) or used[peer] > 0
        used[peer] += service._has_share(used, peer, 1, limit)
    assert used.total() < limit
    if len(set(peers)) == 1:
        assert used.total() == min(len(peers), 11)


def test_clients_that_send_nothing_but_the_beginning_of_a_request_keep_nobody_waiting(
    start: Start, store: TrackingStore
) -> None:
    """Neither over HTTP nor over gRPC, and whatever their number."""
    receiver = start().receiver
    begin = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\nx"
    url, never, body = urlsplit(receiver.http_address), threading.Event(), trace_request(span()).SerializeToString()

    def send_nothing() -> Iterator[bytes]:
        never.wait()
        yield from ()

    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection((url.hostname, url.port))).sendall(begin)
        assert post_span(receiver.http_address).status_code == 200
        channel = stack.enter_context(grpc.insecure_channel(receiver.grpc_address.removeprefix("http://")))
        export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
        slow = [channel.stream_unary(export).future(send_nothing()) for _ in range(90)]
        assert channel.unary_unary(export)(body, timeout=20) == b""
        assert not any(call.done() for call in slow)
        never.set()
    wait_for(lambda: not receiver._service._slots and not receiver._service._bytes)


def test_a_grpc_request_that_does_not_arrive_in_time_is_rejected(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """As over HTTP, so that requests of clients that have disappeared do not pile up."""
    monkeypatch.setattr(grpc_server, "REQUEST_TIMEOUT", 0.1)
    never = threading.Event()
    with grpc.insecure_channel(start().receiver.grpc_address.removeprefix("http://")) as channel:
        export = channel.stream_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as failed:
            export(iter(lambda: never.wait() or b"", b""), timeout=20)  # type: ignore[arg-type]
        never.set()
    assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert "did not arrive in time" in failed.value.details()


def test_the_queue_of_received_requests_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While no thread commits, requests are rejected instead of filling the memory."""
    monkeypatch.setattr(staging, "MAX_QUEUED_BYTES", 1_000)
    store = TrackingStore(f"sqlite:///{tmp_path / 'germane.db'}")
    store.migrate()
    writer = StagingWriter(store, max_wait=30.0, max_staged_size=10**9)
    batch = read_request(trace_request(span(name="x" * 400)), QUICK)
    first, second = writer.submit(batch), writer.submit(batch)
    with pytest.raises(Overloaded):
        writer.submit(batch)

    writer.start()
    assert first.result(10) is second.result(10) is None
    assert writer.stop(10)
    with pytest.raises(Overloaded):
        writer.submit(Batch())
    assert (writer.counts.staged, writer.counts.repeated) == (1, 1)
    store.close()


def test_an_exchange_that_the_database_rejects_does_not_block_other_exchanges(
    start: Start, store: TrackingStore, migrated_url: str
) -> None:
    """The trace is counted as unreadable, and the log names it."""
    if engine_of(store).dialect.name == "sqlite":
        refuse = "WHEN NEW.question = 'Bad?' BEGIN SELECT RAISE(ABORT, 'bad'); END"
        rule = f"CREATE TRIGGER refuse BEFORE INSERT ON exchange {refuse}"
        undo = "DROP TRIGGER refuse"
    else:
        rule = "ALTER TABLE exchange ADD CONSTRAINT refuse CHECK (question <> 'Bad?')"
        undo = "ALTER TABLE exchange DROP CONSTRAINT refuse"
    with transaction(store) as connection:
        connection.execute(text(rule))
    running = start()
    with traced(exporter("http", running.receiver.http_address)) as provider:
        for question in ("Good?", "Bad?", "Better?"):
            ask(provider, question, "Yes.")
    wait_for(lambda: store.received.measure().traces == 0)
    with transaction(store) as connection:
        connection.execute(text(undo))

    assert [one.question for one in exchanges(store)] == ["Better?", "Good?"]
    assert [coverage.skipped for coverage in store.trends.coverage()] == [{"unreadable": 1}]
    assert running.receiver.describe()[1] == "3 traces: 2 recognized, 1 unreadable"


def test_a_database_outage_between_claim_and_commit_only_delays_traces(start: Start, store: TrackingStore) -> None:
    """The outcomes are kept until the database works again, before the claim ends."""
    running = start(waits=Waits(root=1.0, remote_root=1.0, longest=30.0))
    with traced(exporter("http", running.receiver.http_address)) as provider:
        ask(provider, "Is it back?", "Yes.")
    with transaction(store) as connection:
        connection.execute(text("ALTER TABLE exchange RENAME TO hidden"))
    wait_for(lambda: running.receiver._finisher._has_failed)
    with transaction(store) as connection:
        connection.execute(text("ALTER TABLE hidden RENAME TO exchange"))

    assert len(wait_for(lambda: exchanges(store))) == 1
