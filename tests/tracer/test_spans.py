"""Spans, events and metrics: names and attributes in both conventions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

import germane
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.tracer import attach_scores

SCORED = Score(
    scorer="answer_relevancy",
    fingerprint="f1",
    value=0.87,
    label="mostly_relevant",
    explanation="near",
    details={"requested": 3, "usable": 2, "questions": ["a", "b"]},
    judge="m",
    embedder="e",
    latency=0.4,
)
PROXY = Score(scorer="question_answer_similarity", fingerprint="f2", value=0.5)
FAILED = Score(
    scorer="faithfulness", fingerprint="f3", reason=UnscoredReason.JUDGE_TIMEOUT, explanation="too slow", judge="m"
)
SKIPPED = Score(scorer="answer_relevancy", fingerprint="f1", reason=UnscoredReason.MISSING_INPUT)
IDENTIFIER = f"germane@{version('germane')}"


@germane.retrieval(source="docs")
def search(query: str) -> list[dict[str, Any]]:
    return [{"text": "Open Settings.", "id": "d1", "score": 0.5}, {"text": "Press Reset."}]


@germane.observe(route="support")
def ask(question: str) -> str:
    search(f"about {question}")
    return "Reset it."


def test_the_span_of_a_handler_follows_openinference_and_genai_conventions(traced: Any) -> None:
    """It is a CHAIN span in OpenInference and an invoke_workflow span in the GenAI conventions."""
    ask('Wh"y?')

    span = traced.span("support")
    assert span.attributes == {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "support",
        "germane.exchange.id": traced.exchange.id,
        "input.value": 'Wh"y?',
        "input.mime_type": "text/plain",
        "gen_ai.input.messages": r'[{"role":"user","parts":[{"type":"text","content":"Wh\"y?"}]}]',
        "output.value": "Reset it.",
        "output.mime_type": "text/plain",
        "gen_ai.output.messages": (
            '[{"role":"assistant","parts":[{"type":"text","content":"Reset it."}],"finish_reason":"stop"}]'
        ),
    }
    assert (span.name, span.kind, span.parent) == ("invoke_workflow support", SpanKind.INTERNAL, None)
    assert (span.status.status_code, span.events, span.links) == (StatusCode.UNSET, (), ())
    assert (span.instrumentation_scope.name, span.instrumentation_scope.version) == ("germane", version("germane"))
    assert json.loads(span.attributes["gen_ai.input.messages"])[0]["parts"][0]["content"] == 'Wh"y?'


def test_the_span_of_a_retriever_follows_openinference_and_genai_conventions(traced: Any) -> None:
    """It is a RETRIEVER span in OpenInference and a retrieval span in the GenAI conventions."""
    ask("Why?")

    span = traced.span("docs")
    documents = json.loads(span.attributes["gen_ai.retrieval.documents"])
    assert documents == [
        {"id": "d1", "score": 0.5, "content": "Open Settings."},
        {"id": "1", "content": "Press Reset."},
    ]
    assert span.attributes == {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "docs",
        "input.value": "about Why?",
        "input.mime_type": "text/plain",
        "gen_ai.retrieval.query.text": "about Why?",
        "retrieval.documents.0.document.content": "Open Settings.",
        "retrieval.documents.0.document.id": "d1",
        "retrieval.documents.0.document.score": 0.5,
        "retrieval.documents.1.document.content": "Press Reset.",
        "retrieval.documents.1.document.id": "1",
        "gen_ai.retrieval.documents": span.attributes["gen_ai.retrieval.documents"],
    }
    assert (span.name, span.kind) == ("retrieval docs", SpanKind.CLIENT)
    assert span.parent.span_id == traced.span("support").context.span_id


def test_a_span_has_at_most_thirty_documents(traced: Any) -> None:
    """Long documents are truncated. The span's kind and query are not dropped."""
    many = [{"text": "x" * 100_000, "id": str(n), "score": n} for n in range(90)]
    germane.retrieval(source="docs")(lambda query: many)("Why?")

    shown = traced.attributes("docs")
    contents = [value for name, value in shown.items() if name.endswith("document.content")]
    assert (len(contents), max(map(len, contents))) == (30, 4096)
    assert len(json.loads(shown["gen_ai.retrieval.documents"])) == 30
    assert (shown["openinference.span.kind"], shown["input.value"]) == ("RETRIEVER", "Why?")
    assert len(shown) < 128


