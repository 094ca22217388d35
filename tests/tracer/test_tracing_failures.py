"""Capture does not depend on spans: providers and spans that fail, and invalid OpenTelemetry variables."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from tests.cases import each

import germane
from germane.tracer import connect, disconnect

SPAN_METHODS = ["get_span_context", "set_attributes", "set_attribute", "set_status", "add_event", "end"]
QUESTION = "How do I pay for the second bicycle?"


class Failing:
    """A provider, a tracer and a span in one object, of which one method raises an error. The others do nothing."""

    def __init__(self, method: str, error: Exception) -> None:
        self.method, self.error = method, error

    def __getattr__(self, name: str) -> Any:
        def call(*_arguments: Any, **_options: Any) -> Any:
            if name == self.method:
                raise self.error
            return trace.INVALID_SPAN_CONTEXT if name == "get_span_context" else self

        return call


@pytest.fixture
def captured(bare: object) -> Iterator[list[Any]]:
    """The exchanges that the tracer captures after the test has connected it."""
    yield []
    disconnect()


def ask_both_ways(retrieves: bool = True) -> None:
    """Call two observed handlers, one of which raises an error."""

    @germane.retrieval
    def search(query: str) -> list[str]:
        return [f"a document about {query}"]

    @germane.observe
    def ask(question: str) -> str:
        return search(question)[0] if retrieves else "an answer"

    @germane.observe
    def fail(question: str) -> str:
        germane.add_contexts(["the last document"])
        raise LookupError(question)

    assert ask(QUESTION).startswith("a")
    with suppress(LookupError):
        fail(QUESTION)


@each("method", ["get_tracer", "start_span", *SPAN_METHODS])
def test_an_exchange_is_stored_if_its_span_fails(method: str, captured: list[Any], caplog: Any) -> None:
    """Whichever call to the application's provider or span fails, both exchanges are complete."""
    captured.clear()
    failure = type(f"No{method}", (Exception,), {})("the exporter is gone")
    connect(sink=captured.append, service="shop", provider=Failing(method, failure))  # type: ignore[arg-type]  # duck
    with caplog.at_level(logging.WARNING, "germane"):
        for _ in range(3):
            ask_both_ways()

    assert [(exchange.question, exchange.status) for exchange in captured] == [
        (QUESTION, "ok"),
        (QUESTION, "error"),
    ] * 3
    assert [exchange.contexts[0].text for exchange in captured[:2]] == [
        f"a document about {QUESTION}",
        "the last document",
    ]
    problems = [record.getMessage() for record in caplog.records if f"No{method}: " in record.getMessage()]
    assert len(problems) == len(set(problems)), "each cause is logged once"
    assert len(problems) <= 3
    assert all("the exporter is gone" in problem for problem in problems)
    assert problems or method in {"set_attribute", "set_status", "add_event"}


@pytest.mark.usefixtures("bare")
def test_an_error_without_a_message_is_logged_with_its_module(captured: list[Any], caplog: Any) -> None:
    """The type alone, such as ``StopIteration`` for an unknown provider, says nothing about the cause."""
    failure = type("Silent", (Exception,), {})()
    connect(sink=captured.append, service="shop", provider=Failing("start_span", failure))  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "germane"):
        ask_both_ways()

    assert f"Silent in {__name__}, line " in caplog.text


SECRETS = {
    "header": "invalid header authorization=Bearer hunter2hunter2",
    "variable": "cannot send opensesame to the collector",
    "url": "no route to https://user:hunter2@collector/v1?token=hunter2",
    "key": "rejected sk-hunter2-0123456789abcdef",
    "text": f"invalid value {QUESTION[9:24]!r}",
}


@each(("name", "message"), list(SECRETS.items()))
@pytest.mark.usefixtures("bare")
def test_logged_causes_contain_neither_secrets_nor_captured_text(
    name: str, message: str, captured: list[Any], caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of secret variables, credentials, keys and the question are left out."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=opensesame")
    failure = type(f"Secret{name}", (Exception,), {})(message)
    connect(sink=captured.append, service="shop", provider=Failing("set_attributes", failure))  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "germane"):
        ask_both_ways()

    assert f"Secret{name}" in caplog.text
    assert not [
        secret for secret in ("hunter2", "opensesame", "second bicycle", QUESTION[9:24]) if secret in caplog.text
    ]


def test_spans_of_the_body_keep_their_parent_if_the_span_of_the_handler_fails(captured: list[Any]) -> None:
    """The application's own traces are not cut in two."""
    connect(sink=captured.append, service="shop", provider=Failing("start_span", ValueError()))  # type: ignore[arg-type]
    own = TracerProvider(shutdown_on_exit=False).get_tracer("application")

    @germane.observe
    def ask(question: str) -> Any:
        with own.start_as_current_span("body") as span:
            return span

    with own.start_as_current_span("request") as request:
        body = ask("Why?")
    assert body.parent == request.get_span_context()


