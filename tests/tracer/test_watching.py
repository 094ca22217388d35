"""``germane.watch()``: exchanges from the spans of other instrumentations."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.context import Context as OTelContext
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from tests.cases import each
from tests.spans.samples import SAMPLES, Texts

import germane
from germane.exchange import Exchange, exchange_id_for, sampling_key_for
from germane.recognizers import RawValue, SpanData, SpanReading
from germane.score import Score
from germane.trace_outline import UnreadableTrace
from germane.tracer import attach_scores, suppress_tracing, watching
from germane.tracer.trace_assembler import TraceLimits, text_size
from germane.tracer.trace_collector import LogCollector

OPENINFERENCE = "openinference.instrumentation.langchain"
KIND = "openinference.span.kind"


class Application:
    """An application with a provider of its own, whose spans germane watches."""

    def __init__(self, traced: Any) -> None:
        self.traced = traced
        self.unreadable: list[tuple[str, str, int]] = []
        self.samples: list[UnreadableTrace] = []

    def watch(self, limits: TraceLimits | None = None, **settings: Any) -> Application:
        """Watch the provider with these settings."""
        self.replace_watcher(limits)
        own = {"count_unreadable": lambda *counted: self.unreadable.append(counted), "sample_unreadable": self.sample}
        self.traced.connect(watches=True, **own, **settings)
        return self

    def replace_watcher(self, limits: TraceLimits | None = None) -> None:
        """Use a new watcher, and stop the current one, which would also read the spans of later tests."""
        watching.stop()
        watching._watcher = watching.Watcher(limits)

    def sample(self, _service: str, _scope: str, _reason: str, describe: Callable[[], UnreadableTrace]) -> None:
        """Keep every unreadable trace."""
        self.samples.append(describe())

    @property
    def watcher(self) -> watching.Watcher:
        assert watching._watcher is not None
        return watching._watcher

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges that were captured, after everything complete has been read."""
        watching.flush(10)
        return sorted(self.traced.exchanges, key=lambda exchange: exchange.started_at)

    @property
    def exchange(self) -> Exchange:
        (exchange,) = self.exchanges
        return exchange

    @property
    def exported(self) -> list[str]:
        return [span.name for span in self.traced.spans]

    def tracer(self, scope: str = OPENINFERENCE) -> trace.Tracer:
        return self.traced.provider.get_tracer(scope)  # type: ignore[no-any-return]

    def replay(self, spans: tuple[SpanData, ...]) -> None:
        """Record the same spans with the SDK."""
        children: dict[str | None, list[SpanData]] = {}
        for span in sorted(spans, key=lambda each: each.start):
            children.setdefault(span.parent_id, []).append(span)

        def record(span: SpanData) -> None:
            with self.tracer(span.scope).start_as_current_span(span.name) as recorded:
                for event in span.events:
                    recorded.add_event(event.name, dict(event.attributes))
                for child in children.get(span.span_id, ()):
                    record(child)
                recorded.set_attributes(dict(span.attributes))

        for root in children[None]:
            record(root)

    def call(self, question: str, answer: str) -> None:
        """Record a model's call."""
        with self.tracer().start_as_current_span("model") as span:
            messages = {"llm.input_messages.0.message": ("user", question)}
            messages["llm.output_messages.0.message"] = ("assistant", answer)
            for name, (role, content) in messages.items():
                span.set_attributes({KIND: "LLM", f"{name}.role": role, f"{name}.content": content})

    def ask(self, question: str = "Why?", answer: str = "Because.", name: str = "Chain", **attributes: Any) -> None:
        """Record a chain's span."""
        with self.tracer().start_as_current_span(name) as span:
            span.set_attributes({KIND: "CHAIN", "input.value": question, "output.value": answer, **attributes})


@pytest.fixture
def application(unconnected: Any) -> Iterator[Application]:
    """An application that is not watched yet."""
    before = watching._watcher
    yield Application(unconnected)
    if watching._watcher is not None:
        watching._watcher.collector.close()
    watching._watcher = before


@pytest.fixture
def watched(application: Application) -> Application:
    """A watched application."""
    return application.watch()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_convention_is_recognized_in_spans_of_the_sdk(watched: Application, name: str) -> None:
    """Spans that the SDK records yield the exchange, like the data that they are made from."""
    texts = Texts()
    sample = SAMPLES[name](texts)
    if sample.logs:
        pytest.skip("log records have a test of their own")

    watched.replay(sample.spans)

    exchange = watched.exchange
    assert (exchange.question, exchange.answer) == (texts.question, texts.answer)
    if sample.has_contexts:
        assert tuple(context.text for context in exchange.contexts) == texts.documents


