"""``germane pull``: past traces of Phoenix and MLflow, as their servers return them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.cases import each
from tests.cli.conftest import an_exchange
from tests.receiver.messages import chain, pairs, span, trace_request
from tests.receiver.trace_backends import TraceBackend, phoenix_span, serving

from germane.exchange import Exchange, exchange_id_for
from germane.receiver.sources import as_request
from germane.storage import TrackingStore
from germane.testing import transaction

DAY = 86_400 * 10**9
KINDS = ("answered", "own", "evaluation", "silent")
COUNTED = 45
"""Number of traces that count as watched: neither evaluations, nor traces of decorated handlers."""
URLS = {"phoenix": "PHOENIX_COLLECTOR_ENDPOINT", "mlflow": "MLFLOW_TRACKING_URI"}
PROJECTS = {"phoenix": "PHOENIX_PROJECT_NAME", "mlflow": "MLFLOW_EXPERIMENT_NAME"}
KEYS = {"phoenix": "PHOENIX_API_KEY", "mlflow": "MLFLOW_TRACKING_TOKEN"}


def past(random_: random.Random, number: int, kind: str = "answered") -> list[Span]:
    """Return a trace of the last month."""
    start = time.time_ns() - random_.randrange(DAY // 10, 29 * DAY)
    ids = {"trace_id": random_.randbytes(16), "span_id": random_.randbytes(8)}
    times = {"start_time_unix_nano": start, "end_time_unix_nano": start + 2_000_000}
    root = chain(f"Question {number}?", f"Answer {number}.", **ids, **times)
    if kind == "silent":
        root.attributes.pop()
    if kind == "own":
        root.attributes.extend(pairs({"germane.exchange.id": "1" * 32}))
    if kind == "evaluation":
        root.attributes[0].value.string_value = "EVALUATOR"
    documents = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": f"Document {number}.",
    }
    retriever = span(parent=root, span_id=random_.randbytes(8), attributes=documents, name="R", **times)
    return [retriever, root]


def backend_of(answered: int = 0, **others: int) -> TraceBackend:
    random_ = random.Random(7)
    kinds = [kind for kind, count in {"answered": answered, **others}.items() for _ in range(count)]
    traces = [past(random_, number, kind) for number, kind in enumerate(kinds)]
    return TraceBackend({spans[0].trace_id.hex(): spans for spans in traces})


def exchanges(store: TrackingStore) -> list[Exchange]:
    return store.answers.list_exchanges(limit=1_000)


@pytest.fixture(params=["phoenix", "mlflow"])
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def backend(source: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceBackend]:
    """A backend with 40 answers, and 15 traces without one, to which the environment refers."""
    monkeypatch.setenv("GERMANE_SERVICE", "shop")
    with serving(backend_of(answered=40, own=5, evaluation=5, silent=5)) as served:
        monkeypatch.setenv(URLS[source], served.url)
        monkeypatch.setenv(PROJECTS[source], "shop")
        yield served


def accounts(store: TrackingStore) -> dict[str, Any]:
    """Return what is stored and counted."""
    queries = {
        "watched": "SELECT service, scope, outcome, sum(count) FROM watched_trace GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        "tally": "SELECT service, route, outcome, reason, sum(count) FROM tally GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3",
        "exchanges": "SELECT count(*) FROM exchange",
    }
    with transaction(store) as connection:
        return {name: [tuple(row) for row in connection.exec_driver_sql(query)] for name, query in queries.items()}


def test_pulled_traces_are_stored_once_with_their_times_and_ids(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exchanges are those that the receiver would have stored. The rate limit and the current time do not matter.

    A second pull stores and counts nothing.
    """
    monkeypatch.setenv("GERMANE_MAX_EXCHANGES_PER_MINUTE", "1")
    first = call("pull", source, "--json")
    accounted = accounts(store)
    again = call("pull", source)

    found = json.loads(first.out)
    assert (first.code, found["traces"], found["recognized"], found["new"]) == (0, 55, 40, 40)
    assert (found["ignored"], found["scorers"], found["invalid_spans"]) == (10, [], 0)
    assert [(each["reason"], each["traces"]) for each in found["unreadable"]] == [("model_not_traced", 5)]
    roots = {spans[1].span_id.hex(): spans[1] for spans in backend.traces.values()}
    stored = exchanges(store)
    assert len(stored) == 40
    for exchange in stored:
        root = roots[exchange.span_id]
        began = root.start_time_unix_nano
        number = str(exchange.question).removeprefix("Question ").removesuffix("?")
        assert exchange.trace_id == root.trace_id.hex()
        assert abs(exchange.started_at.timestamp() - began / 1e9) < 2e-6
        assert exchange.id == exchange_id_for(exchange.trace_id, exchange.span_id, began)
        assert (exchange.service, exchange.route, exchange.capture_probability) == ("shop", "Chain", 1.0)
        assert (exchange.answer, exchange.contexts[0].text) == (f"Answer {number}.", f"Document {number}.")
    assert again.out.splitlines()[0] == "55 traces: 40 recognized, 10 without an exchange, 5 unreadable"
    assert again.out.splitlines()[-1] == "0 stored, 40 stored before"
    assert accounts(store) == accounted
    assert sum(row[-1] for row in accounted["watched"]) == COUNTED


