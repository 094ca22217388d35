"""Overhead of @germane.observe compared with OpenTelemetry spans and with the decorators of similar libraries.

For a sync and an async handler, the following variants are measured in alternation in one run. All of them export
through one provider:

- five: a plain span with five attributes: kind, operation, name, question and answer
- bare: a plain span that builds and sets the same attributes as germane
- openinference, traceloop, langfuse: these libraries' decorators, if they are installed; see below

Three figures are printed for each variant. The limits apply to the medians of the ratios in each round:

- p50: median time of one call on the calling thread. Limits: 1.5 times bare, 2.0 times five, and 1.0 times the fastest
  peer.
- p99: the 99th percentile of the same times. It depends on the threads that hold the GIL, in all variants those that
  export spans, and in germane's the one that stores exchanges.
- CPU: CPU time of the whole process per call, including OTLP export and, for germane, the SQLite database. Limits: 2.2
  times five, 2.5 times bare. There is no limit relative to peers, because they export spans but store nothing.

They are measured for spans that are exported immediately, as in a process that only captures, and for spans
that wait for their score, as with a sample rate of 1. They include neither receiving spans, which a separate process
does, nor scoring, because nothing is scored.

Run: python benchmarks/decorator.py

Peers need a separate virtual environment, because their dependencies may conflict with germane's:

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install openinference-instrumentation traceloop-sdk langfuse -e .
    /tmp/peers/bin/python benchmarks/decorator.py
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane
from germane.process import current_runtime

QUESTION = "How long do I have to return a pair of shoes that does not fit?"
ANSWER = (
    "Shoes can be returned within thirty days of delivery. Put them into the box they came in, stick on the label that "
    "lies inside, and hand the parcel to any post office; the price is paid back within five working days."
)
CALLER_LIMITS = {"five": 2.0, "bare": 1.5}
"""Limits for the ratios to the plain spans; the limit for the ratio to a peer is 1."""
BLOCK = 100
UNLIMITED = 10**9
"""Exchanges per minute. Exchanges beyond the limit cost less; see benchmarks/capture.py."""
Run = Callable[[int], list[int]]
"""Callable that makes a number of calls and returns the duration of each in nanoseconds."""
PROCESS_LIMITS = {"five": 2.2, "bare": 2.5}
RECEIVER = """
import sys
from germane.testing import OTLPReceiver
with OTLPReceiver() as receiver:
    print(receiver.endpoint, flush=True)
    sys.stdin.read()
"""


def ask(question: str) -> str:
    """A handler with negligible cost, so that only the overhead is measured."""
    return ANSWER if question else ""


async def ask_async(question: str) -> str:
    """The same handler as a coroutine."""
    return ANSWER if question else ""


def first_attributes() -> dict[str, str]:
    """Return the attributes that germane sets at the start of a handler's span."""
    return {
        "openinference.span.kind": "CHAIN", "gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "ask",
    }  # fmt: skip