def test_a_watched_exchange_has_the_same_fields_as_that_of_a_decorated_handler(watched: Application) -> None:
    """Ids, times, sampling key and service are those of the trace's first span in this process."""
    with watched.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("POST /ask") as root:
        watched.ask(**{"session.id": "s-1", "user.id": "u-1", "llm.model_name": "m-1"})
    context = root.get_span_context()

    exchange = watched.exchange

    assert exchange.trace_id == f"{context.trace_id:032x}"
    assert exchange.span_id == f"{context.span_id:016x}"
    assert exchange.sampling_key == sampling_key_for(exchange.trace_id)
    assert (exchange.service, exchange.route, exchange.status) == ("test", "POST /ask", "ok")
    assert (exchange.session, exchange.user) == ("s-1", "u-1")
    assert exchange.traced
    assert exchange.duration > 0
    assert exchange.attributes == {
        "instrumentation": "OpenInference",
        "source.question": "input.value",
        "source.answer": "output.value",
    }


def test_log_records_belong_to_their_trace(watched: Application) -> None:
    """Messages that an instrumentation emits as log records are read with the spans."""
    logs = LogCollector(watched.watcher.collector)
    with watched.tracer("opentelemetry.instrumentation.openai_v2").start_as_current_span("chat") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        context = set_span_in_context(span)
        for name, body in (
            ("gen_ai.user.message", {"content": "Why?"}),
            ("gen_ai.choice", {"message": {"role": "assistant", "content": "Because."}}),
            ("something.else", {"content": "Not a message."}),
        ):
            logs.on_emit(LogRecord(context=context, event_name=name, body=body))

    assert (watched.exchange.question, watched.exchange.answer) == ("Why?", "Because.")


def test_an_unreadable_trace_is_counted_and_its_fix_is_logged_once(watched: Application, caplog: Any) -> None:
    """The log says once what to do, and the trace counts as seen."""
    for _ in range(3):
        with watched.tracer("opentelemetry.instrumentation.genai.openai").start_as_current_span("chat m") as span:
            span.set_attribute("gen_ai.operation.name", "chat")

    assert watched.exchanges == []
    assert [(service, route) for service, route, _ in watched.unreadable] == [("test", "chat m")] * 3
    assert caplog.text.count("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY") <= 1


def test_traces_without_a_model_are_not_counted(watched: Application) -> None:
    """A request without a model span is not a missing exchange."""
    with watched.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("GET /health"):
        pass
    with watched.tracer().start_as_current_span("embed") as span:
        span.set_attribute(KIND, "EMBEDDING")

    assert (watched.exchanges, watched.unreadable) == ([], [])


def test_a_trace_with_a_decorated_handler_yields_only_the_exchange_of_the_handler(watched: Application) -> None:
    """A trace with an observed handler yields the handler's exchange only, completed from the spans of its calls."""

    @germane.observe
    def ask(question: str) -> str:
        with watched.tracer().start_as_current_span("search") as span:
            span.set_attributes({KIND: "RETRIEVER", "retrieval.documents.0.document.content": "A document."})
        with watched.tracer().start_as_current_span("model") as span:
            span.set_attributes({KIND: "LLM", "llm.model_name": "m-1"})
        watched.ask("Rewritten?", "Draft.")
        return "Because."

    with watched.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("POST /ask"):
        with watched.tracer().start_as_current_span("other search") as span:
            span.set_attributes({KIND: "RETRIEVER", "retrieval.documents.0.document.content": "Another handler's."})
        ask("Why?")

    exchange = watched.exchange
    assert (exchange.route, exchange.question, exchange.answer) == ("ask", "Why?", "Because.")
    assert [context.text for context in exchange.contexts] == ["A document."]
    assert exchange.model == "m-1"


def test_calls_after_a_decorated_handler_are_not_watched(watched: Application) -> None:
    """What the application does in the background of an observed handler is not an exchange of its own."""

    @germane.observe
    def ask(question: str) -> str:
        contexts.append(trace.get_current_span())
        return "Because."

    contexts: list[trace.Span] = []
    ask("Why?")
    with trace.use_span(contexts[0], end_on_exit=False):
        watched.ask("Write a title.", "A title")

    assert watched.exchange.question == "Why?"