@pytest.mark.parametrize("source", ["phoenix"], indirect=True)
def test_a_dry_run_reports_reasons_and_cost_and_writes_nothing(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any
) -> None:
    """It shows the fix for unreadable traces, and what scoring the new exchanges would cost."""
    before = accounts(store)
    ended = call("pull", source, "--dry-run")
    priced = call("pull", source, "--dry-run", "--json")

    lines = ended.out.splitlines()
    assert lines[0] == "55 traces: 40 recognized, 10 without an exchange, 5 unreadable"
    assert lines[1].startswith("  5 unreadable (model_not_traced) of shop, no scope: ")
    assert lines[2:4] == ["40 to store, 0 stored before", "To score:"]
    assert all(": 40 answers, about " in line for line in lines[4:])
    assert {scorer["answers"] for scorer in json.loads(priced.out)["scorers"]} == {40}
    with transaction(store) as connection:
        assert connection.exec_driver_sql("SELECT * FROM lease").all() == []
    assert accounts(store) == before


def test_an_interrupted_pull_continues_where_it_stopped(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any
) -> None:
    """Traces that were stored before the interruption are not fetched again, and each is counted once."""
    is_broken = True
    backend.answer = lambda _, number: (503, "busy") if is_broken and number > 5 else None
    broken = call("pull", source)
    before, asked = len(exchanges(store)), len(backend.requests)
    is_broken = False
    continued = call("pull", source)

    name = "phoenix" if source == "phoenix" else "mlflow"
    assert (broken.code, broken.err.splitlines()[-1]) == (1, f"germane: {name} responded with status 503: busy")
    assert 0 < before < 40
    assert "continuing the pull of traces until" in continued.err
    assert continued.out.splitlines()[-1] == f"{40 - before} stored, 0 stored before"
    assert len(exchanges(store)) == 40
    fetched = Counter(id_ for id_ in backend.traces for asked_for in backend.requests[asked:] if id_ in asked_for)
    assert len(fetched) < 55
    assert sum(row[-1] for row in accounts(store)["watched"]) == COUNTED


@pytest.mark.slow
def test_a_killed_pull_continues_where_it_stopped(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any
) -> None:
    """The next process takes over the lease of the killed one."""
    reached = Event()

    def answer(_: str, number: int) -> None:
        if number == 6:
            reached.set()
            killed.wait(60)

    backend.answer, killed = answer, Event()
    process = subprocess.Popen([sys.executable, "-m", "germane", "pull", source], env=dict(os.environ))
    assert reached.wait(60)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    killed.set()
    before = len(exchanges(store))
    continued = call("pull", source)

    assert 0 < before < 40
    assert continued.out.splitlines()[-1] == f"{40 - before} stored, 0 stored before"
    assert len(exchanges(store)) == 40
    assert sum(row[-1] for row in accounts(store)["watched"]) == COUNTED


@pytest.mark.parametrize("source", ["phoenix"], indirect=True)
def test_an_exchange_that_the_application_captured_is_skipped(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any
) -> None:
    """Its id differs from that of a received one, but trace and span are the same."""
    root = next(spans[1] for spans in backend.traces.values())
    started = datetime.fromtimestamp(root.start_time_unix_nano / 1e9, UTC)
    store.exchanges.add([an_exchange(trace_id=root.trace_id.hex(), span_id=root.span_id.hex(), started_at=started)])

    assert call("pull", source).out.splitlines()[-1] == "39 stored, 1 stored before"
    assert sum(exchange.span_id == root.span_id.hex() for exchange in exchanges(store)) == 1