def test_added_contexts_get_a_retriever_span(traced: Any) -> None:
    """The span is a child of the handler's span."""

    @germane.observe(route="support")
    def add(question: str) -> str:
        germane.add_contexts(["a"])
        return question

    add("Why?")

    span = traced.span("retrieval support")
    assert span.attributes == {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "support",
        "retrieval.documents.0.document.content": "a",
        "retrieval.documents.0.document.id": "0",
        "gen_ai.retrieval.documents": '[{"id": "0", "content": "a"}]',
    }
    assert (span.kind, span.parent.span_id) == (SpanKind.CLIENT, traced.span("workflow support").context.span_id)


def test_the_span_of_a_failed_handler_records_the_error(traced: Any) -> None:
    """Its status and event are the same as those recorded by OpenTelemetry."""

    @germane.observe(route="support")
    def fail(question: str) -> str:
        raise LookupError("no such page")

    with pytest.raises(LookupError):
        fail("Why?")

    span = traced.span("support")
    (event,) = span.events
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "LookupError: no such page")
    assert (event.name, event.attributes["exception.type"]) == ("exception", "LookupError")
    assert event.attributes["exception.message"] == "no such page"
    assert event.attributes["exception.stacktrace"].startswith("Traceback (most recent call last):")
    assert "output.value" not in span.attributes


def test_the_error_type_on_a_span_includes_the_module(traced: Any) -> None:
    """The exchange contains the short name."""
    with pytest.raises(json.JSONDecodeError):
        germane.observe(route="support")(json.loads)("Why?")

    assert traced.span("support").events[0].attributes["exception.type"] == "json.decoder.JSONDecodeError"
    assert traced.exchange.error.startswith("JSONDecodeError: Expecting value")


SHOWN_SCORES = {
    "evaluations.0.evaluation.name": "answer_relevancy",
    "evaluations.0.evaluation.score": 0.87,
    "evaluations.0.evaluation.label": "mostly_relevant",
    "evaluations.0.evaluation.explanation": "near",
    "evaluations.0.evaluation.annotator_kind": "LLM",
    "evaluations.0.evaluation.identifier": IDENTIFIER,
    "evaluations.0.evaluation.metadata": (
        '{"fingerprint": "f1", "judge": "m", "embedder": "e", "requested": 3, "usable": 2}'
    ),
    "germane.evaluation.answer_relevancy": 0.87,
    "evaluations.1.evaluation.name": "question_answer_similarity",
    "evaluations.1.evaluation.score": 0.5,
    "evaluations.1.evaluation.annotator_kind": "CODE",
    "evaluations.1.evaluation.identifier": IDENTIFIER,
    "evaluations.1.evaluation.metadata": '{"fingerprint": "f2"}',
    "germane.evaluation.question_answer_similarity": 0.5,
    "evaluations.2.evaluation.name": "faithfulness",
    "evaluations.2.evaluation.label": "judge_timeout",
    "evaluations.2.evaluation.explanation": "too slow",
    "evaluations.2.evaluation.annotator_kind": "LLM",
    "evaluations.2.evaluation.identifier": IDENTIFIER,
    "evaluations.2.evaluation.metadata": '{"fingerprint": "f3", "judge": "m"}',
}


@pytest.fixture
def held(unconnected: Any) -> Any:
    """A tracer whose spans wait for their scores."""
    holder = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
    unconnected.connect(processor=holder, holds_spans=True)
    unconnected.holder = holder
    return unconnected


