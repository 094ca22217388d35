"""Clients are asked to wait while the receiver is overloaded or its database is not working."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import QUICK, Running, Start, ask, exchanges, exporter, post_span, traced, wait_for
from tests.receiver.messages import span, trace_request

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
    with shared.slot() as first:
        first.grow(900)
        with shared.slot() as second:
            second.grow(100)
            with pytest.raises(Overloaded):
                second.grow(1)
        first.grow(5_000)
    with shared.slot() as first, shared.slot() as second:
        second.grow(1_000)
        with pytest.raises(Overloaded):
            first.grow(1)


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