def test_a_span_that_fails_at_its_end_still_ends(captured: list[Any]) -> None:
    """A status that cannot be set does not leave the span open."""
    ended: list[Any] = []
    processor = type("Ending", (SpanProcessor,), {"on_end": lambda _self, span: ended.append(span)})()
    own = TracerProvider(shutdown_on_exit=False)
    own.add_span_processor(processor)
    connect(sink=captured.append, service="shop", provider=own)

    @germane.observe
    def ask(question: str) -> str:
        trace.get_current_span().set_attributes = broken  # type: ignore[method-assign]
        return question

    assert ask("Why?") == "Why?"
    assert len(ended) == len(captured) == 1


def broken(*_arguments: object) -> None:
    raise RuntimeError("a broken span")


LIMITS = [
    *("ATTRIBUTE_COUNT_LIMIT", "ATTRIBUTE_VALUE_LENGTH_LIMIT", "EVENT_ATTRIBUTE_COUNT_LIMIT"),
    *("LINK_ATTRIBUTE_COUNT_LIMIT", "SPAN_ATTRIBUTE_COUNT_LIMIT", "SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
    *("SPAN_EVENT_COUNT_LIMIT", "SPAN_LINK_COUNT_LIMIT", "BSP_EXPORT_TIMEOUT", "BSP_MAX_EXPORT_BATCH_SIZE"),
    *("BSP_MAX_QUEUE_SIZE", "BSP_SCHEDULE_DELAY", "EXPORTER_OTLP_TIMEOUT", "METRIC_EXPORT_INTERVAL"),
    *("METRIC_EXPORT_TIMEOUT", "TRACES_SAMPLER_ARG"),
]
OTHERS = [
    ("BSP_MAX_QUEUE_SIZE", "100"),
    ("EXPERIMENTAL_RESOURCE_DETECTORS", "pigeon"),
    ("EXPORTER_OTLP_CERTIFICATE", "/missing"),
    ("EXPORTER_OTLP_COMPRESSION", "pigeon"),
    ("EXPORTER_OTLP_HEADERS", "no header=="),
    ("EXPORTER_OTLP_PROTOCOL", "pigeon"),
    ("METRICS_EXEMPLAR_FILTER", "pigeon"),
    ("PROPAGATORS", "pigeon"),
    ("PYTHON_ID_GENERATOR", "pigeon"),
    ("PYTHON_METER_PROVIDER", "pigeon"),
    ("PYTHON_TRACER_PROVIDER", "pigeon"),
    ("RESOURCE_ATTRIBUTES", "a,b=,=c,%zz=%zz"),
    ("TRACES_EXPORTER", "pigeon"),
    ("TRACES_SAMPLER", "sometimes"),
]
CAPTURING = f"""
import os, germane, germane.tracer.provider
captured, lost = [], []
ask = germane.observe(lambda question: question)
for name, value in {[(name, value) for name in LIMITS for value in ("-1", "0", "abc", "9" * 30)] + OTHERS}:
    os.environ["OTEL_" + name] = value
    captured.clear()
    germane.tracer.connect(sink=captured.append, service="shop")
    ask("Why?")
    if len(captured) != 1:
        lost.append((name, value))
    germane.tracer.disconnect(0)
    germane.tracer.provider._provider_without_exporter.cache_clear()
    del os.environ["OTEL_" + name]
print(lost, flush=True)
os._exit(0)  # without waiting for exports
"""


@pytest.mark.parametrize("exports", [False, True])
def test_exchanges_are_captured_whatever_the_opentelemetry_variables_say(exports: bool, run: Any) -> None:
    """Each numeric variable may be negative, zero, huge or no number; names may be unknown, and values may conflict."""
    assert run(CAPTURING, **({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"} if exports else {})) == "[]"


STARTING = """
import io, logging, tempfile, germane
logging.basicConfig(stream=(log := io.StringIO()))
database = f"sqlite:///{tempfile.mkdtemp()}/germane.db"
germane.start(role="capture", database=database)
ask = germane.observe(lambda question: question)
for number in range(5):
    ask(f"Why {number}?")
germane.stop()
with germane.Store(database) as store:
    print(store.answers.counts().captured, log.getvalue().count("tracing failed"))
"""


@each("variable", ["SPAN_ATTRIBUTE_COUNT_LIMIT", "ATTRIBUTE_VALUE_LENGTH_LIMIT", "PYTHON_TRACER_PROVIDER"])
def test_an_application_with_an_invalid_variable_starts_and_captures(variable: str, run: Any) -> None:
    """OpenTelemetry reads some variables when it is imported, and others when it loads a provider."""
    assert run(STARTING, **{f"OTEL_{variable}": "-1"}) == "5 1"