def same_attributes(question: str, answer: str) -> dict[str, str]:
    """Return the attributes that germane sets at the end of a span."""
    user = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    assistant = [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
    return {
        "germane.exchange.id": "0" * 32,
        "openinference.span.kind": "CHAIN",
        "gen_ai.input.messages": json.dumps(user),
        "input.value": question,
        "input.mime_type": "text/plain",
        "gen_ai.output.messages": json.dumps(assistant),
        "output.value": answer,
        "output.mime_type": "text/plain",
    }


def set_same(span: trace.Span, question: str, answer: str) -> None:
    """Set the same attributes as germane."""
    span.set_attributes(same_attributes(question, answer))


def set_two(span: trace.Span, question: str, answer: str) -> None:
    """Set two attributes, in addition to the three that are set at the start."""
    span.set_attribute("input.value", question)
    span.set_attribute("output.value", answer)


def plain(tracer: trace.Tracer, finish: Callable[[trace.Span, str, str], None]) -> tuple[Callable[[str], Any], ...]:
    """Return the sync and the async handler in a plain span."""

    def handler(question: str) -> str:
        with tracer.start_as_current_span("invoke_workflow ask", attributes=first_attributes()) as span:
            answer = ask(question)
            finish(span, question, answer)
            return answer

    async def async_handler(question: str) -> str:
        with tracer.start_as_current_span("invoke_workflow ask", attributes=first_attributes()) as span:
            answer = await ask_async(question)
            finish(span, question, answer)
            return answer

    return handler, async_handler


def peers(make_provider: Callable[..., TracerProvider], make_exporter: Callable[[], Any]) -> dict[str, Any]:
    """Return the decorators of the installed peers, each of which exports through its own provider."""
    decorators: dict[str, Callable[[Any], Any]] = {}
    with suppress(ImportError):
        from openinference.instrumentation import OITracer, TraceConfig

        decorators["openinference"] = OITracer(make_provider().get_tracer("peer"), config=TraceConfig()).chain
    with suppress(ImportError):
        from traceloop.sdk import Traceloop
        from traceloop.sdk.decorators import workflow

        with redirect_stdout(io.StringIO()):
            Traceloop.init(exporter=make_exporter(), instruments=set(), telemetry_enabled=False)
        decorators["traceloop"] = workflow(name="ask")
    with suppress(ImportError):
        from langfuse import Langfuse, observe

        keys = {"public_key": "pk-lf-none", "secret_key": "sk-lf-none"}
        Langfuse(**keys, tracer_provider=make_provider(exports=False), span_exporter=make_exporter())
        decorators["langfuse"] = observe(name="ask")
    return decorators


def calls(handler: Callable[[str], Any], count: int) -> list[int]:
    """Call a handler and return the duration of each call in nanoseconds."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        handler(QUESTION)
        times.append(time.perf_counter_ns() - start)
    return times


async def calls_async(handler: Callable[[str], Any], count: int) -> list[int]:
    """Do the same for a coroutine function."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        await handler(QUESTION)
        times.append(time.perf_counter_ns() - start)
    return times


def process(run: Run, flush: Callable[[], object], count: int) -> float:
    """Return the CPU time of the process per call in microseconds, including background work.

    Garbage is collected first, because a full collection takes as long as a thousand calls and would affect one variant
    at random.
    """
    gc.collect()
    start = time.process_time_ns()
    run(count)
    flush()
    return (time.process_time_ns() - start) / count / 1000


def compare(name: str, runs: dict[str, Run], flush: Callable[[], object], rounds: int, count: int) -> bool:
    """Measure all variants in alternation, print the ratios, and return whether germane meets its limits.

    The blocks of calls are short, so that other load on the machine affects all variants equally.
    """
    for run in runs.values():  # warm-up
        run(count)
    flush()
    medians: dict[str, list[float]] = {way: [] for way in runs}
    durations: dict[str, list[int]] = {way: [] for way in runs}
    for _ in range(rounds):
        for _ in range(count // BLOCK):
            for way, run in runs.items():
                block = run(BLOCK)
                medians[way].append(median(block) / 1000)
                durations[way] += block
        flush()
    cpu: dict[str, list[float]] = {way: [] for way in runs}
    for _ in range(rounds):
        for way, run in runs.items():
            cpu[way].append(process(run, flush, count))
    print(f"{name:14} {'p50 us':>8} {'p99 us':>8} {'CPU us':>8}   germane's p50 and CPU relative to it, with limits")
    kept = True
    for way, times in durations.items():
        p99 = sorted(times)[len(times) * 99 // 100] / 1000
        shares = ""
        if way != "germane":
            caller, kept_caller = share(medians, way, CALLER_LIMITS.get(way, 1.0))
            process_cpu, kept_cpu = share(cpu, way, PROCESS_LIMITS.get(way))
            shares, kept = f"{caller}  {process_cpu}", kept and kept_caller and kept_cpu
        print(f"{way:14} {median(medians[way]):8.1f} {p99:8.1f} {median(cpu[way]):8.1f}   {shares}", flush=True)
    return kept


def share(times: dict[str, list[float]], other: str, limit: float | None) -> tuple[str, bool]:
    """Return the median ratio of germane's times to another variant's, and whether it meets its limit."""
    ratio = median(ours / theirs for ours, theirs in zip(times["germane"], times[other], strict=True))
    return f"{ratio:5.2f} {f'(max {limit})' if limit else '':9}", limit is None or ratio <= limit


EMBEDDED: dict[str, Any] = {"scorers": ["question_answer_similarity"], "embedder": "local"}
PASSED: dict[str, Any] = {"role": "capture"}
HELD: dict[str, Any] = {**EMBEDDED, "sample_rate": 1.0, "poll_interval": 3600.0}  # the only poll finds no task
MODES = {"passed": PASSED, "held": HELD}


def measure(endpoint: str, folder: Path, rounds: int, count: int) -> bool:
    """Measure both kinds of handler in each mode, exporting to a receiver."""
    make_exporter = partial(OTLPSpanExporter, endpoint=f"{endpoint}/v1/traces")

    providers: list[TracerProvider] = []

    def make_provider(*, exports: bool = True, wrap: Callable[[Any], Any] = lambda processor: processor) -> Any:
        provider = TracerProvider(shutdown_on_exit=False)
        if exports:
            provider.add_span_processor(wrap(BatchSpanProcessor(make_exporter(), max_queue_size=8 * count)))
        providers.append(provider)
        return provider

    provider = make_provider(wrap=germane.ScoreSpanProcessor)
    decorators = peers(make_provider, make_exporter)
    kept = []
    for name, settings in MODES.items():
        database = f"sqlite:///{folder}/{name}.db"
        germane.start(
            database=database, service="benchmark", max_exchanges_per_minute=UNLIMITED, tracer_provider=provider,
            **settings,
        )  # fmt: skip
        kept += [measure_mode(name, providers, decorators, rounds, count)]
        germane.stop()
    provider.shutdown()
    return all(kept)


def measure_mode(
    name: str, providers: list[TracerProvider], decorators: dict[str, Any], rounds: int, count: int
) -> bool:
    """Measure a sync and an async handler."""
    tracer = providers[0].get_tracer("bare")

    def flush() -> None:
        for exporting in (*providers, trace.get_tracer_provider()):
            if isinstance(exporting, TracerProvider):
                exporting.force_flush()
        runtime = current_runtime()
        assert runtime is not None
        assert runtime.writer.flush(60)

    both = {"five": plain(tracer, set_two), "bare": plain(tracer, set_same)}
    both |= {way: (wrap(ask), wrap(ask_async)) for way, wrap in decorators.items()}
    both["germane"] = (germane.observe(route="ask")(ask), germane.observe(route="ask")(ask_async))
    with asyncio.Runner() as runner:

        def run_async(handler: Callable[[str], Any], count: int) -> list[int]:
            return runner.run(calls_async(handler, count))

        sync: dict[str, Run] = {way: partial(calls, handlers[0]) for way, handlers in both.items()}
        kept = [compare(f"{name}, sync", sync, flush, rounds, count)]
        not_sync: dict[str, Run] = {way: partial(run_async, handlers[1]) for way, handlers in both.items()}
        return all([*kept, compare(f"{name}, async", not_sync, flush, rounds, count)])


def main() -> int:
    """Run the benchmark; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000, help="calls per round")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", RECEIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as receiver,
    ):
        assert receiver.stdout is not None
        endpoint = receiver.stdout.readline().decode().strip()
        kept = measure(endpoint, Path(folder), options.rounds, options.calls)
        receiver.communicate()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
