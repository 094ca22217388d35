"""The score span processor: spans that wait for their scores."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, StatusCode

import germane
from germane.score import Score, UnscoredReason
from germane.testing import OTLPReceiver
from germane.tracer.attachment import score_attributes
from germane.tracer.score_processor import ScoreSpanProcessor

SCORE = {"germane.evaluation.answer_relevancy": 0.87}
Key = tuple[int, int]


class ProcessorBench:
    """A score processor in front of an exporter, and a tracer that feeds it."""

    def __init__(self, *, limits: SpanLimits | None = None, sampler: Sampler | None = None, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.orphans: list[tuple[Key, Mapping[str, Any]]] = []
        self.holder = ScoreSpanProcessor(SimpleSpanProcessor(self.exporter), **{"max_delay": 60.0, **options})
        self.holder.on_orphaned_score = lambda key, extra: self.orphans.append((key, extra))
        resource = Resource.create({"service.name": "bench"})
        self.provider = TracerProvider(span_limits=limits, sampler=sampler, resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(self.holder)
        self.tracer = self.provider.get_tracer("bench", "1.0")

    def span(self, name: str = "span", *, announced: bool = True, **options: Any) -> Key:
        """Create a span, and return its key."""
        span = self.tracer.start_span(name, **options)
        context = span.get_span_context()
        if announced:
            self.holder.announce((context.trace_id, context.span_id), "e1")
        span.end()
        return context.trace_id, context.span_id

    @property
    def exported(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.exported]

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.holder.counts.items() if count}


@pytest.fixture
def bench() -> Iterator[Callable[..., ProcessorBench]]:
    """A function that creates benches, which are shut down after the test."""
    made: list[ProcessorBench] = []

    def make(**options: Any) -> ProcessorBench:
        made.append(ProcessorBench(**options))
        return made[-1]

    yield make
    for one in made:
        one.provider.shutdown()


def test_a_span_that_expects_no_score_is_exported_immediately(bench: Callable[..., ProcessorBench]) -> None:
    """Other spans, and children of a held span, are not delayed."""
    here = bench()
    with here.tracer.start_as_current_span("held") as held:
        context = held.get_span_context()
        here.holder.announce((context.trace_id, context.span_id), "e1")
        here.span("child", announced=False)
    here.span("other", announced=False)

    assert here.names == ["child", "other"]
    assert here.counts == {"held": 1}


class RecordOnly(Sampler):
    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "records, but does not sample"


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, RecordOnly()])
def test_a_span_that_is_not_sampled_for_tracing_is_not_held(unconnected: Any, sampler: Sampler) -> None:
    """An unsampled span is never exported."""
    holder = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    unconnected.connect(provider=provider, processor=holder, holds_spans=True)
    germane.observe(lambda question: "a")("Why?")

    assert unconnected.exchange.answer == "a"
    assert not any(holder.counts.values())


def test_a_score_is_added_to_the_held_span(bench: Callable[..., ProcessorBench]) -> None:
    """The span is exported once, with all its original data and the score."""
    here = bench()
    link = Link(here.tracer.start_span("linked").get_span_context(), {"why": "test"})
    with here.tracer.start_as_current_span("parent"):
        span = here.tracer.start_span("held", kind=SpanKind.SERVER, links=[link], attributes={"a": 1, "b": [1, 2]})
        span.add_event("happened", {"what": "this"})
        span.set_status(StatusCode.ERROR, "broke")
        context = span.get_span_context()
        here.holder.announce((context.trace_id, context.span_id), "e1")
        span.end()
    ((_, original, _),) = here.holder._held.values()
    here.exporter.clear()

    assert here.holder.attach((context.trace_id, context.span_id), SCORE) == "attached"

    (exported,) = here.exported
    expected, shown = json.loads(original.to_json()), json.loads(exported.to_json())
    assert shown.pop("attributes") == {**expected.pop("attributes"), **SCORE}
    assert shown == expected
    assert (exported.context, exported.parent, exported.kind) == (original.context, original.parent, SpanKind.SERVER)
    assert (exported.start_time, exported.end_time) == (original.start_time, original.end_time)
    assert exported.get_span_context() is original.get_span_context()
    assert exported.instrumentation_scope is original.instrumentation_scope
    assert exported.resource is original.resource
    assert copy.copy(exported).attributes == exported.attributes
    assert [(event.name, event.attributes) for event in exported.events] == [("happened", {"what": "this"})]
    assert [link.attributes for link in exported.links] == [{"why": "test"}]
    assert here.counts == {"held": 1, "scored": 1}


def test_the_application_cannot_change_a_held_span_after_its_end(
    bench: Callable[..., ProcessorBench], caplog: pytest.LogCaptureFixture
) -> None:
    """Attributes that the application sets after the end are ignored."""
    here = bench()
    span = here.tracer.start_span("held")
    key = span.get_span_context().trace_id, span.get_span_context().span_id
    here.holder.announce(key, "e1")
    span.end()
    span.set_attribute("late", True)
    here.holder.attach(key, SCORE)

    assert here.exported[0].attributes == SCORE
    assert "ended span" in caplog.text


def test_a_second_score_arrives_too_late_for_the_held_span(bench: Callable[..., ProcessorBench]) -> None:
    """The span was exported with the first score, so the caller needs a carrier span."""
    here = bench()
    key = here.span()

    assert [here.holder.attach(key, SCORE), here.holder.attach(key, SCORE)] == ["attached", "gone"]
    assert len(here.exported) == 1
    assert here.counts == {"held": 1, "scored": 1, "late": 1}


def test_a_held_span_without_a_score_is_exported_at_its_deadline(
    bench: Callable[..., ProcessorBench], wait_until: Any
) -> None:
    """It is exported once, and not before its maximum delay."""
    here = bench(max_delay=0.2)
    began = time.monotonic()
    here.span()
    wait_until(lambda: here.exported)

    assert time.monotonic() - began >= 0.2
    assert (len(here.exported), here.exported[0].attributes) == (1, {})
    assert here.counts == {"held": 1, "expired": 1}


def test_each_held_span_has_its_own_deadline(bench: Callable[..., ProcessorBench], wait_until: Any) -> None:
    """The deadline thread keeps running after a period without spans."""
    here = bench(max_delay=0.05)
    for number in range(3):
        here.span(str(number))
        wait_until(lambda number=number: len(here.exported) == number + 1)

    assert here.names == ["0", "1", "2"]
    assert len([thread for thread in threading.enumerate() if thread is here.holder._thread]) == 1


def test_no_span_is_held_if_the_maximum_delay_is_zero(bench: Callable[..., ProcessorBench]) -> None:
    """With ``max_delay=0``, all spans are exported immediately."""
    here = bench(max_delay=0)
    here.span("a")

    assert here.names == ["a"]


def test_a_score_that_arrives_before_its_span_ends_is_kept_for_the_span(bench: Callable[..., ProcessorBench]) -> None:
    """The announced span is exported with its score as soon as the span ends."""
    here = bench()
    span = here.tracer.start_span("late")
    key = span.get_span_context().trace_id, span.get_span_context().span_id
    here.holder.announce(key, "e1")
    assert here.holder.attach(key, SCORE) == "stashed"
    assert here.holder.attach(key, SCORE) == "gone"
    span.end()

    assert here.exported[0].attributes == SCORE
    assert here.counts == {"scored": 1, "early": 1, "late": 1}


@pytest.mark.parametrize("how", ["evicted", "withdrawn", "shutdown"])
def test_a_score_whose_span_never_arrives_is_passed_to_the_orphan_handler(
    bench: Callable[..., ProcessorBench], how: str
) -> None:
    """If the announcement is evicted or withdrawn, or the processor shuts down, the score needs a carrier span."""
    here = bench(max_spans=2)
    here.holder.announce((1, 1), "e1")
    assert here.holder.attach((1, 1), SCORE) == "stashed"
    if how == "evicted":
        here.holder.announce((2, 2), "e2")
        here.holder.announce((3, 3), "e3")
    elif how == "withdrawn":
        here.holder.withdraw((1, 1))
    else:
        here.holder.shutdown()

    assert here.orphans == [((1, 1), SCORE)]
    assert here.holder.attach((1, 1), SCORE) == "gone"


def test_scores_that_remain_at_a_disconnect_get_carrier_spans(unconnected: Any) -> None:
    """The carrier spans are created while spans can still be exported."""
    holder = germane.ScoreSpanProcessor(SimpleSpanProcessor(unconnected.exporter), max_delay=60)
    unconnected.connect(processor=holder, holds_spans=True)
    holder.announce((1, 1), "e1")
    holder.attach((1, 1), SCORE)
    germane.tracer.disconnect()

    assert unconnected.span().links[0].context.trace_id == 1
    assert unconnected.attributes()["germane.evaluation.answer_relevancy"] == 0.87


def test_a_score_for_a_span_that_is_not_held_is_not_kept(bench: Callable[..., ProcessorBench]) -> None:
    """The span belongs to another process, or has already been exported."""
    here = bench()

    assert here.holder.attach((1, 1), SCORE) == "gone"
    assert here.counts == {"late": 1}


def test_flushing_the_processor_exports_held_spans(bench: Callable[..., ProcessorBench]) -> None:
    """Held spans are exported first, then the inner processor is flushed."""
    exporter = InMemorySpanExporter()
    here = bench()
    here.holder.processor = BatchSpanProcessor(exporter)
    here.span("a")

    assert here.provider.force_flush()
    assert [span.name for span in exporter.get_finished_spans()] == ["a"]


def test_shutting_down_the_processor_exports_held_spans(bench: Callable[..., ProcessorBench]) -> None:
    """The thread ends, and later spans are not held."""
    here = bench()
    here.span("a")
    here.span("b")
    thread = here.holder._thread
    here.holder.shutdown()

    assert here.names == ["a", "b"]
    assert not thread.is_alive()
    assert here.holder.closed


def test_the_oldest_held_spans_are_exported_when_the_processor_is_full(bench: Callable[..., ProcessorBench]) -> None:
    """With ten spans and space for three, seven are exported unscored, in order. Nothing blocks or is lost."""
    here = bench(max_spans=3)
    for number in range(10):
        here.span(str(number))

    assert here.names == [str(number) for number in range(7)]
    assert here.counts == {"held": 10, "overflow": 7}
    here.holder.release()
    assert here.names == [str(number) for number in range(10)]


def test_adding_a_score_does_not_change_the_counts_of_dropped_attributes(bench: Callable[..., ProcessorBench]) -> None:
    """The score is exempt from the attribute limit, and the counts of dropped items remain."""
    here = bench(limits=SpanLimits(max_span_attributes=2, max_events=1, max_links=1))
    span = here.tracer.start_span("held", attributes={"a": 1, "b": 2, "c": 3})
    span.add_event("1")
    span.add_event("2")
    key = span.get_span_context().trace_id, span.get_span_context().span_id
    here.holder.announce(key, "e1")
    span.end()
    here.holder.attach(key, SCORE)

    (exported,) = here.exported
    assert exported.attributes == {"b": 2, "c": 3, **SCORE}
    assert (exported.dropped_attributes, exported.dropped_events, exported.dropped_links) == (1, 1, 0)


FORKING = """
import json, os, sys
import germane, germane.tracer
from germane.exchange import Exchange
from germane.score import Score

