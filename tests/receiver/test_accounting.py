"""Every trace and every span is accounted for: seen = recognized + unreadable, by service, scope and reason."""

from __future__ import annotations

from datetime import timedelta

import httpx2
import pytest
from tests.databases import POSTGRESQL_IS_THOROUGH
from tests.receiver.conftest import PLAIN, Running, Start, ask, exchanges, exporter, receive, traced, wait_for
from tests.receiver.messages import SCOPE, chain, model_call, span, trace_request

from germane.cli.commands.doctor.watching import check_watching
from germane.receiver import Waits
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.storage.counts.watched import WatchedTraces
from germane.testing import OTLPReceiver, engine_of, transaction

OPENAI = "opentelemetry.instrumentation.genai.openai"


def send(running: Running, *requests: object) -> None:
    """Send requests, which are accepted."""
    for request in requests:
        body = request.SerializeToString()  # type: ignore[attr-defined]
        headers = {"Content-Type": "application/x-protobuf"}
        url = f"{running.receiver.http_address}/v1/traces"
        assert httpx2.post(url, content=body, headers=headers, verify=PLAIN).status_code == 200


def finish(store: TrackingStore) -> None:
    """Wait until all traces are finished."""
    wait_for(lambda: store.received.measure().traces == 0)


def test_each_received_trace_is_counted_once(start: Start, store: TrackingStore) -> None:
    """Traces that clients send again later are not counted twice. Doctor shows the fix for unreadable ones."""
    running, requests = start(), []
    for number in range(3):
        root = chain(f"Why {number}?", "So.")
        requests.append(trace_request(root, model_call("Why?", "So.", parent=root), service="shop"))
    for _ in range(2):
        call = span(name="chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
        requests.append(trace_request(call, service="shop", scope=OPENAI))
    send(running, *requests, trace_request(span(name="GET /"), service="shop", scope="http"))
    finish(store)
    send(running, *requests)
    finish(store)

    counted = store.exchanges.list_watched(since=store.now() - timedelta(hours=1))
    assert sorted((one.scope, one.outcome, one.count) for one in counted) == [
        ("http", "not_an_exchange", 1),
        (SCOPE, "recognized", 3),
        (OPENAI, "content_capture_off", 2),
    ]
    assert {one.service for one in counted} == {"shop"}
    assert isinstance(counted[0], WatchedTraces)
    assert running.receiver.describe()[0] == "17 spans and log records received, 8 repeated"
    assert running.receiver.describe()[1] == "6 traces: 3 recognized, 1 without an exchange, 2 unreadable"
    assert [(trace.scope, trace.reason) for trace in store.unreadable.list_traces()] == [
        (OPENAI, "content_capture_off"),
        (OPENAI, "content_capture_off"),
    ]
    findings = list(check_watching(store, load_settings()))
    assert any("SPAN_ONLY" in (finding.fix or "") for finding in findings)


def test_traces_wait_if_the_database_rejects_all_exchanges(
    start: Start, store: TrackingStore, caplog: pytest.LogCaptureFixture
) -> None:
    """No trace is dropped for an error that another row has, too."""
    if engine_of(store).dialect.name == "sqlite":
        rejects = "CREATE TRIGGER reject BEFORE INSERT ON exchange BEGIN SELECT RAISE(ABORT, 'not now'); END"
        accepts = "DROP TRIGGER reject"
    else:
        rejects = "ALTER TABLE exchange ADD CONSTRAINT reject CHECK (false) NOT VALID"
        accepts = "ALTER TABLE exchange DROP CONSTRAINT reject"
    with transaction(store) as connection:
        connection.exec_driver_sql(rejects)
    running, root = start(), chain("Why?", "So.")
    send(running, trace_request(root, model_call("Why?", "So.", parent=root)))
    wait_for(lambda: "traces are finished later" in caplog.text)
    with transaction(store) as connection:
        connection.exec_driver_sql(accepts)
    finish(store)

    assert [exchange.question for exchange in exchanges(store)] == ["Why?"]
    assert "is dropped" not in caplog.text


def test_spans_that_arrive_after_their_trace_was_finished_are_counted(start: Start, store: TrackingStore) -> None:
    """The exchange of a finished trace no longer changes."""
    running = start()
    root = chain("Why?", "So.")
    late = model_call("Why not?", "No.", parent=root, start_time_unix_nano=root.start_time_unix_nano)
    send(running, trace_request(root, model_call("Why?", "So.", parent=root)))
    finish(store)
    send(running, trace_request(root, late))
    finish(store)

    assert store.answers.counts().captured == 1
    assert running.receiver.describe()[0] == "4 spans and log records received, 1 repeated, 1 too late for their trace"


def test_late_spans_of_a_client_whose_clock_is_ahead_are_late(start: Start, store: TrackingStore) -> None:
    """The exchange starts at its receipt, but its spans are compared by the clock of their sender."""
    running = start()
    root = chain("Why?", "So.")
    start_time, end_time = (each + 86_400 * 10**9 for each in (root.start_time_unix_nano, root.end_time_unix_nano))
    root.start_time_unix_nano, root.end_time_unix_nano = start_time, end_time
    call, late = (model_call("Why?", each, parent=root, start_time_unix_nano=start_time) for each in ("So.", "No."))
    send(running, trace_request(root, call))
    finish(store)
    send(running, trace_request(root, late))
    finish(store)

    (found,) = exchanges(store)
    assert found.started_at <= store.now()
    assert running.receiver.describe()[0] == "4 spans and log records received, 1 repeated, 1 too late for their trace"


def test_later_requests_in_the_same_trace_are_separate_exchanges(start: Start, store: TrackingStore) -> None:
    """Some instrumentations put all later requests of a process into the trace of the first one."""
    running = start()
    first = chain("Why 0?", "So 0.")
    send(running, trace_request(first))
    finish(store)
    later = [chain(f"Why {number}?", f"So {number}.", parent=first) for number in (1, 2)]
    calls = [model_call("Why?", f"So {number}.", parent=later[number - 1]) for number in (1, 2)]
    send(running, trace_request(*later, *calls))
    finish(store)
    send(running, trace_request(chain("Why 3?", "So 3.", parent=later[0])))
    finish(store)
    send(running, trace_request(first, *later, *calls))
    finish(store)

    found = exchanges(store)
    assert [(one.question, one.answer) for one in found] == [(f"Why {n}?", f"So {n}.") for n in range(4)]
    assert [one.span_id for one in found[:3]] == [one.span_id.hex() for one in (first, *later)]
    (counted,) = store.exchanges.list_watched(since=store.now() - timedelta(hours=1))
    assert (counted.outcome, counted.count) == ("recognized", 4)


def test_an_answer_that_arrives_after_its_trace_was_counted_still_yields_an_exchange(
    start: Start, store: TrackingStore
) -> None:
    """The root of a web framework may arrive long before the other spans."""
    running = start()
    root = span(name="POST /ask", kind=2)
    answered = chain("Why?", "So.", parent=root)
    send(running, trace_request(root, scope="http"))
    finish(store)
    send(running, trace_request(answered))
    finish(store)
    send(running, trace_request(root, scope="http"), trace_request(answered))
    finish(store)

    (found,) = exchanges(store)
    assert (found.answer, found.span_id) == ("So.", answered.span_id.hex())
    counted = store.exchanges.list_watched(since=store.now() - timedelta(hours=1))
    assert sorted((one.outcome, one.count) for one in counted) == [("not_an_exchange", 1), ("recognized", 1)]


@POSTGRESQL_IS_THOROUGH
def test_a_trace_without_an_answer_waits_for_the_answer(start: Start, store: TrackingStore) -> None:
    """At the maximum wait, the trace is counted as unreadable."""
    running = start(waits=Waits(root=0.1, remote_root=0.2, longest=2.0))
    roots = [span(name="Chain", attributes={"openinference.span.kind": "CHAIN", "input.value": "Why?"}) for _ in "12"]
    send(running, trace_request(*roots))
    wait_for(lambda: running.receiver._finisher.postponed >= 2)
    send(running, trace_request(model_call("Why?", "So.", parent=roots[0])))
    finish(store)

    (found,) = exchanges(store)
    assert found.span_id == roots[0].span_id.hex()
    counted = store.exchanges.list_watched(since=store.now() - timedelta(hours=1))
    assert sorted((one.outcome, one.count) for one in counted) == [("model_not_traced", 1), ("recognized", 1)]


@POSTGRESQL_IS_THOROUGH
def test_a_root_span_from_another_process_extends_the_wait(start: Start, store: TrackingStore) -> None:
    """The spans of two services become one exchange, although they are sent by different processes."""
    running = start(waits=Waits(root=0.3, remote_root=5.0, longest=30.0))
    entry = span(name="POST /ask", kind=3)
    root = chain("Why?", "So.", parent=entry, flags=0x300)
    send(running, trace_request(root, model_call("Why?", "So.", parent=root, flags=0x100), service="rag"))
    assert store.received.measure().traces == 1

    send(running, trace_request(entry, service="gateway", scope="http"))
    finish(store)
    (found,) = store.answers.list_exchanges()
    assert (found.service, found.span_id) == ("rag", entry.span_id.hex())


@pytest.mark.slow
@POSTGRESQL_IS_THOROUGH
def test_metrics_count_what_is_received_and_forwarded(store: TrackingStore, migrated_url: str) -> None:
    """They are exported when the receiver stops, to the endpoint that OpenTelemetry's variables name."""
    with OTLPReceiver() as backend:
        environment = {**backend.environment(), "GERMANE_MAX_SPAN_DELAY": "0"}
        with receive("--forward", backend.endpoint, url=migrated_url, **environment) as process:
            with traced(exporter("http", process.http)) as provider:
                ask(provider, "Why?", "So.")
            wait_for(lambda: exchanges(store))
            wait_for(lambda: store.forwarding.measure() == 0)
            assert process.stop() == 0

        found = {
            (metric.name, point.attributes.get("outcome")): point.value
            for metric in backend.metrics
            for point in metric.points
        }
    assert found["germane.receive.spans", "staged"] == 3
    assert found["germane.receive.forwarded_requests", "accepted"] == 3
    assert found["germane.watch.traces", "recognized"] == 1


@POSTGRESQL_IS_THOROUGH
def test_the_fix_depends_on_the_instrumentation(start: Start, store: TrackingStore) -> None:
    """An application names the scope of Haystack's spans itself."""
    running = start()
    pipeline = span(name="haystack.pipeline.run", attributes={"haystack.pipeline.execution_mode": "sync"})
    generator = {"haystack.component.name": "llm", "haystack.component.type": "OpenAIGenerator"}
    call = span(name="haystack.component.run", parent=pipeline, attributes=generator)
    send(running, trace_request(call, pipeline, scope="my application"))
    wait_for(lambda: any("unreadable" in line for line in running.receiver.describe()))

    assert any("HAYSTACK_CONTENT_TRACING_ENABLED=true" in line for line in running.receiver.describe())