def test_requests_under_a_span_that_has_ended_are_watched(watched: Application) -> None:
    """Some instrumentations leave an ended span in the context. Later requests are still exchanges of their own."""
    with watched.tracer().start_as_current_span("Chain") as leaked:
        leaked.set_attributes({KIND: "CHAIN", "input.value": "One?", "output.value": "First."})
    with trace.use_span(leaked, end_on_exit=False):
        watched.ask("Two?", "Second.")
        watched.ask("Three?", "Third.")

    pairs = [(exchange.question, exchange.answer) for exchange in watched.exchanges]
    assert pairs == [("One?", "First."), ("Two?", "Second."), ("Three?", "Third.")]
    assert len({exchange.trace_id for exchange in watched.exchanges}) == 1
    assert len({exchange.span_id for exchange in watched.exchanges}) == 3


def test_a_batch_of_questions_is_several_exchanges(application: Application) -> None:
    """Independent questions under one span are exchanges of their own. Their scores get carriers."""
    processor = germane.ScoreSpanProcessor(SimpleSpanProcessor(application.traced.exporter), max_delay=1000)
    application.watch(processor=processor, holds_spans=True)
    with application.tracer("x").start_as_current_span("batch"):
        application.call("One?", "The first answer.")
        application.call("Two?", "The second answer.")

    first, second = application.exchanges
    assert [(first.question, first.answer), (second.question, second.answer)] == [
        ("One?", "The first answer."),
        ("Two?", "The second answer."),
    ]
    assert first.trace_id == second.trace_id
    assert first.span_id != second.span_id
    assert (first.span_holder, second.span_holder) == (None, None)
    assert "batch" in application.exported


def test_late_spans_of_an_answered_trace_are_counted(application: Application) -> None:
    """A span that ends after the exchange was read no longer changes it."""
    application.watch(TraceLimits(grace=0.0))
    with application.tracer("x").start_as_current_span("POST /ask"):
        application.ask()
        late = application.tracer("x").start_span("task")
    assert application.exchange.answer == "Because."
    late.end()

    assert application.exchange.answer == "Because."
    assert application.watcher.collector.assembler.late == 1


def test_a_handlers_own_contexts_are_kept(watched: Application) -> None:
    """Contexts that the handler names are not replaced."""

    @germane.observe
    def ask(question: str) -> str:
        germane.add_contexts(["Chosen."])
        with watched.tracer().start_as_current_span("search") as span:
            span.set_attributes({KIND: "RETRIEVER", "retrieval.documents.0.document.content": "Found."})
        return "Because."

    ask("Why?")

    assert [context.text for context in watched.exchange.contexts] == ["Chosen."]


def test_contexts_found_in_spans_are_redacted_like_the_answer_of_the_handler(watched: Application) -> None:
    """The handler's own redaction applies to what germane finds in spans."""

    @germane.observe(redact=lambda text: text.replace("secret", "***"))
    def ask(question: str) -> str:
        with watched.tracer().start_as_current_span("search") as span:
            span.set_attributes({KIND: "RETRIEVER", "retrieval.documents.0.document.content": "A secret."})
        return "The secret."

    ask("Why?")

    assert [context.text for context in watched.exchange.contexts] == ["A ***."]


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"redact": lambda text: text.upper()}, "A LONG ANSWER."),
        ({"redact": lambda text: 1 / 0}, None),
        ({"max_text_length": 6}, "A long"),
        ({"capture": "store"}, "A long answer."),
        ({"capture": "none"}, None),
    ],
)
def test_privacy_settings_apply_to_texts_from_watched_spans(
    application: Application, settings: dict[str, Any], answer: str | None
) -> None:
    """Texts from spans are redacted, truncated and left out like those of a handler."""
    application.watch(**settings).ask(answer="A long answer.")

    assert application.exchange.answer == answer


def test_the_exchange_limit_applies_to_watched_traces(application: Application) -> None:
    """An exchange above the limit is not stored. The limiter gets the trace's sampling key."""
    asked: list[tuple[str, str, float]] = []

    def admit(service: str, route: str, started: int, key: float) -> float | None:
        asked.append((service, route, key))
        return None if route == "Chain" else 0.5

    application.watch(admit=admit)
    application.ask()
    application.ask("Who?", "Me.", name="Other")

    assert application.exchange.question == "Who?"
    assert application.exchange.capture_probability == 0.5
    assert ("test", "Other", application.exchange.sampling_key) in asked
    assert len(asked) == 2