exchanges = []
germane.tracer.connect(sink=exchanges.append, service="forking", max_span_delay=60.0)

@germane.observe(route="ask")
def ask(question):
    return question

def score(value):
    mine = exchanges[-1]
    assert germane.tracer.attach_scores(mine, [Score(scorer="s", fingerprint="f", value=value)]) == "original"

ask("parent")
children = []
for number in (1, 2):
    child = os.fork()
    if child == 0:
        ask(f"child {number}")
        score(number / 10)
        germane.tracer.disconnect()
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
score(0.9)
germane.tracer.disconnect()
print("done")
"""


def test_forked_children_export_only_their_own_spans(run: Any) -> None:
    """A span held at the fork belongs to the parent. Each span arrives once, with its own score."""
    with OTLPReceiver() as receiver:
        assert run(FORKING, **receiver.environment(), OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none") == "done"
        receiver.wait_for(lambda received: len(received.spans) >= 3)

        found = {span.attributes["input.value"]: span.attributes["germane.evaluation.s"] for span in receiver.spans}
    assert len(receiver.spans) == 3
    assert found == {"parent": 0.9, "child 1": 0.1, "child 2": 0.2}


IN_A_CALL = """
import json, os
import germane, germane.tracer
exchanges = []
germane.tracer.connect(sink=exchanges.append, service="forking")

