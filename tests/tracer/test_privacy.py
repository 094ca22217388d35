"""Privacy: where captured text may be recorded, and how it is redacted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased

import germane
from germane.exchange import Exchange
from germane.score import Score
from germane.tracer import attach_scores

SECRET = "4111-1111"


def span_texts(spans: list[Any]) -> str:
    """Return all attributes, events and statuses of the spans as text."""
    return "".join(span.to_json() for span in spans)


def ask_with_secret(capture: Any = None, redact: Any = None) -> Any:
    """Return a call of a handler with the secret in its question, history, contexts, answer and error."""

    @germane.retrieval
    def search(query: str) -> list[dict[str, str]]:
        return [{"text": f"context {query}"}]

    @germane.observe(route="inner")
    def inner(question: str) -> str:
        return f"inner {question}"

    @germane.observe(route=f"ask {capture}", capture=capture, redact=redact, history=lambda: [f"turn {SECRET}"])
    def ask(question: str) -> Iterator[str]:
        search(question)
        inner(question)
        germane.add_contexts([f"added {question}"])
        yield f"answer {question}"
        raise LookupError(f"failed {question}") from KeyError(f"cause {question}")

    def call() -> None:
        with pytest.raises(LookupError, match=f"failed why {SECRET}"):
            list(ask(f"why {SECRET}"))

    return call


@pytest.mark.parametrize("by", ["connection", "handler"])
class TestCapture:
    """``capture`` limits where text is recorded. The handler's option overrides the setting."""

    def captured(self, traced: Any, by: str, capture: str) -> tuple[Exchange, str]:
        traced.connect(capture=capture if by == "connection" else "span+store")
        ask_with_secret(capture if by == "handler" else None)()
        return traced.exchange, span_texts(traced.spans)

    def test_capture_span_and_store_records_text_on_spans_and_in_the_exchange(self, unconnected: Any, by: str) -> None:
        """Text is on spans and in the exchange, including the traceback of an error."""
        exchange, shown = self.captured(unconnected, by, "span+store")

        assert (exchange.question, exchange.answer) == (f"why {SECRET}", f"answer why {SECRET}")
        assert exchange.error == f"LookupError: failed why {SECRET}"
        for text in ("why", "answer why", "context why", "added why", "failed why", "cause why", "inner why"):
            assert f"{text} {SECRET}" in shown

    def test_capture_store_records_text_only_in_the_exchange(self, unconnected: Any, by: str) -> None:
        """No span contains text in its attributes, events or status, not even a span of an inner handler."""
        exchange, shown = self.captured(unconnected, by, "store")

        assert (exchange.question, exchange.answer) == (f"why {SECRET}", f"answer why {SECRET}")
        assert [context.text for context in exchange.contexts] == [f"context why {SECRET}", f"added why {SECRET}"]
        assert exchange.history[0].content == f"turn {SECRET}"
        assert exchange.error == f"LookupError: failed why {SECRET}"
        assert SECRET not in shown
        assert "LookupError" in shown

    def test_capture_mode_none_records_no_text(self, unconnected: Any, by: str) -> None:
        """Only time, duration and status of the call are recorded."""
        exchange, shown = self.captured(unconnected, by, "none")

        assert SECRET not in repr(exchange) + shown
        assert (exchange.question, exchange.answer, exchange.contexts, exchange.history) == (None, None, (), ())
        assert (exchange.status, exchange.error) == ("error", "LookupError")

    def test_explanations_are_recorded_only_where_text_is_recorded(self, unconnected: Any, by: str) -> None:
        """A scorer's explanation may quote the answer, so it is also omitted from spans."""
        exchange, _ = self.captured(unconnected, by, "store")
        unconnected.exporter.clear()
        attach_scores(exchange, [Score(scorer="s", fingerprint="f", value=1.0, explanation=f"it says {SECRET}")])

        shown = span_texts(unconnected.spans)
        assert SECRET not in shown
        assert '"germane.evaluation.s": 1.0' in shown


@pytest.mark.parametrize(
    ("process", "handler", "stored", "shown"),
    [
        ("none", "span+store", False, False),
        ("none", "store", False, False),
        ("store", "span+store", True, False),
        ("span+store", "none", False, False),
        ("span+store", "store", True, False),
    ],
)
def test_the_stricter_capture_mode_of_process_and_handler_applies(
    unconnected: Any, process: str, handler: str, *, stored: bool, shown: bool
) -> None:
    """A handler does not record text if the process must not record it."""
    unconnected.connect(capture=process)
    ask_with_secret(handler)()

    assert (SECRET in repr(unconnected.exchange)) is stored
    assert (SECRET in span_texts(unconnected.spans)) is shown