def scores(exchange: Exchange) -> list[Score]:
    return [Score(scorer="answer_relevancy", fingerprint="f", value=0.8)]


def test_scores_are_exported_on_the_first_span_of_a_watched_trace(application: Application) -> None:
    """A span that waits in a ScoreSpanProcessor is exported once, with its score."""
    processor = germane.ScoreSpanProcessor(SimpleSpanProcessor(application.traced.exporter))
    application.watch(processor=processor, holds_spans=True)

    application.ask()
    exchange = application.exchange
    waiting = application.exported

    assert attach_scores(exchange, scores(exchange)) == "original"
    assert (waiting, application.exported) == ([], ["Chain"])
    assert application.traced.attributes()["germane.evaluation.answer_relevancy"] == 0.8
    assert exchange.span_holder is not None


def test_late_scores_of_a_watched_trace_get_a_carrier_span(application: Application) -> None:
    """Without a ScoreSpanProcessor, the score is exported on a span that links to the first span."""
    application.watch(holds_spans=True)

    application.ask()
    exchange = application.exchange

    assert attach_scores(exchange, scores(exchange)) == "carrier"
    (link,) = application.traced.span("evaluation").links
    assert f"{link.context.span_id:016x}" == exchange.span_id
    assert application.exchanges == [exchange]


def test_spans_of_unreadable_traces_are_not_held(application: Application, wait_until: Callable[..., None]) -> None:
    """As soon as a trace turns out to be unreadable, its first span is exported."""
    processor = germane.ScoreSpanProcessor(SimpleSpanProcessor(application.traced.exporter), max_delay=1000)
    application.watch(processor=processor, holds_spans=True)

    with application.tracer().start_as_current_span("model") as span:
        span.set_attribute(KIND, "LLM")
    with application.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("GET /health"):
        pass

    wait_until(lambda: sorted(application.exported) == ["GET /health", "model"])


def test_spans_of_unsampled_watched_exchanges_are_not_held(application: Application) -> None:
    """Only the spans of exchanges that will be scored are delayed."""
    processor = germane.ScoreSpanProcessor(SimpleSpanProcessor(application.traced.exporter), max_delay=1000)
    application.watch(processor=processor, holds_spans=True, sample_rate=0.0)

    application.ask()

    assert application.exported == ["Chain"]
    assert application.exchange.span_holder is None


def test_a_trace_waits_for_a_span_that_outlives_its_first_span(watched: Application) -> None:
    """A stream that ends after the request belongs to it."""
    tracer = watched.tracer()
    with watched.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("POST /ask"):
        stream = tracer.start_span("Chain")
    before = list(watched.exchanges)
    stream.set_attributes({KIND: "CHAIN", "input.value": "Why?", "output.value": "Because."})
    stream.end()

    assert before == []
    assert watched.exchange.answer == "Because."


def test_a_trace_waits_only_for_a_grace_period_for_an_unknown_open_span(
    application: Application, wait_until: Callable[..., None]
) -> None:
    """After the grace period, the trace is read without an open span of an unknown scope."""
    application.watch(TraceLimits(grace=0.01))
    with application.tracer("x").start_as_current_span("POST /ask"):
        application.ask()
        open_span = application.tracer("x").start_span("background task")

    wait_until(lambda: application.exchanges)
    open_span.end()

    assert application.exchange.answer == "Because."


def test_a_trace_whose_first_span_never_ends_is_read_at_its_maximum_age(
    application: Application, wait_until: Callable[..., None]
) -> None:
    """A trace that is open for too long is read as it is. There is no span for its scores."""
    application.watch(TraceLimits(age=0.01))
    with application.tracer("x").start_as_current_span("worker loop"):
        application.ask()

        wait_until(lambda: application.exchanges)

    assert application.exchange.answer == "Because."