@germane.observe(route="inner")
def inner(question):
    return question

@germane.observe(route="ask")
def ask(question):
    child = os.fork()
    if child == 0:
        inner("of the child")
        return "child"
    assert os.waitpid(child, 0)[1] == 0
    inner("of the parent")
    return "parent"

who = ask("Why?")
told = [[exchange.route, exchange.question, exchange.answer] for exchange in exchanges]
if who == "child":
    assert told == [["inner", "of the child", "of the child"]], told
    os._exit(0)
print(json.dumps(told))
"""


def test_a_call_that_is_in_progress_at_a_fork_belongs_to_the_parent(run: Any) -> None:
    """The call yields one exchange, in the parent. Calls in the child yield their own exchanges."""
    assert json.loads(run(IN_A_CALL)) == [["ask", "Why?", "parent"]]


class SerialExporter(SpanExporter):
    """An exporter that fails if two threads call it concurrently."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.busy = threading.Lock()
        self.overlapped = False

    def export(self, spans: Any) -> SpanExportResult:
        if not self.busy.acquire(blocking=False):
            self.overlapped = True
            return SpanExportResult.FAILURE
        try:
            self.spans.extend(spans)
            return SpanExportResult.SUCCESS
        finally:
            self.busy.release()


def test_spans_that_end_concurrently_are_exported_exactly_once(bench: Callable[..., ProcessorBench]) -> None:
    """Three threads with 300 spans each, half of them held, yield 900 spans, with scores on the right ones."""
    here, exporter = bench(max_delay=0.05), SerialExporter()
    here.holder.processor = BatchSpanProcessor(exporter, max_queue_size=4096)
    keys: list[Key] = []
    outcomes: dict[Key, str] = {}

    def work() -> None:
        for number in range(300):
            key = here.span(announced=number % 2 == 0)
            if number % 2 == 0:
                keys.append(key)

    def score() -> None:
        while any(thread.is_alive() for thread in threads) or keys:
            if keys:
                key = keys.pop()
                outcomes[key] = here.holder.attach(key, {"score.of": f"{key[1]:x}"})

    threads = [threading.Thread(target=work) for _ in range(3)]
    scorer = threading.Thread(target=score)
    for thread in (*threads, scorer):
        thread.start()
    for thread in (*threads, scorer):
        thread.join()
    here.holder.shutdown()

    assert not exporter.overlapped
    assert len({span.context.span_id for span in exporter.spans}) == len(exporter.spans) == 900
    scored = {span.context.span_id: span for span in exporter.spans if "score.of" in span.attributes}
    assert set(scored) == {key[1] for key, outcome in outcomes.items() if outcome == "attached"}
    assert all(span.attributes["score.of"] == f"{identity:x}" for identity, span in scored.items())