class TestOriginal:
    """Scores on the original span."""

    def test_scores_are_set_as_attributes_on_the_original_span(self, held: Any) -> None:
        """All scores are set together, with consecutive indices and one flat number per metric."""
        ask("Why?")
        assert [span.name for span in held.spans] == ["retrieval docs"]

        assert attach_scores(held.exchange, [SCORED, PROXY, SKIPPED, FAILED]) == "original"

        shown = held.attributes("support")
        assert {name: value for name, value in shown.items() if "evaluation" in name} == SHOWN_SCORES
        assert shown["output.value"] == "Reset it."
        assert len(held.spans) == 2

    def test_a_failed_score_has_no_numeric_attribute(self, held: Any) -> None:
        """Label and explanation describe the failure, so that nothing is averaged by mistake."""
        ask("Why?")

        assert attach_scores(held.exchange, [FAILED]) == "original"
        numbers = [name for name, value in held.attributes("support").items() if isinstance(value, float)]
        assert numbers == []
        assert held.attributes("support")["evaluations.0.evaluation.label"] == "judge_timeout"

    @pytest.mark.parametrize("scores", [[SKIPPED], []])
    def test_a_skipped_score_releases_the_held_span(self, held: Any, scores: list[Score]) -> None:
        """The span is exported immediately, unchanged."""
        ask("Why?")

        assert attach_scores(held.exchange, scores) == "none"
        assert "evaluations.0.evaluation.name" not in held.attributes("support")

    @pytest.mark.parametrize("answer", [None, ""])
    def test_a_span_without_question_or_answer_is_not_held(self, held: Any, answer: Any) -> None:
        """The exchange cannot be scored."""
        germane.observe(route="support")(lambda question: answer)("Why?")

        assert held.span("support")

    def test_the_span_of_an_unsampled_exchange_is_not_delayed(self, unconnected: Any) -> None:
        """At a sample rate of 0.5, only spans with a sampling key up to 0.5 wait."""
        holder = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
        unconnected.connect(processor=holder, holds_spans=True, sample_rate=0.5)
        for _ in range(60):
            ask("Why?")

        gone = {format(span.context.trace_id, "032x") for span in unconnected.spans if span.name.endswith("support")}
        assert gone == {exchange.trace_id for exchange in unconnected.exchanges if exchange.sampling_key > 0.5}
        assert 0 < len(gone) < 60

    def test_only_the_span_of_the_outermost_handler_is_held(self, held: Any) -> None:
        """Inner handlers have no exchange, so they get no score."""
        germane.observe(route="outer")(lambda question: ask(question))("Why?")

        assert [span.name for span in held.spans] == ["retrieval docs", "invoke_workflow support"]

    def test_the_span_of_a_stream_is_held_after_the_last_chunk(self, held: Any) -> None:
        """A streamed exchange also gets its score on the original span."""

        @germane.observe(route="stream")
        def stream(question: str) -> Iterator[str]:
            yield "Reset it."

        list(stream("Why?"))

        assert attach_scores(held.exchange, [PROXY]) == "original"
        assert held.attributes("stream")["germane.evaluation.question_answer_similarity"] == 0.5

    def test_every_score_processor_exports_the_score(self, unconnected: Any) -> None:
        """An application may wrap several exporting processors. Processors that never see the span are not affected."""
        stray = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
        first = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
        second = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
        unconnected.connect(processor=first, holds_spans=True).provider.add_span_processor(second)
        ask("Why?")

        assert attach_scores(unconnected.exchange, [PROXY]) == "original"
        scored = [
            span for span in unconnected.spans if "germane.evaluation.question_answer_similarity" in span.attributes
        ]
        assert [span.name for span in scored] == ["invoke_workflow support"] * 2
        assert stray.counts["early"] == 0
        stray.shutdown()