def test_a_trace_waits_beyond_the_grace_period_for_an_open_model_span(application: Application) -> None:
    """An open span of a known instrumentation may get the answer after the grace period."""
    application.watch(TraceLimits(grace=0.0))
    with application.tracer("x").start_as_current_span("POST /ask"):
        stream = application.tracer().start_span("Chain")
    assert application.exchanges == []
    stream.set_attributes({KIND: "CHAIN", "input.value": "Why?", "output.value": "Because."})
    stream.end()

    assert (application.exchange.answer, application.exchange.route) == ("Because.", "POST /ask")


def test_a_trace_whose_stream_never_ends_is_counted_as_unreadable(
    application: Application, wait_until: Callable[..., None]
) -> None:
    """At its maximum age, a trace without its answer is incomplete."""
    application.watch(TraceLimits(grace=0.0, age=0.01))
    with application.tracer("x").start_as_current_span("POST /ask"):
        stream = application.tracer().start_span("Chain")

    wait_until(lambda: not application.exchanges and application.unreadable)
    stream.end()

    assert application.exchanges == []
    assert [(service, route) for service, route, _ in application.unreadable] == [("test", "POST /ask")]


def test_an_earlier_call_does_not_give_the_answer_of_a_stream_that_never_ends(
    application: Application, wait_until: Callable[..., None]
) -> None:
    """The reply of a call that rewrote the question is not the answer that is still streamed."""
    application.watch(TraceLimits(grace=0.0, age=0.01))
    with application.tracer("x").start_as_current_span("POST /ask"):
        application.call("And shoes?", "Can shoes be returned?")
        stream = application.tracer().start_span("stream")

    wait_until(lambda: not application.exchanges and application.unreadable)
    stream.end()

    assert application.exchanges == []


def test_a_late_span_of_an_irrelevant_trace_is_an_exchange_of_its_own(
    application: Application, wait_until: Callable[..., None]
) -> None:
    """If nothing else in the trace was relevant, the span is an exchange of its own."""
    application.watch(TraceLimits(grace=0.0))
    with application.tracer("x").start_as_current_span("POST /ask"):
        late = application.tracer("x").start_span("task")
    wait_until(lambda: not application.exchanges and not application.watcher.collector.assembler.buffers)
    late.set_attributes({KIND: "CHAIN", "input.value": "Why?", "output.value": "Because."})
    late.end()

    assert application.exchange.route == "task"


def test_requests_under_a_span_that_stays_open_are_watched(
    application: Application, wait_until: Callable[..., None]
) -> None:
    """Each request of a session or a consumer is an exchange, before and after the session's maximum age."""
    application.watch(TraceLimits(age=0.0))
    with application.tracer("x").start_as_current_span("session"):
        application.ask("One?", "First.")
        with application.tracer("x").start_as_current_span("message"):
            application.ask("Two?", "Second.")
            wait_until(lambda: len(application.exchanges) == 2)
            application.ask("Three?", "Third.")
        wait_until(lambda: len(application.exchanges) == 3)
        application.ask("Four?", "Fourth.")

    pairs = [(exchange.question, exchange.answer) for exchange in application.exchanges]
    assert pairs == [("One?", "First."), ("Two?", "Second."), ("Three?", "Third."), ("Four?", "Fourth.")]
    assert application.unreadable == []


def test_stopping_reads_the_complete_requests_of_an_open_session(watched: Application) -> None:
    """Complete requests are not lost because the session's span is still open."""
    with watched.tracer("x").start_as_current_span("session"):
        watched.ask("One?", "First.")
        watched.ask("Two?", "Second.")
        watching.flush(10, is_last=True)

        assert [exchange.answer for exchange in watched.exchanges] == ["First.", "Second."]


def remote(trace_id: int = 0xABC) -> OTelContext:
    context = SpanContext(trace_id, 0xDEF, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(context), OTelContext())


def test_the_first_span_of_a_trace_in_this_process_is_its_root(watched: Application) -> None:
    """A request of another service is watched in this one. Two of them in one trace are two exchanges."""
    for number in range(2):
        with watched.tracer("x").start_as_current_span(f"request {number}", context=remote()):
            watched.ask(f"Question {number}?", f"Answer {number}.")

    pairs = [(exchange.question, exchange.answer) for exchange in watched.exchanges]
    assert pairs == [("Question 0?", "Answer 0."), ("Question 1?", "Answer 1.")]
    assert len({exchange.span_id for exchange in watched.exchanges}) == 2