def hidden(text: str) -> str:
    return text.replace(SECRET, "[card]")


@pytest.mark.parametrize("by", ["connection", "handler"])
class TestRedact:
    """``redact`` is called with each text before the text is recorded."""

    def test_every_captured_text_is_redacted(self, unconnected: Any, by: str) -> None:
        """Question, answer, contexts, history and error message are redacted, in the exchange and on spans."""
        unconnected.connect(redact=hidden if by == "connection" else None)
        ask_with_secret(redact=hidden if by == "handler" else None)()

        exchange, shown = unconnected.exchange, span_texts(unconnected.spans)
        assert SECRET not in repr(exchange) + shown
        assert (exchange.question, exchange.answer) == ("why [card]", "answer why [card]")
        assert [context.text for context in exchange.contexts] == ["context why [card]", "added why [card]"]
        assert (exchange.history[0].content, exchange.error) == ("turn [card]", "LookupError: failed why [card]")
        assert "context why [card]" in shown

    @pytest.mark.parametrize("redact", [lambda text: 1 / 0, lambda text: None, lambda text: b"a", lambda: "a", len])
    def test_an_error_in_redaction_drops_all_texts(self, unconnected: Any, by: str, redact: Any) -> None:
        """If the redaction raises or returns something other than text, the text is dropped and the span reports it."""
        unconnected.connect(redact=redact if by == "connection" else None)
        ask_with_secret(redact=redact if by == "handler" else None)()

        exchange = unconnected.exchange
        assert SECRET not in repr(exchange) + span_texts(unconnected.spans)
        assert (exchange.question, exchange.answer, exchange.contexts, exchange.history) == (None, None, (), ())
        assert exchange.error == "LookupError"
        assert "redaction of the question" in unconnected.attributes("workflow ask None")["germane.capture.error"]


def test_a_slow_redaction_function_is_reported_once(
    unconnected: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow redaction delays the handler's caller. The text is still redacted."""
    times = itertools.count(step=0.006)
    monkeypatch.setattr("germane.tracer.privacy.perf_counter", lambda: next(times))
    unconnected.connect(redact=hidden)

    ask_with_secret()()
    ask_with_secret()()

    warnings = [record.getMessage() for record in caplog.records if "redact=hidden took more" in record.getMessage()]
    assert len(warnings) == 1
    assert SECRET not in repr(unconnected.exchanges)


class TestNested:
    """An inner handler follows the rules of the outer one, and can only be stricter."""

    @pytest.mark.parametrize(
        ("outer", "inner", "shown"),
        [
            ("span+store", "store", "outer"),
            ("store", "span+store", ""),
            ("none", "span+store", ""),
            ("span+store", None, "both"),
        ],
    )
    def test_the_stricter_capture_mode_of_nested_handlers_applies(
        self, traced: Any, outer: Any, inner: Any, shown: str
    ) -> None:
        """The mode that records less text applies."""
        second = germane.observe(route="second", capture=inner)(lambda question: "of the inner")
        first = germane.observe(route="first", capture=outer)(lambda question: second(question) and "of the outer")
        first("Why?")

        text = span_texts(traced.spans)
        assert ("of the outer" in text, "of the inner" in text) == (shown in {"outer", "both"}, shown == "both")

    def test_redactions_of_nested_handlers_are_combined(self, traced: Any) -> None:
        """Text in an inner handler is redacted by both functions."""
        second = germane.observe(route="second", redact=lambda text: text.replace("inner", "[2]"))(lambda q: q)

        @germane.observe(route="first", redact=lambda text: text.replace("outer", "[1]"))
        def first(question: str) -> str:
            second("outer inner")
            return "outer inner"

        first("outer")

        assert traced.attributes("second")["input.value"] == "[1] [2]"
        assert traced.exchange.answer == "[1] inner"

    def test_contexts_follow_the_privacy_settings_of_the_handler_that_adds_them(self, traced: Any) -> None:
        """Contexts of a strict inner handler are not recorded by a permissive outer one."""

        @germane.observe(route="second", capture="none")
        def second(question: str) -> str:
            germane.add_contexts([SECRET])
            return SECRET

        germane.observe(route="first")(lambda question: second(question) and "a")("Why?")

        assert SECRET not in span_texts(traced.spans) + repr(traced.exchange)


SWITCHES = """
import json
import germane, germane.tracer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, exchanges, provider = InMemorySpanExporter(), [], TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(exporter))
germane.tracer.connect(sink=exchanges.append, service="test", holds_spans=False, provider=provider)
search = germane.retrieval(lambda query: ["THE CONTEXT"])
germane.observe(lambda question: search(question) and "THE ANSWER")("THE QUESTION")
shown = "".join(span.to_json() for span in exporter.get_finished_spans())
exchange = exchanges[0]
kept = [exchange.question, exchange.answer, exchange.contexts[0].text, len(exchange.trace_id + exchange.span_id)]
print(json.dumps([[name in shown for name in ("QUESTION", "ANSWER", "CONTEXT")], kept, int(exchange.span_id, 16) > 0]))
"""
MESSAGES = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({}, [True, True, True]),
        ({MESSAGES: ""}, [True, True, True]),
        ({MESSAGES: "SPAN_ONLY"}, [True, True, True]),
        ({MESSAGES: "span_and_event"}, [True, True, True]),
        ({MESSAGES: "true"}, [True, True, True]),
        ({MESSAGES: "NO_CONTENT"}, [False, False, False]),
        ({MESSAGES: "EVENT_ONLY"}, [False, False, False]),
        ({MESSAGES: "false"}, [False, False, False]),
        ({"OPENINFERENCE_HIDE_INPUTS": "true"}, [False, True, True]),
        ({"OPENINFERENCE_HIDE_INPUT_MESSAGES": "1"}, [False, True, True]),
        ({"OPENINFERENCE_HIDE_OUTPUTS": "TRUE"}, [True, False, False]),
        ({"OPENINFERENCE_HIDE_OUTPUT_TEXT": "true"}, [True, False, False]),
        ({"OPENINFERENCE_HIDE_INPUTS": "false"}, [True, True, True]),
        ({"OTEL_SDK_DISABLED": "true"}, [False, False, False]),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, [False, False, False]),
    ],
)
def test_environment_variables_hide_text_only_on_spans(
    run: Any, environment: dict[str, str], shown: list[bool]
) -> None:
    """The environment variables of other instrumentations only apply to spans. The exchange is complete."""
    found, kept, valid = json.loads(run(SWITCHES, **environment))

    assert found == shown
    assert kept == ["THE QUESTION", "THE ANSWER", "THE CONTEXT", 48]
    assert valid


