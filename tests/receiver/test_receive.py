"""``germane receive`` as a process, with OpenTelemetry's own exporters."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from opentelemetry import trace
from tests.conftest import PostgreSQL
from tests.databases import ON_SQLITE, POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import TOKEN, ask, exchanges, exporter, post_span, receive, traced, wait_for

from germane.exchange import exchange_id_for, sampling_key_for
from germane.storage import TrackingStore
from germane.testing import OTLPReceiver


def test_traces_exported_to_the_receiver_become_exchanges(store: TrackingStore, migrated_url: str) -> None:
    """Both protocols work, the exchange has all of its fields, and SIGTERM then stops the process."""
    with receive(url=migrated_url) as process:
        trace_ids = []
        for protocol in ("http", "grpc"):
            with traced(exporter(protocol, getattr(process, protocol))) as provider:
                trace_ids += [ask(provider, f"Is {protocol} {number} ok?", f"Yes, {number}.") for number in range(3)]
        found = wait_for(lambda: len(exchanges(store)) == 6 and exchanges(store))

        assert process.stop() == 0
    assert {(one.question, one.answer, one.trace_id) for one in found} == {
        (f"Is {protocol} {number} ok?", f"Yes, {number}.", trace_ids[3 * (protocol == "grpc") + number])
        for protocol in ("http", "grpc")
        for number in range(3)
    }
    for one in found:
        assert [context.text for context in one.contexts] == ["A document."]
        assert (one.service, one.route, one.model, one.status) == ("shop", "RunnableSequence", "small", "ok")
        assert one.sampling_key == sampling_key_for(one.trace_id)
        started_ns = int(one.started_at.timestamp() * 1000) * 1_000_000
        assert one.id == exchange_id_for(one.trace_id, one.span_id, started_ns)
    assert process.lines[-2:] == ["18 spans and log records received", "6 traces: 6 recognized"]


def test_clients_are_asked_to_retry_until_the_tables_exist(postgresql: PostgreSQL) -> None:
    """Health checks succeed before that. Afterwards, what is acknowledged becomes an exchange."""
    url = postgresql.url(postgresql.create())
    with receive(url=url, GERMANE_AUTO_MIGRATE="false") as process:
        health = httpx2.get(f"{process.http}/healthz")
        refused = post_span(process.http)
        assert process.process.stderr is not None
        reason = process.process.stderr.readline()
        store = TrackingStore(url)
        store.migrate()
        wait_for(lambda: post_span(process.http).status_code == 200)
        with traced(exporter("http", process.http)) as provider:
            ask(provider, "How do I pay?", "By card.")
        (found,) = wait_for(lambda: exchanges(store))
        store.close()

        assert process.stop() == 0
    assert (health.status_code, health.text) == (200, "ok\n")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert b"waiting for its database" in refused.content
    assert found.question == "How do I pay?"
    assert reason.startswith("waiting for the database: ")
    assert "4 spans and log records received" in process.lines


@pytest.mark.slow
def test_a_receiver_stops_while_it_waits_for_the_tables(postgresql: PostgreSQL) -> None:
    """It exits with 0, as after any SIGTERM."""
    with receive(url=postgresql.url(postgresql.create()), GERMANE_AUTO_MIGRATE="false") as process:
        assert process.stop() == 0
    assert process.lines[-2:] == ["0 spans and log records received", "0 traces: 0 recognized"]


def test_the_first_start_with_an_sqlite_file_prints_no_warning(tmp_path: Path) -> None:
    """The receiver creates the file before it listens, so no client has to retry."""
    with receive(url=f"sqlite:///{tmp_path / 'germane.db'}") as process:
        assert post_span(process.http).status_code == 200
        assert process.stop() == 0
    assert process.lines[1:] == ["1 spans and log records received", "0 traces: 0 recognized"]


@pytest.mark.slow
@POSTGRESQL_IS_THOROUGH
def test_incomplete_traces_are_finished_after_a_restart(store: TrackingStore, migrated_url: str) -> None:
    """A stopped receiver leaves traces in the database, and the next receiver finishes them."""
    with receive("--trace-wait", "2", url=migrated_url) as process:
        with traced(exporter("http", process.http)) as provider:
            ask(provider, "How do I pay?", "By card.")
        assert process.stop(signal.SIGINT) == 130
    assert store.received.measure().traces == 1

    with receive(url=migrated_url) as process:
        (found,) = wait_for(lambda: exchanges(store))
    assert (found.question, found.answer) == ("How do I pay?", "By card.")


@pytest.mark.slow
def test_two_receivers_can_share_a_database(store: TrackingStore, migrated_url: str) -> None:
    """Spans of one trace may arrive at either receiver."""
    with (
        receive("--trace-wait", "1", url=migrated_url) as first,
        receive("--trace-wait", "1", url=migrated_url) as second,
        traced(exporter("http", first.http)) as one,
        traced(exporter("grpc", second.grpc)) as other,
    ):
        for number in range(10):
            root = one.get_tracer("openinference.instrumentation.langchain").start_span(
                "Chain", attributes={"openinference.span.kind": "CHAIN", "input.value": f"Why {number}?"}
            )
            with trace.use_span(root, end_on_exit=False):
                ask(other, f"Why {number}?", f"Because {number}.")
            root.set_attribute("output.value", f"Because {number}.")
            root.end()
        found = wait_for(lambda: len(exchanges(store)) >= 10 and exchanges(store))
        first.stop()
        second.stop()
    assert sorted(one.question or "" for one in found) == sorted(f"Why {number}?" for number in range(10))
    assert {one.route for one in found} == {"Chain"}


@pytest.mark.slow
@ON_SQLITE
def test_the_error_for_a_port_in_use_names_the_port(migrated_url: str) -> None:
    """The process exits with code 1, and the message names the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option in ("--http", "--grpc"):
            other = "--grpc" if option == "--http" else "--http"
            command = [sys.executable, "-m", "germane", "receive", "--database", migrated_url, option, str(port)]
            ended = subprocess.run([*command, other, "0"], capture_output=True, text=True, timeout=60)

            assert ended.returncode == 1
            assert f"port {port}" in ended.stderr
            assert "Traceback" not in ended.stderr