class TestCarrier:
    """Scores whose original span has been exported."""

    def test_a_carrier_span_links_to_the_original_span(self, traced: Any) -> None:
        """It is a root span with one link and all scores."""
        ask("Why?")
        with traced.provider.get_tracer("app").start_as_current_span("elsewhere"):
            assert attach_scores(traced.exchange, [SCORED, PROXY, FAILED]) == "carrier"

        carrier, target = traced.span("evaluation"), traced.span("support")
        (link,) = carrier.links
        assert (carrier.name, carrier.kind, carrier.parent) == ("evaluation", SpanKind.INTERNAL, None)
        assert carrier.context.trace_id != target.context.trace_id
        assert (link.context.trace_id, link.context.span_id) == (target.context.trace_id, target.context.span_id)
        assert carrier.attributes == {
            "openinference.span.kind": "EVALUATOR",
            "gen_ai.operation.name": "evaluation",
            **SHOWN_SCORES,
        }
        (event,) = carrier.events
        assert (event.name, dict(event.attributes)) == (
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "answer_relevancy",
                "gen_ai.evaluation.score.value": 0.87,
                "gen_ai.evaluation.score.label": "mostly_relevant",
                "gen_ai.evaluation.explanation": "near",
            },
        )

    @pytest.mark.parametrize("scores", [[FAILED], [SKIPPED], []])
    def test_a_late_score_without_a_value_gets_no_carrier_span(self, traced: Any, scores: list[Score]) -> None:
        """A carrier span without a value would be useless."""
        ask("Why?")

        assert attach_scores(traced.exchange, scores) == "none"
        assert len(traced.spans) == 2

    def test_a_second_score_gets_a_carrier_span(self, held: Any) -> None:
        """The original span was exported with the first score."""
        ask("Why?")

        assert [attach_scores(held.exchange, [SCORED]), attach_scores(held.exchange, [PROXY])] == [
            "original",
            "carrier",
        ]

    def test_a_carrier_span_is_not_captured_as_an_exchange(self, traced: Any) -> None:
        """A carrier span yields no exchange, and does not wait for a score."""
        ask("Why?")
        attach_scores(traced.exchange, [SCORED])

        assert len(traced.exchanges) == 1
        assert len(traced.spans) == 3

    def test_characters_that_cannot_be_encoded_are_removed_from_explanations(self, traced: Any) -> None:
        """A judge's text may contain characters that UTF-8 cannot encode."""
        ask("Why?")
        attach_scores(
            traced.exchange, [Score(scorer="s", fingerprint="f", value=1.0, explanation="a\ud800b" + "x" * 100_000)]
        )

        shown = traced.attributes("evaluation")["evaluations.0.evaluation.explanation"]
        assert (shown[:3], len(shown)) == ("a?b", 32_768)


SIGNALS = """
import json, sys
from datetime import UTC, datetime
from opentelemetry import metrics, trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from germane.exchange import Exchange
from germane.score import UnscoredReason, Score
from germane.tracer import attach_scores

records, reader = InMemoryLogRecordExporter(), InMemoryMetricReader()
logs = LoggerProvider(shutdown_on_exit=False)
logs.add_log_record_processor(SimpleLogRecordProcessor(records))
set_logger_provider(logs)
metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
exchange = Exchange(id="1" * 32, trace_id="a" * 32, span_id="b" * 16, service="s", route="support", question="q",
                    answer="a", started_at=datetime.now(UTC), sampling_probability=0.25)
attach_scores(exchange, [
    Score(scorer="relevancy", fingerprint="f", value=0.87, label="mostly_relevant", explanation="near", latency=0.4,
          judge="m", input_tokens=120, output_tokens=30, cost=0.002),
    Score(scorer="faithfulness", fingerprint="f", reason=UnscoredReason.JUDGE_TIMEOUT, explanation="too slow",
          latency=9.0),
    Score(scorer="other", fingerprint="f", reason=UnscoredReason.BUDGET, input_tokens=5, latency=0.1),
])
events = [
    [record.log_record.event_name, dict(record.log_record.attributes), f"{record.log_record.trace_id:x}",
     f"{record.log_record.span_id:x}", record.log_record.timestamp > 10**18, record.log_record.body,
     record.log_record.severity_number and record.log_record.severity_number.name]
    for record in records.get_finished_logs()
]
measured = {}
for group in reader.get_metrics_data().resource_metrics:
    for scoped in group.scope_metrics:
        for metric in scoped.metrics:
            measured[metric.name] = [metric.unit, [
                [dict(point.attributes), getattr(point, "sum", None) or point.value,
                 list(getattr(point, "explicit_bounds", [])),
                 [[f"{one.trace_id:x}", f"{one.span_id:x}", one.value] for one in point.exemplars]]
                for point in metric.data.data_points]]
print(json.dumps([events, measured]))
"""