ERRORS: dict[str, tuple[Any, str]] = {
    "wrong key": ((401, "Invalid token"), "responded with status 401: set {key} to a valid key"),
    "forbidden": ((403, "no"), "responded with status 403: set {key} to a valid key"),
    "unknown project": ((404, "Project with name nope not found"), "status 404: Project with name nope not found"),
    "server error": ((500, ""), "status 500: no explanation"),
    "control characters": ((400, "a\x1b[31m\nb"), "status 400: a"),
    "login page": ((200, "<html>"), "status 200, but without JSON: check --url"),
    "list": ((200, []), "status 200, but without JSON: check --url"),
    "number": ((200, "7"), "status 200, but without JSON: check --url"),
    "deep": ((200, "[" * 100_000), "status 200, but without JSON: check --url"),
    "no fields": ((200, {"data": [{}], "traces": [{}]}), "sent an unexpected response (KeyError)"),
    "other types": ((200, {"data": 7, "traces": 7}), "sent an unexpected response (TypeError)"),
}


@each(("answered", "message"), list(ERRORS.values()))
def test_an_error_of_the_server_is_one_line(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any, answered: tuple[int, Any], message: str
) -> None:
    """The line names the fix, the exit code is 1, and nothing is written."""
    backend.answer = lambda path, _: None if "experiments" in path else answered
    ended = call("pull", source)

    (line,) = ended.err.splitlines()
    assert (ended.code, ended.out) == (1, "")
    assert line.startswith(f"germane: {source} ")
    assert message.format(key=KEYS[source]) in line
    assert "\x1b" not in line
    assert accounts(store)["exchanges"] == [(0,)]


