"""Measures what ``germane.watch()`` costs: CPU on the application's thread, memory per open trace, and recognition.

    python benchmarks/watch.py

The trace has four spans with texts of a few hundred characters, recorded with the bare SDK. An instrumentation does
more work per span, so that its traces become slower by a smaller factor.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, Tracer, set_span_in_context

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.spans.samples import SAMPLES, Texts

from germane.exchange import Exchange
from germane.recognizers.recognition import recognize
from germane.tracer import connect, disconnect, watching

SCOPE = "openinference.instrumentation.langchain"
TRACES = 500
ROUNDS = 20
OPEN_TRACES = 10_000
MAX_RATIO = 1.3
"""Maximum median ratio of the CPU times with and without watching."""
KIND = "openinference.span.kind"
DOCUMENT = "Shoes can be returned within thirty days of delivery. " * 6


class NoExporter(SpanExporter):
    """Discards spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 - the signature is the SDK's
        return SpanExportResult.SUCCESS


def provider() -> TracerProvider:
    """Return an application's provider."""
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(NoExporter()))
    return made


def start_chain(tracer: Tracer) -> Span:
    """Record a chain, except for the end of its own span."""
    root = tracer.start_span("chain", context=Context())
    context = set_span_in_context(root, Context())
    documents = {f"retrieval.documents.{number}.document.content": DOCUMENT for number in range(4)}
    for attributes in (
        {KIND: "RETRIEVER", "input.value": "Can I return shoes?", **documents},
        {KIND: "PROMPT", "llm.prompt_template.variables": '{"question": "Can I return shoes?"}'},
        {
            KIND: "LLM",
            "llm.model_name": "model",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": DOCUMENT,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "Within thirty days.",
        },
    ):
        span = tracer.start_span("step", context=context)
        span.set_attributes(attributes)
        span.end()
    root.set_attributes({KIND: "CHAIN", "input.value": "Can I return shoes?", "output.value": "Within thirty days."})
    return root


def cpu_per_trace(tracer: Tracer) -> float:
    """Return the CPU time of the calling thread per trace, in microseconds."""
    began = time.thread_time()
    for _ in range(TRACES):
        start_chain(tracer).end()
    return (time.thread_time() - began) / TRACES * 1e6


def compare(tracer: Tracer) -> list[tuple[float, float]]:
    """Return the CPU times per trace without and with watching, in interleaved rounds."""
    plain = provider()
    plain_tracer = plain.get_tracer(SCOPE)
    rounds = []
    for _ in range(ROUNDS):
        without = cpu_per_trace(plain_tracer)
        rounds.append((without, cpu_per_trace(tracer)))
        watching.flush(60)
    plain.shutdown()
    return rounds


def watched(work: Callable[[Tracer], None]) -> list[Exchange]:
    """Run work on a watched provider, and return the exchanges."""
    exchanges: list[Exchange] = []
    application = provider()
    connect(sink=exchanges.append, service="benchmark", holds_spans=False, provider=application, watches=True)
    try:
        work(application.get_tracer(SCOPE))
        watching.flush(60)
    finally:
        disconnect()
        application.shutdown()
    return exchanges


def measure_open_traces(tracer: Tracer) -> None:
    """Print the memory per open trace, and the time to read all of them once they end."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    roots = [start_chain(tracer) for _ in range(OPEN_TRACES)]
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    size = taken / OPEN_TRACES / 1024
    print(f"memory per open trace: {size:.1f} KiB, spans included, at {OPEN_TRACES:,} open traces")
    began, thread_began = time.perf_counter(), time.thread_time()
    for root in roots:
        root.end()
    ended = time.thread_time() - thread_began
    watching.flush(60)
    seconds = time.perf_counter() - began
    print(f"end of their first spans: {ended / OPEN_TRACES * 1e6:.1f} us each; all are read after {seconds:.1f} s")


def main() -> int:
    """Print all measurements. Return 1 if watching costs too much, or if a trace was lost."""
    rounds: list[tuple[float, float]] = []
    read = watched(lambda tracer: rounds.extend(compare(tracer)))
    plain, with_watch = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(watching / without for without, watching in rounds)
    print(f"CPU on the application's thread per trace of four spans, in us: medians of {ROUNDS} interleaved rounds")
    print(f"  tracing alone  {plain:6.1f}")
    print(f"  with watching  {with_watch:6.1f}  ({ratio:.2f} times)")
    print(f"exchanges: {len(read):,} of {ROUNDS * TRACES:,}")
    opened = watched(measure_open_traces)
    print(f"exchanges: {len(opened):,} of {OPEN_TRACES:,}")
    print("recognition of one trace, CPU in ms")
    for name, sample in ((name, make(Texts(documents=(DOCUMENT,) * 4))) for name, make in SAMPLES.items()):
        began = time.process_time()
        for _ in range(100):
            recognize(sample.spans, sample.logs)
        print(f"  {name:26} {(time.process_time() - began) * 10:5.2f}  ({len(sample.spans)} spans)")
    is_complete = len(read) == ROUNDS * TRACES and len(opened) == OPEN_TRACES
    return 0 if is_complete and ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