def test_the_processor_counts_spans_by_outcome(bench: Callable[..., ProcessorBench]) -> None:
    """``counts`` has the number of held spans, and the number of exported spans by reason."""
    assert set(bench().holder.counts) == {"held", "scored", "expired", "overflow", "early", "late"}


def test_several_scores_are_added_to_a_span_together(bench: Callable[..., ProcessorBench]) -> None:
    """The indices of their attributes are consecutive."""
    scores = [Score(scorer=name, fingerprint="f", value=0.5) for name in ("a", "b")]
    failed = Score(scorer="c", fingerprint="f", reason=UnscoredReason.UNPARSABLE)
    shown = score_attributes([*scores, failed])

    names = [shown[f"evaluations.{number}.evaluation.name"] for number in range(3)]
    assert (names, "evaluations.3.evaluation.name" in shown) == (["a", "b", "c"], False)


class RaisingProcessor(SpanProcessor):
    """A processor that fails on one span, and passes others on."""

    def __init__(self, inner: SpanProcessor) -> None:
        self.inner = inner

    def on_end(self, span: ReadableSpan) -> None:
        if span.name == "bad":
            raise ZeroDivisionError
        self.inner.on_end(span)


def test_an_error_in_the_wrapped_processor_affects_only_one_span(
    bench: Callable[..., ProcessorBench], wait_until: Any
) -> None:
    """The deadline thread keeps running, and other spans are exported."""
    here = bench(max_delay=0.05)
    here.holder.processor = RaisingProcessor(here.holder.processor)
    for name in ("bad", "good", "bad"):
        here.span(name)
    wait_until(lambda: here.names == ["good"])
    here.span("later")

    wait_until(lambda: here.names == ["good", "later"])


def test_a_span_that_ends_inside_the_processor_does_not_cause_a_deadlock(bench: Callable[..., ProcessorBench]) -> None:
    """The garbage collector may end a forgotten stream, and its span, on a thread that is inside the processor."""
    here = bench()
    with here.holder._lock:
        here.span("inside")

    assert here.counts == {"held": 1}


def test_the_wrapped_processor_is_called_when_a_span_starts_and_is_about_to_end(
    bench: Callable[..., ProcessorBench],
) -> None:
    """Processors that act at the start or just before the end of spans still work."""

    seen: list[str] = []

    class Noting(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            seen.append("start")

        def _on_ending(self, span: Any) -> None:
            seen.append("ending")

    here = bench()
    here.holder.processor = Noting()
    here.span("a", announced=False)

    assert seen == ["start", "ending"]