def test_an_unreachable_server_an_unknown_project_and_a_repeated_page_are_one_line(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No error shows a stack trace, and none ends in an endless loop."""
    unknown = call("pull", source, "--project", "nope")
    unreachable = call("pull", source, "--url", "http://127.0.0.1:9")
    invalid = call("pull", source, "--url", "no url")
    ids = [f"tr-{id_}" if source == "mlflow" else id_ for id_ in backend.order[:1]]
    page = {
        "data": [{"trace_id": ids[0]}],
        "traces": [{"trace_id": ids[0]}],
        "next_cursor": "7",
        "next_page_token": "7",
    }
    backend.answer = lambda path, _: (200, page) if path.endswith(("/traces", "/search")) else None
    endless = call("pull", source)

    assert [ended.code for ended in (unknown, unreachable, invalid, endless)] == [1] * 4
    assert unknown.err.startswith(f"germane: {source} responded with status 404: ")
    assert unreachable.err == f"germane: {source} is unreachable (ConnectError): check --url or {URLS[source]}\n"
    assert invalid.err.startswith(f"germane: {source} is unreachable (")
    assert endless.err.splitlines()[-1] == f"germane: {source} repeats a page"


def test_the_key_is_read_from_the_environment(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent as a bearer token."""
    backend.key = "secret-key"
    rejected = call("pull", source)
    monkeypatch.setenv(KEYS[source], "secret-key")

    assert (rejected.code, call("pull", source).code) == (1, 0)
    assert len(exchanges(store)) == 40


HOSTILE: dict[str, dict[str, Any]] = {
    "no ids": {"trace_id": "", "span_id": ""},
    "ids that are no hex": {"trace_id": "z" * 32},
    "times before 1970": {"start_time_unix_nano": -5},
    "times beyond 64 bits": {"start_time_unix_nano": 2**70, "end_time_unix_nano": 2**70},
    "attributes without a value": {"attributes": [{"key": "input.value"}]},
    "values of other types": {"attributes": [{"key": "a", "value": {"int_value": "x"}}], "name": 7},
    "a lone surrogate": {"name": "\ud83d"},
    "a zero byte": {"name": "a\x00b"},
    "a long name": {"name": "n" * 1_000_000},
    "an unknown field": {"surprise": {"a": [1]}},
    "a status of another type": {"status": 7},
}


def test_hostile_spans_do_not_block_the_others(
    store: TrackingStore, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invalid spans are counted, and all other traces of the page are stored."""
    random_ = random.Random(3)
    served = backend_of(answered=5)
    for number in range(len(HOSTILE)):
        spans = past(random_, number)
        served.traces[spans[0].trace_id.hex()] = spans
    hostile = dict(zip(list(served.traces)[5:], HOSTILE.values(), strict=True))

    def answer(path: str, _: int) -> tuple[int, Any] | None:
        if not path.endswith("otlpv1"):
            return None
        page = [phoenix_span(one) | hostile.get(id_, {}) for id_, spans in served.traces.items() for one in spans]
        return 200, {"data": page, "next_cursor": None}

    served.answer = answer
    with serving(served):
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", served.url)
        ended = call("pull", "phoenix", "--project", "shop")

    assert (ended.code, ended.err) == (0, "")
    assert {f"Question {number}?" for number in range(5)} <= {exchange.question for exchange in exchanges(store)}
    assert "invalid spans are left out" in ended.out


def test_spans_without_a_scope_get_that_of_germane_if_they_have_its_attribute() -> None:
    """Phoenix drops scopes, but traces of decorated handlers must not be read again."""
    own = {"trace_id": "1" * 32, "attributes": [{"key": "germane.exchange.id", "value": {"string_value": "x"}}]}
    (resource,) = as_request([own, {"trace_id": "2" * 32, "attributes": None}], "shop")["resourceSpans"]

    scopes = {scoped["scope"]["name"]: [one["traceId"] for one in scoped["spans"]] for scoped in resource["scopeSpans"]}
    assert scopes == {"germane": ["1" * 32], "": ["2" * 32]}
    assert trace_request(service="shop").resource_spans[0].resource.attributes[0].key == "service.name"


@pytest.mark.parametrize("source", ["phoenix"], indirect=True)
def test_traces_whose_text_would_be_erased_are_left_out(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says so if ``--since`` is older than ``retention.text_days``."""
    monkeypatch.setenv("GERMANE_RETENTION__TEXT_DAYS", "10")
    ended = call("pull", source, "--since", "20d")

    limit = time.time_ns() - 10 * DAY
    starts = [spans[1].start_time_unix_nano for spans in list(backend.traces.values())[:40]]
    assert f"traces before {datetime.fromtimestamp(limit / 1e9, UTC):%Y-%m-%d}" in ended.err
    assert len(exchanges(store)) == sum(start > limit for start in starts) < 40


def test_a_trace_with_too_many_spans_is_counted_with_its_reason(
    store: TrackingStore, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never read in part."""
    served = backend_of(answered=2)
    served.page_size = 1_000
    spans = next(iter(served.traces.values()))
    served.traces[spans[1].trace_id.hex()] = [span(parent=spans[1]) for _ in range(2_000)] + spans
    with serving(served):
        ended = call("pull", "phoenix", "--url", served.url, "--project", "shop")

    assert ended.out.splitlines()[0] == "2 traces: 1 recognized, 1 unreadable"
    assert "(too_large)" in ended.out


@pytest.mark.parametrize("source", ["phoenix"], indirect=True)
def test_a_row_that_the_database_rejects_does_not_block_the_others(
    source: str, backend: TraceBackend, store: TrackingStore, call: Any
) -> None:
    """It counts as unreadable. If the database rejects all rows, nothing is counted, and the next pull stores them."""
    trigger = "CREATE TRIGGER reject BEFORE INSERT ON exchange WHEN {} BEGIN SELECT RAISE(ABORT, 'not now'); END"
    with transaction(store) as connection:
        connection.exec_driver_sql(trigger.format("true"))
    rejected = call("pull", source)
    before = accounts(store)
    with transaction(store) as connection:
        connection.exec_driver_sql("DROP TRIGGER reject")
        connection.exec_driver_sql(trigger.format("NEW.question = 'Question 7?'"))
    ended = call("pull", source)

    assert (rejected.code, before["watched"], before["exchanges"]) == (1, [], [(0,)])
    assert ended.code == 0
    assert {f"Question {number}?" for number in range(40)} - {one.question for one in exchanges(store)} == {
        "Question 7?"
    }
    assert ("shop", "", "too_large", 1) in accounts(store)["watched"]