@pytest.mark.slow
@ON_SQLITE
def test_addresses_other_than_localhost_are_allowed_with_a_token(store: TrackingStore, migrated_url: str) -> None:
    """Clients send it as a bearer token."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    with receive(
        "--http", "0.0.0.0:0", "--grpc", "0.0.0.0:0", url=migrated_url, GERMANE_RECEIVER_TOKEN=TOKEN
    ) as process:
        for protocol in ("http", "grpc"):
            address = getattr(process, protocol).replace("0.0.0.0", "127.0.0.1")
            with traced(exporter(protocol, address, headers=headers)) as provider:
                ask(provider, f"Is {protocol} open?", "Yes.")
        assert len(wait_for(lambda: len(exchanges(store)) == 2 and exchanges(store))) == 2


@pytest.mark.slow
@POSTGRESQL_IS_THOROUGH
def test_spans_with_all_attributes_are_forwarded(store: TrackingStore, migrated_url: str) -> None:
    """Another OTLP endpoint gets the same spans, and the exchanges are stored."""
    # The root span waits for its scores, which no worker computes here.
    with (
        OTLPReceiver() as target,
        receive("--forward", target.endpoint, url=migrated_url, GERMANE_MAX_SPAN_DELAY="1") as process,
    ):
        with traced(exporter("http", process.http)) as provider:
            ask(provider, "How do I pay?", "By card.")
        target.wait_for(lambda received: len(received.spans) == 3, timeout=60)
        wait_for(lambda: exchanges(store))

        span = target.span("RunnableSequence")
        assert span is not None
        assert span.attributes["output.value"] == "By card."
        assert process.stop() == 0
    assert "3 requests forwarded" in process.lines


def test_the_receiver_does_not_load_the_opentelemetry_sdk() -> None:
    """The receiver needs only the OTLP types."""
    program = "import sys, germane.receiver; print([name for name in sys.modules if name == 'opentelemetry.sdk'])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "[]\n"