@pytest.fixture(scope="module")
def signals() -> Any:
    """Events and metrics for a scored, a failed and a skipped score, from the application's providers."""
    result = subprocess.run([sys.executable, "-c", SIGNALS], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(result.stdout)


def test_each_score_is_emitted_as_an_event_in_the_context_of_its_span(signals: Any) -> None:
    """``gen_ai.evaluation.result`` has trace and span ids. A failed score has error.type and no value."""
    events, _ = signals

    evaluated = {
        "gen_ai.evaluation.target": "support",
        "gen_ai.evaluation.evaluator.version": "f",
        "germane.sampling_probability": 0.25,
    }
    assert events == [
        [
            "gen_ai.evaluation.result",
            {
                **evaluated,
                "gen_ai.evaluation.name": "relevancy",
                "gen_ai.evaluation.evaluator.source": '{"name":"relevancy","arguments":null}',
                "gen_ai.evaluation.score.value": 0.87,
                "gen_ai.evaluation.score.label": "mostly_relevant",
                "gen_ai.evaluation.explanation": "near",
            },
            "a" * 32,
            "b" * 16,
            True,
            "evaluation: relevancy=0.87",
            None,
        ],
        [
            "gen_ai.evaluation.result",
            {
                **evaluated,
                "gen_ai.evaluation.name": "faithfulness",
                "gen_ai.evaluation.evaluator.source": '{"name":"faithfulness","arguments":null}',
                "gen_ai.evaluation.explanation": "too slow",
                "error.type": "judge_timeout",
            },
            "a" * 32,
            "b" * 16,
            True,
            "evaluation: faithfulness failed: too slow",
            "WARN",
        ],
    ]


ONLINE = """
import asyncio, json
from dataclasses import dataclass
from datetime import UTC, datetime
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from pydantic_evals.evaluators import EvaluationReason, Evaluator
from pydantic_evals.online import evaluate, wait_for_evaluations
from germane.exchange import Exchange
from germane.score import UnscoredReason, Score
from germane.tracer import attach_scores

records, logs = InMemoryLogRecordExporter(), LoggerProvider(shutdown_on_exit=False)
logs.add_log_record_processor(SimpleLogRecordProcessor(records))
set_logger_provider(logs)
trace.set_tracer_provider(TracerProvider())
results = {"high": (0.87, "near"), "whole": (1.0, None), "failing": None, "silent": None}

@dataclass
class Named(Evaluator):
    def get_evaluator_version(self):
        return "f"
    def evaluate(self, ctx):
        if results[type(self).__name__] is None:
            raise TimeoutError("too slow" if type(self).__name__ == "failing" else "")
        value, reason = results[type(self).__name__]
        return EvaluationReason(value=value, reason=reason)

@evaluate(*(type(name, (Named,), {})() for name in results))
async def support(question):
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x} {context.span_id:016x}"

async def main():
    with trace.get_tracer("app").start_as_current_span("support"):
        answer = await support("q")
    await wait_for_evaluations()
    return answer

asyncio.run(main())
theirs = records.get_finished_logs()
records.clear()
target = theirs[0].log_record
exchange = Exchange(id="1" * 32, trace_id=f"{target.trace_id:032x}", span_id=f"{target.span_id:016x}", service="s",
                    route="support", question="q", answer="a", started_at=datetime.now(UTC), sampling_probability=0.25)
attach_scores(exchange, [
    Score(scorer="high", fingerprint="f", value=0.87, explanation="near"),
    Score(scorer="whole", fingerprint="f", value=1.0),
    Score(scorer="failing", fingerprint="f", reason=UnscoredReason.JUDGE_TIMEOUT, explanation="TimeoutError: too slow"),
    Score(scorer="silent", fingerprint="f", reason=UnscoredReason.JUDGE_TIMEOUT, explanation="TimeoutError: "),
])

def shown(record):
    log = record.log_record
    return [log.event_name, dict(log.attributes), log.body, log.severity_number and log.severity_number.name,
            log.severity_text, f"{log.trace_id:032x}", f"{log.span_id:016x}"]

print(json.dumps([sorted(map(shown, each), key=lambda one: one[1]["gen_ai.evaluation.name"])
                  for each in (theirs, records.get_finished_logs())]))
"""


@pytest.mark.slow
def test_the_event_equals_that_of_pydantic_evals() -> None:
    """Name, attributes, body, severity and span are those of its online evaluation, so the same queries find both."""
    pytest.importorskip("pydantic_evals.online")
    run = subprocess.run([sys.executable, "-c", ONLINE], capture_output=True, text=True, check=True, timeout=120)
    theirs, ours = json.loads(run.stdout)

    assert len(theirs) == 4
    assert [event[1].pop("germane.sampling_probability") for event in ours] == [0.25] * 4
    errors = [[event[1].pop("error.type", None) for event in events] for events in (theirs, ours)]
    assert errors == [[error, None, error, None] for error in ("TimeoutError", "judge_timeout")]
    assert theirs == ours


def test_score_metrics_have_exemplars_that_link_to_the_span(signals: Any) -> None:
    """The exemplars of value, duration, tokens and cost refer to the span. A failed score has no value.

    A skipped score is not counted as a score, but its tokens are counted.
    """
    _, measured = signals
    exemplar = ["a" * 32, "b" * 16]
    labels = {"gen_ai.evaluation.name": "relevancy", "gen_ai.workflow.name": "support"}

    unit, (score,) = measured["germane.evaluation.score"]
    assert (unit, score[:2]) == ("1", [{**labels, "gen_ai.evaluation.score.label": "mostly_relevant"}, 0.87])
    assert score[2] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]
    assert score[3] == [[*exemplar, 0.87]]
    unit, durations = measured["germane.evaluation.duration"]
    assert (unit, [point[1] for point in durations]) == ("s", [0.4, 9.0])
    unit, tokens = measured["germane.evaluation.tokens"]
    assert (unit, [point[:2] for point in tokens]) == (
        "{token}",
        [
            [{**labels, "gen_ai.token.type": "input"}, 120],
            [{**labels, "gen_ai.token.type": "output"}, 30],
            [{**labels, "gen_ai.evaluation.name": "other", "gen_ai.token.type": "input"}, 5],
        ],
    )
    assert measured["germane.evaluation.cost"][0] == "USD"
    assert [point[:2] for point in measured["germane.evaluation.cost"][1]] == [[labels, 0.002]]


def test_attaching_scores_without_a_connection_has_no_effect() -> None:
    """In a worker process without handlers, attaching exports nothing and does not fail."""
    exchange = Exchange(
        id="1" * 32,
        trace_id="a" * 32,
        span_id="b" * 16,
        service="s",
        route="r",
        question="q",
        answer="a",
        started_at=datetime.now(UTC),
    )

    assert attach_scores(exchange, [SCORED]) == "none"
    assert not trace.get_current_span().get_span_context().is_valid
