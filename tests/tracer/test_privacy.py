"""What may be done with captured text, and where it may go."""

from __future__ import annotations

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


def everywhere(spans: list[Any]) -> str:
    """All that the spans show, as text."""
    return "".join(span.to_json() for span in spans)


def work(capture: Any = None, redact: Any = None) -> Any:
    """A handler that has the secret in its question, history, contexts, answer and error."""

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
    """`capture` says where text may go; the handler's own word, else the connection's."""

    def captured(self, traced: Any, by: str, capture: str) -> tuple[Exchange, str]:
        traced.connect(capture=capture if by == "connection" else "span+store")
        work(capture if by == "handler" else None)()
        return traced.exchange, everywhere(traced.spans)

    def test_span_and_store(self, unconnected: Any, by: str) -> None:
        """Text stands on spans and in the exchange, the error's trace too."""
        exchange, shown = self.captured(unconnected, by, "span+store")

        assert (exchange.question, exchange.answer) == (f"why {SECRET}", f"answer why {SECRET}")
        assert exchange.error == f"LookupError: failed why {SECRET}"
        for text in ("why", "answer why", "context why", "added why", "failed why", "cause why", "inner why"):
            assert f"{text} {SECRET}" in shown

    def test_store(self, unconnected: Any, by: str) -> None:
        """Text is in the exchange, and nowhere on spans: not in events, not in a status, not in inner handlers."""
        exchange, shown = self.captured(unconnected, by, "store")

        assert (exchange.question, exchange.answer) == (f"why {SECRET}", f"answer why {SECRET}")
        assert [context.text for context in exchange.contexts] == [f"context why {SECRET}", f"added why {SECRET}"]
        assert exchange.history[0].content == f"turn {SECRET}"
        assert exchange.error == f"LookupError: failed why {SECRET}"
        assert SECRET not in shown
        assert "LookupError" in shown

    def test_none(self, unconnected: Any, by: str) -> None:
        """Text is nowhere; that there was a call, how long it took and how it ended is."""
        exchange, shown = self.captured(unconnected, by, "none")

        assert SECRET not in repr(exchange) + shown
        assert (exchange.question, exchange.answer, exchange.contexts, exchange.history) == (None, None, (), ())
        assert (exchange.status, exchange.error) == ("error", "LookupError")

    def test_explanations_stay_where_text_does(self, unconnected: Any, by: str) -> None:
        """A scorer's explanation may quote the answer: off the spans with it."""
        exchange, _ = self.captured(unconnected, by, "store")
        unconnected.exporter.clear()
        attach_scores(exchange, [Score(scorer="s", fingerprint="f", value=1.0, explanation=f"it says {SECRET}")])

        shown = everywhere(unconnected.spans)
        assert SECRET not in shown
        assert '"germane.evaluation.s": 1.0' in shown


def hidden(text: str) -> str:
    return text.replace(SECRET, "[card]")


@pytest.mark.parametrize("by", ["connection", "handler"])
class TestRedact:
    """`redact` is called with every text before it goes anywhere."""

    def test_each_text_is_redacted(self, unconnected: Any, by: str) -> None:
        """Question, answer, contexts, history, and the error's message, in the exchange and on the spans."""
        unconnected.connect(redact=hidden if by == "connection" else None)
        work(redact=hidden if by == "handler" else None)()

        exchange, shown = unconnected.exchange, everywhere(unconnected.spans)
        assert SECRET not in repr(exchange) + shown
        assert (exchange.question, exchange.answer) == ("why [card]", "answer why [card]")
        assert [context.text for context in exchange.contexts] == ["context why [card]", "added why [card]"]
        assert (exchange.history[0].content, exchange.error) == ("turn [card]", "LookupError: failed why [card]")
        assert "context why [card]" in shown

    @pytest.mark.parametrize("redact", [lambda text: 1 / 0, lambda text: None, lambda text: b"a", lambda: "a", len])
    def test_it_fails_closed(self, unconnected: Any, by: str, redact: Any) -> None:
        """Where it raises, or returns no text, the text is dropped, and the span says so."""
        unconnected.connect(redact=redact if by == "connection" else None)
        work(redact=redact if by == "handler" else None)()

        exchange = unconnected.exchange
        assert SECRET not in repr(exchange) + everywhere(unconnected.spans)
        assert (exchange.question, exchange.answer, exchange.contexts, exchange.history) == (None, None, (), ())
        assert exchange.error == "LookupError"
        assert "redaction of the question" in unconnected.attributes("workflow ask None")["germane.capture.error"]