@pytest.mark.parametrize("limits", [TraceLimits(spans=3), TraceLimits(characters=100)], ids=["spans", "characters"])
def test_an_oversized_trace_is_counted_and_not_read(application: Application, limits: TraceLimits) -> None:
    """No part of the trace is read, and its memory is freed."""
    application.watch(limits)
    with application.tracer("x").start_as_current_span("POST /ask"):
        for number in range(5):
            application.ask(f"{number}" * 30)

    assert application.exchanges == []
    assert [(service, route) for service, route, _ in application.unreadable] == [("test", "POST /ask")]
    application.ask()
    assert application.exchange.question == "Why?"


def test_open_traces_above_the_limit_are_counted_and_not_read(application: Application) -> None:
    """Traces above the limit are not watched. Later ones are."""
    application.watch(TraceLimits(traces=2))
    spans = [application.tracer().start_span("open", context=OTelContext()) for _ in range(5)]
    for span in spans:
        span.end()
    application.ask()

    assert application.exchange.question == "Why?"
    assert application.watcher.collector.assembler.not_watched == 3


def test_later_spans_of_a_rejected_trace_do_not_count_as_another_trace(application: Application) -> None:
    """A trace above the limit counts once, also if it goes on when others have ended."""
    application.watch(TraceLimits(traces=1))
    other = application.tracer().start_span("open", context=OTelContext())
    with application.tracer("x").start_as_current_span("POST /ask", context=OTelContext()):
        application.ask("Rewritten?", "Draft.")
        other.end()
        application.ask("Final?", "Answer.")

    assert application.exchanges == []
    assert application.watcher.collector.assembler.not_watched == 1


@pytest.mark.parametrize("kind", ["attribute", "sequence", "event", "log"])
def test_texts_in_attributes_events_and_log_records_count_towards_the_memory_limit(
    application: Application, kind: str
) -> None:
    """The limit on characters holds wherever an instrumentation records them."""
    application.watch(TraceLimits(characters=1_000))
    text = "x" * 2_000
    with application.tracer().start_as_current_span("model") as span:
        if kind == "attribute":
            span.set_attribute("input.value", text)
        elif kind == "sequence":
            span.set_attribute("vector", [text])
        elif kind == "event":
            span.add_event("gen_ai.choice", {"message": text})
        else:
            record = LogRecord(
                context=set_span_in_context(span), event_name="gen_ai.choice", attributes={"message": {"content": text}}
            )
            LogCollector(application.watcher.collector).on_emit(record)

    assert application.exchanges == []
    assert len(application.unreadable) == 1
    assert application.watcher.collector.assembler.size == 0


def test_the_size_of_a_log_record_that_contains_itself_is_finite() -> None:
    """Measuring the record does not recurse forever."""
    body: dict[str, Any] = {"text": "four"}
    body["again"] = [body, body]

    assert text_size(body) == 4


def test_the_number_of_routes_from_span_names_is_limited(watched: Application) -> None:
    """Names of spans that differ from trace to trace do not become an unlimited number of routes."""
    for number in range(watching.MAX_ROUTES + 5):
        watched.ask(name=f"user {number}")

    routes = [exchange.route for exchange in watched.exchanges]
    assert len(set(routes)) == watching.MAX_ROUTES + 1
    assert routes.count("other") == 5


def test_ids_in_the_names_of_spans_do_not_take_up_routes(watched: Application) -> None:
    """Traces whose names differ by ids have one route."""
    for number in range(10, 20):
        watched.ask(name=f"Crew_8c168cfb-5493-48ed-9e71-b85541e513{number}.kickoff")

    assert {exchange.route for exchange in watched.exchanges} == {"Crew_{id}.kickoff"}