@pytest.mark.parametrize("hidden", ["INPUTS", "OUTPUTS"])
def test_the_text_of_an_error_is_hidden_if_input_or_output_is_hidden(
    unconnected: Any, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    """An error message may quote the question or the answer. Its type is shown."""
    monkeypatch.setenv(f"OPENINFERENCE_HIDE_{hidden}", "true")
    unconnected.connect()

    ask_with_secret()()

    shown = span_texts(unconnected.spans)
    assert [text in shown for text in ("failed why", "cause why", '"exception.type": "LookupError"')] == [
        False,
        False,
        True,
    ]
    assert unconnected.exchange.error == f"LookupError: failed why {SECRET}"


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, ParentBased(TraceIdRatioBased(0.3))])
def test_an_exchange_with_an_unsampled_span_is_captured(unconnected: Any, sampler: Any) -> None:
    """The exchange has valid ids, and its span does not wait for a score."""
    unconnected.connect(provider=TracerProvider(sampler=sampler, shutdown_on_exit=False), holds_spans=True)
    ask = germane.observe(lambda question: germane.current_exchange().trace_id)
    for _ in range(50):
        ask("Why?")

    assert len(unconnected.exchanges) == 50
    assert len({exchange.trace_id for exchange in unconnected.exchanges}) == 50
    assert all(int(exchange.span_id, 16) for exchange in unconnected.exchanges)
    assert all(exchange.answer == exchange.trace_id for exchange in unconnected.exchanges)
    assert len(unconnected.spans) < 40


def test_question_and_answer_are_exempt_from_the_span_attribute_limit(traced: Any) -> None:
    """A span holds 128 attributes and drops the oldest, so question and answer are set last."""

    @germane.observe
    def ask(question: str) -> str:
        for number in range(200):
            germane.set_attribute(f"a{number}", number)
        return "Because."

    ask("Why?")

    shown = traced.attributes()
    assert (shown["input.value"], shown["output.value"]) == ("Why?", "Because.")
    assert (shown["openinference.span.kind"], len(shown)) == ("CHAIN", 128)
    assert shown["germane.exchange.id"] == traced.exchange.id
    assert len(traced.exchange.attributes) == 200