class TestNested:
    """An inner handler keeps the outer's rules, and may only be stricter."""

    @pytest.mark.parametrize(
        ("outer", "inner", "shown"),
        [
            ("span+store", "store", "outer"),
            ("store", "span+store", ""),
            ("none", "span+store", ""),
            ("span+store", None, "both"),
        ],
    )
    def test_the_stricter_capture_holds(self, traced: Any, outer: Any, inner: Any, shown: str) -> None:
        """Of two modes, that which lets less text out."""
        second = germane.observe(route="second", capture=inner)(lambda question: "of the inner")
        first = germane.observe(route="first", capture=outer)(lambda question: second(question) and "of the outer")
        first("Why?")

        text = everywhere(traced.spans)
        assert ("of the outer" in text, "of the inner" in text) == (shown in {"outer", "both"}, shown == "both")

    def test_redactions_add_up(self, traced: Any) -> None:
        """What the outer handler hides stays hidden when the inner one hides something else."""
        second = germane.observe(route="second", redact=lambda text: text.replace("inner", "[2]"))(lambda q: q)

        @germane.observe(route="first", redact=lambda text: text.replace("outer", "[1]"))
        def first(question: str) -> str:
            second("outer inner")
            return "outer inner"

        first("outer")

        assert traced.attributes("second")["input.value"] == "[1] [2]"
        assert traced.exchange.answer == "[1] inner"

    def test_contexts_added_in_a_strict_inner_handler_stay_strict(self, traced: Any) -> None:
        """They follow the rules of the handler that adds them."""

        @germane.observe(route="second", capture="none")
        def second(question: str) -> str:
            germane.add_contexts([SECRET])
            return SECRET

        germane.observe(route="first")(lambda question: second(question) and "a")("Why?")

        assert SECRET not in everywhere(traced.spans) + repr(traced.exchange)


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
def test_switches_of_the_environment_hide_content_and_starve_nobody(
    run: Any, environment: dict[str, str], shown: list[bool]
) -> None:
    """What other instrumentations honour is honoured on spans; the exchange is whole all the same, with valid ids."""
    found, kept, valid = json.loads(run(SWITCHES, **environment))

    assert found == shown
    assert kept == ["THE QUESTION", "THE ANSWER", "THE CONTEXT", 48]
    assert valid


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, ParentBased(TraceIdRatioBased(0.3))])
def test_head_sampling_loses_no_exchange(unconnected: Any, sampler: Any) -> None:
    """A span that is not sampled still gives its ids to the exchange, and does not wait for a score."""
    unconnected.connect(provider=TracerProvider(sampler=sampler, shutdown_on_exit=False), holds_spans=True)
    ask = germane.observe(lambda question: germane.current_exchange().trace_id)
    for _ in range(50):
        ask("Why?")

    assert len(unconnected.exchanges) == 50
    assert len({exchange.trace_id for exchange in unconnected.exchanges}) == 50
    assert all(int(exchange.span_id, 16) for exchange in unconnected.exchanges)
    assert all(exchange.answer == exchange.trace_id for exchange in unconnected.exchanges)
    assert len(unconnected.spans) < 40


def test_two_hundred_attributes_push_out_neither_question_nor_answer(traced: Any) -> None:
    """A span holds 128 and drops the oldest: kind, question and answer are the newest."""

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