def test_texts_of_concurrent_requests_are_never_mixed(watched: Application) -> None:
    """Every request yields its own question and answer."""

    def requests(thread: int) -> None:
        for number in range(40):
            with watched.tracer("x").start_as_current_span("POST /ask"):
                watched.ask(f"Question {thread}.{number}?", f"Answer {thread}.{number}.")

    threads = [threading.Thread(target=requests, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    pairs = {(exchange.question, exchange.answer) for exchange in watched.exchanges}
    assert pairs == {(f"Question {t}.{n}?", f"Answer {t}.{n}.") for t in range(8) for n in range(40)}
    assert watched.watcher.collector.assembler.buffers == {}


def test_spans_of_scorers_are_not_watched(watched: Application) -> None:
    """Spans that are recorded while a scorer runs yield nothing."""
    with suppress_tracing(), watched.tracer("x").start_as_current_span("judge"):
        watched.ask("Rate this.", "5")

    assert (watched.exchanges, watched.unreadable) == ([], [])


def test_an_error_does_not_reach_the_application(watched: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails in germane, the application's spans are recorded and exported."""
    monkeypatch.setattr(watched.watcher.collector.assembler, "_classify", lambda *_: 1 / 0)

    watched.ask()

    assert watched.exported == ["Chain"]


def test_built_in_conventions_are_used_if_a_registered_recognizer_raises(
    watched: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The built-in conventions are used instead."""
    monkeypatch.setattr("germane.recognizers.registry._registered", {"broken": lambda span: 1 / 0})

    watched.ask()

    assert watched.exchange.question == "Why?"


def read_shop_span(span: SpanData) -> SpanReading | None:
    """Read the spans of an application's own instrumentation."""
    if span.scope != "shop":
        return None
    return SpanReading(
        kind="workflow",
        inputs=(RawValue("shop.question", span.attributes["shop.question"]),),
        outputs=(RawValue("shop.answer", span.attributes["shop.answer"]),),
    )


def test_spans_of_any_scope_reach_a_registered_recognizer(
    watched: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace is read although no convention knows its spans."""
    monkeypatch.setattr("germane.recognizers.registry._registered", {"shop": read_shop_span})
    with watched.tracer("shop").start_as_current_span("answer") as span:
        span.set_attributes({"shop.question": "Why?", "shop.answer": "Because."})

    assert (watched.exchange.question, watched.exchange.answer) == ("Why?", "Because.")


def test_a_trace_whose_recognition_fails_is_counted_as_unreadable(
    watched: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recognizer may return anything. The trace is unreadable, and the next ones are read."""
    monkeypatch.setattr("germane.recognizers.registry._registered", {"broken": lambda span: "not a reading"})
    watched.ask()
    assert watched.exchanges == []
    monkeypatch.undo()
    watched.ask()

    assert [(service, route) for service, route, _ in watched.unreadable] == [("test", "Chain")]
    assert watched.exchange.answer == "Because."


def test_watching_and_receiving_a_trace_yield_the_same_exchange(watched: Application) -> None:
    """Its id is derived from the trace and its first span, so one database stores it once."""
    watched.ask()
    (span,) = watched.traced.spans
    exchange = watched.exchange

    assert exchange.id == exchange_id_for(exchange.trace_id, exchange.span_id, span.start_time)


def test_watching_never_sets_the_global_provider(watched: Application) -> None:
    """The application's provider is used as it is."""
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def test_no_trace_is_watched_without_a_call_of_watch(application: Application) -> None:
    """Connecting alone does not read the spans of others."""
    application.traced.connect()

    application.ask()

    assert application.exchanges == []


def test_watch_can_be_called_before_or_after_start(application: Application) -> None:
    """The order of ``germane.start()`` and ``germane.watch()`` does not matter."""
    application.replace_watcher()
    application.traced.connect()
    germane.watch()

    application.ask()

    assert application.exchange.question == "Why?"


def test_spans_are_not_collected_after_a_stop(watched: Application) -> None:
    """After a disconnect, spans are not collected."""
    germane.tracer.disconnect()

    watched.ask()

    assert watched.watcher.collector.assembler.buffers == {}
    assert watched.exchanges == []


def test_a_stop_ends_the_watching_thread_until_the_next_start(
    watched: Application, wait_until: Callable[..., None]
) -> None:
    """Open traces are forgotten. The same provider is watched again."""
    thread = watched.watcher._thread
    assert thread is not None
    open_span = watched.tracer("x").start_span("open")
    germane.tracer.disconnect()
    wait_until(lambda: not thread.is_alive())
    open_span.end()
    assert watched.watcher.collector.closed
    watched.traced.connect(watches=True)
    watched.ask()

    assert watched.exchange.question == "Why?"
    assert watched.watcher._thread is not None
    assert watched.watcher._thread.is_alive()


def test_the_watching_thread_continues_after_an_error(
    watched: Application, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]
) -> None:
    """Later traces are read, whatever failed earlier."""
    failures: list[int] = []

    def fail(**_: Any) -> None:
        failures.append(1)
        raise RuntimeError

    monkeypatch.setattr(watched.watcher, "_read_all", fail)
    watched.ask()
    wait_until(lambda: failures)
    monkeypatch.undo()

    wait_until(lambda: watched.traced.exchanges)


FORK = """
if child := os.fork():
    os.waitpid(child, 0)
    sys.exit()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@each("fork", ["", FORK])
def test_a_tracer_provider_that_is_set_after_watch_is_found(run: Callable[..., str], fork: str) -> None:
    """``watch()`` may come before the application sets its provider, also before a fork whose child sets one."""
    code = f"""
import os, sys, time
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
import germane
from germane.tracer import connect, flush, watching
captured = []
germane.watch()
connect(sink=captured.append, service="test")
{fork}
provider = TracerProvider(shutdown_on_exit=False)
trace.set_tracer_provider(provider)
deadline = time.monotonic() + 60
while not watching._watcher._providers and time.monotonic() < deadline:
    time.sleep(0.01)
with provider.get_tracer("openinference.x").start_as_current_span("Chain") as span:
    span.set_attributes({{"openinference.span.kind": "CHAIN", "input.value": "Why?", "output.value": "So."}})
flush(10)
print([(exchange.question, exchange.answer) for exchange in captured])
"""
    assert run(code) == "[('Why?', 'So.')]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_watches_its_own_traces(run: Callable[..., str]) -> None:
    """Parent and child each read the traces that they started."""
    code = """
import os
from opentelemetry.sdk.trace import TracerProvider
from germane.tracer import connect, flush
captured = []
provider = TracerProvider(shutdown_on_exit=False)
connect(sink=captured.append, service="test", provider=provider, watches=True)
tracer = provider.get_tracer("openinference.x")

def ask(question):
    with tracer.start_as_current_span("Chain") as span:
        span.set_attributes({"openinference.span.kind": "CHAIN", "input.value": question, "output.value": "So."})

open_span = tracer.start_span("open")
reading, writing = os.pipe()
if not os.fork():
    ask("child")
    flush(10)
    os.write(writing, " ".join(exchange.question for exchange in captured).encode())
    os._exit(0)
ask("parent")
flush(10)
os.wait()
print(os.read(reading, 100).decode(), *(exchange.question for exchange in captured))
"""
    assert run(code) == "child parent"


def test_messages_in_structured_attributes_are_read(watched: Application) -> None:
    """Newer instrumentations record messages as structures rather than as JSON."""
    with watched.tracer("opentelemetry.instrumentation.genai.openai").start_as_current_span("chat") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        message: Any = [{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}]
        reply: Any = [{"role": "assistant", "parts": [{"type": "text", "content": "Because."}]}]
        span.set_attribute("gen_ai.input.messages", message)
        span.set_attribute("gen_ai.output.messages", reply)
    if "gen_ai.input.messages" not in getattr(span, "attributes", {}):
        pytest.skip("this version of OpenTelemetry rejects structures")

    assert (watched.exchange.question, watched.exchange.answer) == ("Why?", "Because.")


def test_unreadable_traces_are_stored_without_attribute_values(watched: Application) -> None:
    """The sample contains the names of spans and attributes, so that people see which are missing."""
    with watched.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("POST /ask"):
        watched.ask(question="my secret", answer="__REDACTED__")

    assert watched.exchanges == []
    (trace,) = watched.samples
    assert (trace.service, trace.scope, trace.reason) == ("test", OPENINFERENCE, "content_capture_off")
    assert [(span.name, span.depth) for span in trace.spans] == [("POST /ask", 0), ("Chain", 1)]
    attributes = {each.name: (each.type, each.length) for each in trace.spans[1].attributes}
    assert attributes == {KIND: ("string", 5), "input.value": ("string", 9), "output.value": ("string", 12)}
    assert "secret" not in repr(trace)


@pytest.mark.parametrize("given", [{"capture": "none"}, {}])
def test_only_unreadable_traces_with_captured_texts_are_stored_as_examples(
    application: Application, given: Any
) -> None:
    """Traces without an exchange are not stored, and with ``capture = none``, no trace is."""
    application.watch(**given)
    application.ask()
    with application.tracer("opentelemetry.instrumentation.fastapi").start_as_current_span("GET /health") as span:
        span.set_attribute("gen_ai.system", "none")
    if given:
        application.ask(answer="__REDACTED__")

    assert len(application.exchanges) == 1
    assert len(application.unreadable) == len(given)
    assert application.samples == []
